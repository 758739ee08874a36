# SPDX-License-Identifier: Apache-2.0
"""Chains that begin with an event: their description, their bounds, their simulation with the shipped executor, and
their verdict in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import descriptions as d
from bounded import MS, bound_ns, bound_of, worst_of
from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.report.verdict import State
from tide_tools.run.plan import plan_of, traces_of
from tide_tools.run.results import outcome_of
from tide_tools.run.robot import Recorded
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import SystemFileError, load, parse
from tide_tools.system.model import System

FILE = Path(__file__).parents[2] / "examples/systems/events.toml"
TEXT = FILE.read_text(encoding="utf-8")


PATH = '[[paths]]\nname = "p"\nchains = ["{}", "{}"]\n'


def changed(*pairs: tuple[str, str]) -> System:
    text = TEXT
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after, 1)
    return parse(text)


# ---- described ----


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('kind = "timer"', 'kind = "timer"\npriority = 3', "priority"),
        ("burst = 3", "burst = 3\njitter_ms = 1", "begins with an event, which has no jitter_ms"),
        ("period_ms = 40", "period_ms = 40\nburst = 2", "has bursts of 2, but does not begin with an event"),
        ('name = "fuse"\nkind = "subscription"', 'name = "fuse"\nkind = "event"', "an event in the middle"),
        ("burst = 3", "burst = 17", "burst"),
        ("[[links]]", f"{PATH.format('imu', 'estop')}[[links]]", "an event, so it does not sample a value"),
        ("[[links]]", f"{PATH.format('estop', 'imu')}age_ms = 90\n[[links]]", "so its values have no greatest age"),
    ],
)
def test_what_does_not_fit_an_event_is_refused(before: str, after: str, says: str) -> None:
    try:
        changed((before, after))
    except SystemFileError as error:
        assert any(says in line for line in error.lines), error.lines
    else:
        assert says == "priority", "accepted"


# ---- bounded ----


def test_an_event_is_answered_without_waiting_for_a_tick() -> None:
    """With a timer that polls for the event, the bound from the tick is the same as that from the event here. Counted
    from the polled event, it is a period longer."""
    event, timer = bounds_of(load(FILE)), bounds_of(changed(('kind = "event"', 'kind = "timer"')))
    one, other = bound_of(event, "estop"), bound_of(timer, "estop")
    assert one.bound_ns == other.bound_ns == one.from_event_ns
    assert other.from_event_ns == one.bound_ns + 50 * MS
    assert "events" in {premise.id for premise in event.assumptions}
    assert "estop 50 ms, bumper 20 ms (3 may come at once, 3 in 60 ms)" in next(
        premise.text for premise in event.assumptions if premise.id == "events"
    )


def test_a_longer_burst_is_a_longer_bound_for_all() -> None:
    bounds = [changed(("burst = 3", f"burst = {count}"), ("period_ms = 20", "period_ms = 40")) for count in (1, 2, 3)]
    for name in ("bumper", "imu"):
        times = [bound_ns(one, name) for one in bounds]
        assert times[0] < times[1] < times[2], name
    assert bound_ns(bounds[2], "bumper") >= bound_ns(bounds[0], "bumper") + 2 * 3 * MS, "its own events wait"


def test_messages_of_a_burst_have_nodes() -> None:
    slow = (("period_ms = 20", "period_ms = 60"), ("period_ms = 40", "period_ms = 100"))
    counts = [
        bounds_of(changed(*slow, ("burst = 3", f"burst = {one}"))).needs[0].sizes["small_nodes"] for one in (3, 5)
    ]
    assert counts[1] >= counts[0] + 2


BATCH = (("submit_ms = 0.1", 'submit_ms = 0.1\npolicy = "batch"'), ("burst = 3\n", ""))


def test_on_rclcs_executor_an_event_waits_for_the_next_timer() -> None:
    """The wait ends no later than with the timer of `imu`. Until then the event is like the release of a timer that is
    late by up to that time."""
    bounds = bounds_of(changed(*BATCH))
    slow = ("period_ms = 50\ndeadline_ms = 40", "period_ms = 100\ndeadline_ms = 100")
    late = (slow[0], f"{slow[1]}\njitter_ms = 40"), ('kind = "event"', 'kind = "timer"')
    assert bound_ns(changed(*BATCH, slow), "estop") == bound_ns(changed(*BATCH, *late), "estop")
    assert bound_ns(changed(*BATCH), "estop") >= 40 * MS + bound_ns(changed(BATCH[1]), "estop")
    (text,) = [one.text for one in bounds.assumptions if one.id == "timers_run"]
    assert "or after 1 s: estop 40 ms, bumper 40 ms" in text
    slow = changed(*BATCH, ("period_ms = 40", "period_ms = 5000"))
    assert bound_ns(slow, "estop") >= 1000 * MS


def test_a_path_of_events_waits_for_no_expiry_of_its_first_chain() -> None:
    system = changed(("[[links]]", f"{PATH.format('estop', 'imu')}[[links]]"))
    bounds = bounds_of(system)
    (path,) = bounds.paths
    assert path.reaction_ns == bound_ns(system, "estop") + 40 * MS + bound_ns(system, "imu")
    assert path.age_ns is None and path.met
    outcome = simulate_description(system, None, 20, 1, False)
    reaction, age = outcome.paths
    assert 0 < reaction.worst_ns <= path.reaction_ns and age.worst_ns == -1 and not outcome.is_broken


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("submit_ms = 0.1", 'submit_ms = 0.1\npolicy = "batch"', "bursts in a chain that begins on a batch executor"),
        ('where = "host"', 'where = "host"\nlanes = 2', "whose nodes have several lanes"),
    ],
)
def test_what_has_no_bound_says_so_of_its_entry(before: str, after: str, says: str) -> None:
    with pytest.raises(NoBoundError) as caught:
        bounds_of(changed((before, after)))
    found = [one for one in caught.value.findings if says in one.what]
    assert found and all(int(one.path[1]) < 3 for one in caught.value.findings), caught.value.findings


# ---- played ----


def test_no_event_is_answered_after_its_bound() -> None:
    outcome = simulate_description(load(FILE), None, 20, 1, False)
    assert not outcome.is_broken and all(one.ended > 50 and not one.lost for one in outcome.seen)


def test_on_rclcs_executor_events_are_noticed_late() -> None:
    """In the simulation, no event ends a wait of the batch."""
    outcome = simulate_description(changed(*BATCH), None, 20, 1, False)
    worst = {one.chain: (one.worst_ns, one.bound_ns or 0) for one in outcome.seen}
    assert not outcome.is_broken and all(0 < seen <= bound for seen, bound in worst.values())
    assert worst["estop"][0] > bound_ns(changed(BATCH[1]), "estop") + 20 * MS


def test_a_burst_takes_longer_than_single_events() -> None:
    """The simulation has bursts in which each event is answered, however many events occur before the callback begins.
    The last of three simultaneous events waits for two others."""
    crowd = (
        ("execution_ms = 3", "execution_ms = 6"),
        ("period_ms = 20", "period_ms = 60"),
        ("period_ms = 40", "period_ms = 100"),
    )
    outcome = simulate_description(changed(*crowd), None, 20, 1, False)
    (bumper,) = [one for one in outcome.seen if one.chain == "bumper"]
    assert bumper.bound_ns is not None and bumper.worst_ns <= bumper.bound_ns
    alone = simulate_description(changed(*crowd, ("burst = 3\n", "")), None, 20, 1, False)
    (single,) = [one for one in alone.seen if one.chain == "bumper"]
    assert bumper.worst_ns > single.worst_ns + 2 * MS and bumper.worst_ns > 3 * 6 * MS, "they waited for the first"


# ---- in a run ----


def test_a_trace_tells_an_event_from_a_timer() -> None:
    """A board records the kind of each callback (tide_callback_kind_t)."""
    system = load(FILE)
    plan = plan_of(system, system.executor("board"), 2)
    traces = traces_of(system, {"board": ("uart", plan)}, {}, {"board": 1}, 0)
    roles = {one.name: one.role for chain in traces.boards[0].chains for one in chain.callbacks}
    assert roles == {
        "pressed": "event",
        "cut": "subscription",
        "hit": "event",
        "sample": "timer",
        "light": "subscription",
    }
    assert traces.chains["bumper"].release_ns(4) == traces.chains["bumper"].release_ns(3) == 60 * MS


def test_a_chain_that_an_event_begins_is_not_called_silent() -> None:
    """It is unknown how many events there were on the user's board, so none counts as missing, and the verdict cannot
    say that all were observed."""
    system = changed(('name = "board"\nwhere = "mcu"', 'name = "board"\nwhere = "mcu"\ncommand = "x {device}"'))
    told = Recorded(0, end_ns=4000 * MS, seen_until_ns=5000 * MS)
    told.topics = {"pressed": [100 * MS * n for n in range(30)], "cut": [100 * MS * n + 9 * MS for n in range(30)]}
    run = outcome_of(system, told, 60).run
    (estop,) = [one for one in run.chains if one.name == "estop"]
    assert (estop.skipped, estop.lost, estop.doubt) == (0, 0, "how many events came is not known")
    assert run.verdict(estop).state is State.NOT_JUDGED
    told.topics["cut"].pop(20)
    run = outcome_of(system, told, 60).run
    (estop,) = [one for one in run.chains if one.name == "estop"]
    assert run.verdict(estop).state is State.NOT_MET, "an event without an answer is one"


def test_check_says_from_when_deadlines_count() -> None:
    shown = tide("check", FILE, COLUMNS="80")[1]
    line = next(one for one in shown.splitlines() if one.split()[:1] == ["estop"])
    assert line.split()[1] == "21.150" and line.split()[2] == "40.000", "no figure from a tick"


def test_events_that_stay_away_keep_nobody_awake() -> None:
    """If no timer publishes, the board probes its agent while it waits for events. Bounds include the frames of these
    probes."""
    rare = (("period_ms = 200", "period_ms = 2000"),)
    timers = [*rare, ('kind = "event"', 'kind = "timer"'), ('kind = "event"', 'kind = "timer"'), ("burst = 3\n", "")]
    ids = {one.id for one in bounds_of(changed(*timers)).assumptions}
    assert "heard_at_start" in ids, "all chains keep both sides awake"
    assert "heard_at_start" not in {one.id for one in bounds_of(changed(*rare)).assumptions}


# ---- events of the host ----


def test_an_event_of_the_host_is_a_message_from_outside() -> None:
    """Another machine publishes a button, which stops something on the board. The event is like a timer of the same
    period, without the wait for a tick."""

    def stop(kind: str, *more: str) -> str:
        begin = ("teleop", 1, {"name": "pressed", "kind": kind})
        parts = (d.board("m"), d.line("l", agent_ms=1, return_ms=1), d.host("teleop"), *more)
        return d.described(*parts, d.chain("stop", 2, begin, ("m", 1)), d.chain("imu", 1, ("m", 2), ("teleop", 3)))

    event, timer = (bound_of(stop(kind), "stop") for kind in ("event", "timer"))
    assert event.bound_ns >= timer.bound_ns  # without messages, the board may ping its agent
    assert event.from_event_ns == event.bound_ns and timer.from_event_ns == timer.bound_ns + 100 * MS
    assert 0 < worst_of(parse(stop("event")), runs=1)["stop"] <= event.bound_ns


def test_an_event_of_the_host_alone_has_bounds_as_a_subscription_has() -> None:
    begin = ("h", 5, {"name": "pressed", "kind": "event"})
    chains = (d.chain("stop", 2, begin, ("h", 1)), d.chain("other", 1, ("h", 7)))
    found = bounds_of(parse(d.described(d.host("h"), *chains)))
    one = bound_of(found, "stop")
    assert 13 * MS <= one.bound_ns <= 20 * MS and one.from_event_ns == one.bound_ns
    assert "expiries" not in {premise.id for premise in found.assumptions}
    system = parse(d.described(d.host("h", lanes=2), *chains))
    bound_ns = bound_of(system, "stop").bound_ns
    assert 0 < worst_of(system, runs=3)["stop"] <= bound_ns


def test_events_of_the_host_may_come_in_bursts() -> None:
    """Each of three events may wait for the other two, and the message of the last one waits for those of the
    others."""
    begin = ("h", 5, {"name": "pressed", "kind": "event"})
    chains = (d.chain("stop", 2, begin, ("g", 1), burst=3), d.chain("other", 1, ("h", 7)))
    text = d.described(d.host("h"), d.host("g"), *chains)
    one, system = bound_of(text, "stop"), parse(text)
    found = bounds_of(system)
    assert (3 * 5 + 7 + 1) * MS <= one.bound_ns < 60 * MS and one.from_event_ns == one.bound_ns
    assert [each.model for each in found.models] == ["any_order", "any_order"]
    assert next(each.values for each in found.assumptions if each.id == "depth") == {"stop": 3}
    assert (3 * 5 + 1) * MS <= worst_of(system)["stop"] <= one.bound_ns
    assert bound_ns(text.replace("burst = 3\n", ""), "stop") < one.bound_ns


def test_a_burst_may_return_to_its_board_and_go_to_another() -> None:
    """Each of three events waits for the other two on the board, at the node and on the other board."""
    begin = ("m", 2, {"name": "pressed", "kind": "event"})
    parts = (
        d.board("m", link="l"),
        d.board("n", link="k"),
        d.line("l", agent_ms=1, return_ms=1),
        d.line("k", agent_ms=1, return_ms=1),
        d.host("h"),
    )
    for last in ("m", "n"):
        chain = d.chain("stop", 2, begin, ("h", 1), (last, 4), burst=3)
        text = d.described(*parts, chain, d.chain("imu", 1, ("n", 2), ("h", 1)))
        one, system = bound_of(text, "stop"), parse(text)
        alone_ns = bound_ns(text.replace("burst = 3\n", ""), "stop")
        assert one.bound_ns >= alone_ns + 2 * 4 * MS, "the last callbacks of two others"
        assert (2 + 1 + 3 * 4) * MS <= worst_of(system)["stop"] <= one.bound_ns
    with pytest.raises(NoBoundError, match="that goes to a board, with losses"):
        bounds_of(system, "tide", 1)


@pytest.mark.parametrize("executor", ["tide", "lanes"])
def test_a_burst_of_the_host_may_end_at_a_board(executor: str) -> None:
    begin = ("h", 1, {"name": "pressed", "kind": "event"})
    parts = d.board("m"), d.line("l", agent_ms=1, return_ms=1), d.host("h")
    text = d.described(*parts, d.chain("drive", 2, begin, ("m", 4), burst=3), d.chain("imu", 1, ("m", 2), ("h", 1)))
    one, system = bound_of(text, "drive", executor), parse(text)
    assert (1 + 3 * 4) * MS <= worst_of(system, executor)["drive"] <= one.bound_ns
    assert bounds_of(system, executor).needs[0].sizes["subscription_depth"] == 3
    for losses, other, says in ((0, "batch", "a batch executor"), (1, executor, "a board, with losses")):
        with pytest.raises(NoBoundError, match=f"there is no bound for bursts in a chain that goes to {says}"):
            bounds_of(system, other, losses)
