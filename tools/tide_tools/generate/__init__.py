# SPDX-License-Identifier: Apache-2.0
"""Turn ROS 2 message definitions into C structures with CDR encoders and decoders."""
