# SPDX-License-Identifier: Apache-2.0
"""How tables, text and plots look; knows no other package of tide."""
