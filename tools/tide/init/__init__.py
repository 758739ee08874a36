# SPDX-License-Identifier: Apache-2.0
"""Write the start of a system description: boards, links and chains with a comment for each key."""
