# SPDX-License-Identifier: Apache-2.0
"""How long a played callback of a host works, so that all of it takes at most what is described. What a description
says of a host's callback is the worst that occurs and contains what the executor spends: until the callback begins, and
for the message at its end. Neither is known before, so what was seen of it is left free, and a little more."""

from __future__ import annotations

_PUBLISH_NS = 300_000  # until it is known better
_SPARE_NS = 100_000  # of the publish
_LEAD_SPARE_NS = 500_000  # the least that was seen is no worst case
_SERVICE_LEAD_NS = 1_500_000


class Reserve:
    """Of one callback. Not re-entrant: a callback is not its own rival."""

    def __init__(self, execution_ns: int, least_ns: int, sends: bool) -> None:
        self.execution_ns, self.least_ns = execution_ns, least_ns
        self._publish_ns = _PUBLISH_NS if sends else 0
        self._lead_ns: dict[int, int] = {}

    def led(self, place: int, lead_ns: int) -> None:
        """So long after its cause, a timer's expiry or a message of another host executor, the callback began; place:
        which of several causes. The least of them is the executor's and DDS's, more may be a wait for others."""
        lead_ns = max(lead_ns, 0)  # clocks may be set
        self._lead_ns[place] = min(lead_ns, self._lead_ns.get(place, lead_ns))

    def led_unseen(self, place: int) -> None:
        """A request or reply, of which nobody here tells when it left."""
        self._lead_ns[place] = _SERVICE_LEAD_NS

    def published(self, spent_ns: int) -> None:
        """The greatest of late counts, as the next may be like it."""
        self._publish_ns = max(spent_ns, self._publish_ns * 15 // 16)

    def work_ns(self, place: int, before_ns: int) -> int:
        """before_ns: spent already. At least a half remains work, whatever else it takes, and least_ns is kept."""
        lead_ns = self._lead_ns.get(place)
        led_ns = 0 if lead_ns is None else lead_ns + _LEAD_SPARE_NS
        left_ns = self.execution_ns - led_ns - before_ns - self._publish_ns - _SPARE_NS
        return max(left_ns, self.execution_ns // 2 - before_ns, self.least_ns - before_ns, 0)
