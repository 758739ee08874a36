# SPDX-License-Identifier: Apache-2.0
"""What a run counted that answers the assumptions of its bounds: extremes and counts, as they go into results.json."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tide.report.parts import NAMES
from tide.run.frames import ACKNACK, FRAGMENT, HEARTBEAT, Frame, owners_of
from tide.run.parts import Instance, Interval, Parts, overlap_ns, split
from tide.run.plan import RunChain

Evidence = dict[str, Any]
_BREAK_NS = 1_000_000  # shorter ones between two callbacks are the executor's
_STEP_US = 50
_GET_INFO, _INFO = 2, 6  # whether the other side is there
_WRITE_DATA, _DATA = 7, 9
_EXPECTED = {
    "up": {_WRITE_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _GET_INFO},
    "down": {_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _INFO},
}


def executions(lines: Iterable[str]) -> Evidence:
    """From the lines that `tide measured` reads."""
    found = {}
    for line in lines:
        _, name, count, least, most, *_ = line.split()
        found[name] = {"count": int(count), "least_ns": int(least), "most_ns": int(most)}
    return {"executions": found}


def _before(one: Instance, around: Iterable[Instance], time_ns: int, levels: dict[str, int]) -> list[Interval]:
    """Callbacks that may go first and that began before then, in their order; levels: empty where none is preempted."""
    return sorted(
        interval
        for other in around
        if not levels or other is one or levels[other.chain] > levels[one.chain]
        for interval in (other.sample, other.act)
        if interval[0] < time_ns
    )


def _stretch_ns(callbacks: Sequence[Interval], time_ns: int) -> int:
    """Since when callbacks have run until then without a break."""
    for start_ns, end_ns in reversed(callbacks):
        if time_ns - end_ns > _BREAK_NS:
            break
        time_ns = min(time_ns, start_ns)
    return time_ns


def _near(instances: Sequence[Instance]) -> dict[int, list[Instance]]:
    """By the second, so that each instance is compared with those around it only."""
    found: dict[int, list[Instance]] = {}
    for one in instances:
        for second in range(one.release_ns // 10**9, one.act[1] // 10**9 + 1):
            found.setdefault(second, []).append(one)
    return found


def starts(instances: Sequence[Instance], frames: Sequence[Frame], levels: dict[str, int]) -> Evidence:
    """How late timers start their chains where nothing else was to be done; and how long an answer waited for its
    callback when the processor was free, by how many frames may have been digested meanwhile."""
    late: dict[str, int] = {}
    taken: dict[int, int] = {}
    near = _near(instances)
    arrivals = sorted(frame.end_ns for frame in frames if frame.track == "down" and not frame.dropped)
    for one in instances:
        around = near[one.release_ns // 10**9] + near[one.act[1] // 10**9]
        before = _before(one, around, one.sample[0], levels)
        idle = not any(end_ns > one.release_ns for _, end_ns in before)
        if idle and bisect_right(arrivals, one.sample[0]) == bisect_left(arrivals, one.release_ns - _BREAK_NS):
            late[one.chain] = max(late.get(one.chain, 0), one.sample[0] - one.release_ns)
        if one.down is None or one.down.end_ns > one.act[0]:
            continue
        before = _before(one, around, one.act[0], levels)
        free_ns = max([one.down.end_ns, *(end_ns for _, end_ns in before if end_ns <= one.act[0])])
        since_ns = min(one.down.end_ns, _stretch_ns(before, one.act[0]))
        count = bisect_right(arrivals, one.act[0]) - bisect_left(arrivals, since_ns)
        taken[count] = max(taken.get(count, 0), one.act[0] - free_ns)
    return {"start_late_ns": late, "taken_ns": {str(count): taken[count] for count in sorted(taken)}}


def _questions(frames: Sequence[Frame], track: str) -> Evidence:
    """HEARTBEATs, and how long after the message that they ask about the soonest left."""
    left: dict[tuple[int | None, int | None], int] = {}
    waited: list[int] = []
    for frame in (frame for frame in frames if frame.track == track):
        key = (frame.stream, frame.sequence)
        if frame.kind == HEARTBEAT:
            waited += [frame.start_ns - left[key]] if key in left else []
        elif frame.object_id is not None or frame.kind == FRAGMENT:
            left.setdefault(key, frame.end_ns)
    return {"count": len(waited), "soonest_ns": min(waited, default=None)}


def line_behind(instances: Sequence[Instance], frames: Sequence[Frame]) -> Evidence:
    """How long after a publish its frame began although the line was free: the emulated line took it late."""
    ups = sorted((frame.start_ns, frame.end_ns) for frame in frames if frame.track == "up")
    ends = [end_ns for _, end_ns in ups]
    most_ns = 0
    for one in instances:
        if one.up is None:
            continue
        since_ns = one.sample[1]
        busy = ups[bisect_left(ends, since_ns) : bisect_left(ups, (one.up.first_ns, 0))]
        most_ns = max(most_ns, one.up.first_ns - since_ns - overlap_ns(since_ns, one.up.first_ns, busy))
    return {"line_behind_ns": most_ns}


def _strangers(frames: Sequence[Frame], session: int | None) -> int:
    """Frames of another session, or of a kind that chains do not send."""
    return sum(
        frame.kind is not None and (frame.kind not in _EXPECTED[frame.track] or frame.session != session)
        for frame in frames
    )


def _sizes(frames: Sequence[Frame], names: Sequence[str]) -> Evidence:
    """Least and most bytes of a message by its chain and way."""
    found: dict[str, dict[str, int]] = {}
    for track in ("up", "down"):
        owners = owners_of(frames, track, names)
        for frame in frames:
            if frame.track != track or frame.object_id is None or frame.payload_bytes is None:
                continue
            size = found.setdefault(f"{owners.get(frame.object_id, '?')} {track}", {"least": 10**9, "most": 0})
            size["least"] = min(size["least"], frame.payload_bytes)
            size["most"] = max(size["most"], frame.payload_bytes)
    return {"messages": found, "fragments": sum(frame.kind == FRAGMENT for frame in frames)}


def of_frames(frames: Sequence[Frame], names: Sequence[str], since_ns: int, until_ns: int) -> Evidence:
    """Of those that were on the line while the chains ran."""
    inside = [frame for frame in frames if since_ns <= frame.start_ns <= until_ns]
    if not inside:
        return {}
    sessions = [frame.session for frame in inside if frame.object_id is not None]
    session = max(set(sessions), key=sessions.count) if sessions else None
    escaped = [frame.escaped_bytes for frame in inside if frame.escaped_bytes is not None]
    return {
        "frames": len(inside),
        "dropped": sum(frame.dropped for frame in inside),
        "escaped_bytes": max(escaped, default=None),
        "strangers": _strangers(inside, session),
        "signs_of_life": sum(frame.kind == _GET_INFO for frame in inside),
        "sizes": _sizes(inside, names),
        "client_questions": _questions(inside, "up"),
        "agent_questions": _questions(inside, "down"),
    }


def lost_by_instance(instances: Sequence[Instance], frames: Sequence[Frame]) -> int:
    """The most frames that were lost while one instance was under way."""
    dropped = [frame.end_ns for frame in frames if frame.dropped]
    return max((sum(one.release_ns <= at_ns <= one.act[1] for at_ns in dropped) for one in instances), default=0)


def split_all(instances: Sequence[Instance], frames: Sequence[Frame]) -> list[tuple[Instance, Parts]]:
    down = [frame for frame in frames if frame.track == "down"]
    every = []
    near = _near(instances)
    for one in instances:
        line = [(frame.start_ns, frame.end_ns) for frame in down if one.release_ns <= frame.end_ns <= one.act[1]]
        around = near[one.release_ns // 10**9] + near[one.act[1] // 10**9]
        nodes = {other.node for other in around if other.node is not None and other is not one}
        every.append((one, split(one, line, sorted(nodes))))
    return every


def _at_most(pairs: Iterable[tuple[int, int]]) -> Evidence:
    """Of (for sure, with what others kept busy meanwhile): the most for sure, and how many took up to how much in all,
    in steps."""
    every = list(pairs)
    upto_us = Counter(-(-most_ns // (1000 * _STEP_US)) * _STEP_US for _, most_ns in every)
    return {
        "sure_ns": max(sure_ns for sure_ns, _ in every),
        "upto_us": {str(one): upto_us[one] for one in sorted(upto_us)},
    }


def way_of_the_host(every: Sequence[tuple[Instance, Parts]]) -> Evidence:
    """What agent and return took; where the node or the line was busy with others, that time does not count."""
    told = [parts for _, parts in every if not parts.by_name["elsewhere"]]
    if not told:
        return {}
    return {
        "agent": _at_most((parts.by_name["agent"], parts.agent_most_ns) for parts in told),
        "return": _at_most((parts.by_name["return"], parts.return_most_ns) for parts in told),
    }


def parts_of(every: Sequence[tuple[Instance, Parts]], chain: str) -> dict[str, dict[str, int]]:
    """By name: the most of all instances, and that of the instance with the longest latency."""
    own = [(one, parts.by_name) for one, parts in every if one.chain == chain]
    if not own:
        return {}
    _, slowest = max(own, key=lambda pair: pair[0].latency_ns)
    found = {name: {"most_ns": max(parts[name] for _, parts in own), "slowest_ns": slowest[name]} for name in NAMES}
    return {name: values for name, values in found.items() if values["most_ns"] or name in NAMES[:5]}


def in_time(chains: Sequence[RunChain], recorded: Iterable[dict[str, Any]]) -> Evidence:
    """How much of a period the longest instance took, and how many did not come to their end."""
    periods = {chain.chain.name: chain.chain.period_ns for chain in chains}
    longest, name, missing = 0.0, "", 0
    for one in recorded:
        missing += "latency_ns" not in one
        share = int(one.get("latency_ns", 0)) / periods[one["chain"]]
        if share > longest:
            longest, name = share, str(one["chain"])
    return {"in_time": {"share": longest, "chain": name, "missing": missing}}
