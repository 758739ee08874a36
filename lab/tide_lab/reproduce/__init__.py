# SPDX-License-Identifier: Apache-2.0
"""Repeat a published experiment and compare its figures with tide's."""
