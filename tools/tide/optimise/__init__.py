# SPDX-License-Identifier: Apache-2.0
"""Choose priorities, lanes and link quantum so that every deadline is met, or name the chains that stand in the way."""
