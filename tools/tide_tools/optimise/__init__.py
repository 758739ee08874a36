# SPDX-License-Identifier: Apache-2.0
"""Change a description as little as possible until every deadline is guaranteed, or name the chains that prevent it."""
