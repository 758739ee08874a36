# SPDX-License-Identifier: Apache-2.0
"""The site that `make docs` builds: pages of the repository, and reference pages generated from the code."""
