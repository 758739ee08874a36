# SPDX-License-Identifier: Apache-2.0
"""For all tests here."""

import signal

# A shell starts what runs in the background deaf to SIGINT, and programs inherit that; the tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
