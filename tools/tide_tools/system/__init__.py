# SPDX-License-Identifier: Apache-2.0
"""Read a system description: show it, or print its JSON schema.

One description for all commands: `tide run`, `tide check`, `tide simulate` and `tide generate` read the same
system.toml."""
