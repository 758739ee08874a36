# SPDX-License-Identifier: Apache-2.0
"""Repeat a published experiment and print its figures beside ours."""
