# SPDX-License-Identifier: Apache-2.0
"""Write a system in the form of another analysis tool."""
