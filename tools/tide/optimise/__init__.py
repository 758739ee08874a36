# SPDX-License-Identifier: Apache-2.0
"""Change as little as possible so that every deadline is guaranteed, or name the chains that prevent it."""
