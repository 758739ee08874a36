# SPDX-License-Identifier: Apache-2.0
"""Record traces that boards publish over their own links, each with the offset of its clock."""
