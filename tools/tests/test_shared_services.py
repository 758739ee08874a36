# SPDX-License-Identifier: Apache-2.0
"""A callback (a service or a subscription) that is in several chains: valid descriptions, bounds, the shipped code in
virtual time, and a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_service_chains import SET_BOOL, described, service

from bounded import MS, all_ns, bound_ns, refusal, worst_of
from commands import tide
from descriptions import chain
from tide_tools.analysis import lower
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError, host_document, link_document
from tide_tools.analysis.sizing import client_of, pools
from tide_tools.play.boards import BoardsPlayer
from tide_tools.run.messages import MODULI, Number
from tide_tools.run.plan import (
    BoardChain,
    PlanError,
    nodes_of,
    plan_of,
    unplayable,
    with_services_apart,
    with_topics_apart,
    write_board_plan,
)
from tide_tools.system.levels import check_levels, levels, shared_priorities
from tide_tools.system.load import parse
from tide_tools.system.model import System
from tide_tools.system.servers import servers_of, with_servers
from tide_tools.watch.chains import points_of

GOAL = "test_msgs/action/Fibonacci_SendGoal"  # a request with two fields


def sharing(*ways: str, times: tuple[float, ...] = (1, 4, 1), kind: str = SET_BOOL, **names: Any) -> str:
    """A description with the chains c0, c1, ..., which call the service `one`. The first chain is the most urgent."""
    chains = [service(f"c{n}", way, priority=9 - n, times=times, **names) for n, way in enumerate(ways)]
    shared = [chain.replace(f'"c{n}/set"', '"one"').replace(SET_BOOL, kind) for n, chain in enumerate(chains)]
    return described(*shared)


def with_lanes(text: str, lanes: int) -> str:
    return text.replace('name = "h"\nwhere = "host"\n', f'name = "h"\nwhere = "host"\nlanes = {lanes}\n')


# ---- the description ----


def test_several_chains_may_ask_one_service_of_the_host() -> None:
    system = parse(sharing("mhm", "nhn", "ghg"))
    assert [one.executor for one in servers_of(system)["service 'one'"]] == ["h", "h", "h"]
    (group,) = with_servers(system).groups
    assert {one.group for one in servers_of(with_servers(system))["service 'one'"]} == {
        group.name
    } and group.kind == "exclusive"
    assert not system.groups, "what was read stays as it is"


def last_changed(text: str, old: str, new: str) -> str:
    head, found_it, tail = text.rpartition(old)
    assert found_it
    return head + new + tail


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (sharing("mhm", "ngn"), "has servers on the executors 'h' and 'g'"),
        (
            last_changed(
                last_changed(sharing("mhm", "nhn"), SET_BOOL, "nav_msgs/srv/GetMap"), SET_BOOL, "nav_msgs/srv/GetMap"
            ),
            "service 'one' is std_srvs/srv/SetBool in chain 'c0' and nav_msgs/srv/GetMap in chain 'c1'",
        ),
        (
            last_changed(sharing("mhm", "nhn"), 'kind = "service"', 'kind = "service", group = "x"')
            + '\n[[groups]]\nname = "x"\nkind = "reentrant"\n',
            "the server of 'one' has no group in chain 'c0' and group 'x' in chain 'c1', and is one callback",
        ),
    ],
)  # fmt: skip
def test_what_one_service_may_not_be_is_told(text: str, told: str) -> None:
    lines = refusal(text)
    assert any(told in line and ";" in line for line in lines), lines


def test_a_chain_asks_a_service_once() -> None:
    chain = service("c", "mhm").replace('"c/set"', '"one"')
    head, _, tail = chain.partition('  { name = "go_on"')
    again = head.partition("callbacks = [\n")[2].replace('"ask"', '"ask_again"').replace('"serve"', '"serve_again"')
    again = again.replace('kind = "timer"', 'kind = "client"')
    (line,) = refusal(described(head + again + '  { name = "go_on"' + tail))
    assert "is already that of 'serve' of chain 'c'; use one service for each step of a chain" in line


# ---- bounds ----


def test_requests_of_one_service_exclude_each_other_whatever_the_lanes() -> None:
    """Each chain waits for one request of each other chain. A chain that does not call the service waits only while no
    lane is free."""
    assert all_ns(with_lanes(sharing("mhm", "nhn", "ghg"), 3))["c2"] == (1 + 3 * 4 + 1) * MS
    beside = chain("x", 1, ("h", 5, {"name": "tick"}), period_ms=200, reliability="reliable")
    system = parse(with_lanes(sharing("mhm", "mhm"), 2) + beside)
    assert all_ns(system)["x"] == 5 * MS  # not delayed, because the server occupies at most one lane
    assert worst_of(system)["x"] <= 5 * MS + 1000


def test_an_urgent_chain_waits_for_requests_that_came_before() -> None:
    """An executor with priorities does not change the order of requests for the same callback."""
    system = parse(sharing("ghg", "ghg", "ghg"))
    executors = {one["name"]: one["policy"] for one in host_document(with_servers(system), "priority")["executors"]}
    assert executors == {"h": "any_order", "g": "priority"}
    bounds = bounds_of(system, "priority")
    assert (bounds.chain("c0").bound_ns or 0) >= 3 * 4 * MS
    assert [one.model for one in bounds.models] == ["any_order", "priority"]
    assert any(one.id == "servers" for one in bounds.assumptions)


def test_a_reentrant_group_lets_requests_overlap() -> None:
    text = with_lanes(sharing("ghg", "ghg"), 2)
    group = '\n[[groups]]\nname = "x"\nkind = "reentrant"\n'
    overlapping = text.replace('kind = "service"', 'kind = "service", group = "x"') + group
    assert bound_ns(overlapping, "c0") < bound_ns(text, "c0")


# ---- the shipped code in virtual time ----


@pytest.mark.parametrize("lanes", [1, 3])
def test_chains_of_boards_and_nodes_keep_to_their_bounds(lanes: int) -> None:
    system = parse(with_lanes(sharing("mhm", "nhn", "ghg", times=(1, 9, 1)), lanes))
    worst = worst_of(system, runs=24)
    for name, bound in all_ns(system, "tide").items():
        assert worst[name] <= bound, name
    assert max(worst.values()) > (1 + 2 * 9 + 1) * MS, "nobody waits for anybody"


def test_without_exclusion_nobody_would_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plan does not say that requests exclude each other, the simulator serves them in parallel, which takes
    less time."""
    system = parse(with_lanes(sharing("ghg", "ghg", "ghg", "mhm", times=(1, 9, 1)), 4))
    one_at_a_time = worst_of(system, "tide", 24)
    monkeypatch.setattr(BoardsPlayer, "_group_of", lambda *_: 0)
    assert max(worst_of(system, "tide", 24).values()) < max(one_at_a_time.values())


# ---- a run ----


def node_task(system: System, name: str, tmp_path: Path) -> dict[str, Any]:
    executor = system.executor(name)
    return nodes_of(system, executor, plan_of(system, executor, 5), tmp_path)


def requests_of(chains: list[BoardChain]) -> list[bytes]:
    return [sent.sample.body for one in chains for sent in one.callbacks[0].sends]


def test_a_request_says_whose_it_is(tmp_path: Path) -> None:
    """A request says which board or node sent it, whatever the number of its instance."""
    system = parse(sharing("mhm", "mhm", "ghg", kind=GOAL, request=20))
    served = [chain["callbacks"][0]["takes"] for chain in node_task(system, "h", tmp_path)["chains"]]
    assert [one["mark"]["value"] for one in served] == [0, 1, 2]
    bodies = [
        *requests_of(plan_of(system, system.executor("m"), 5)),
        *requests_of(plan_of(system, system.executor("g"), 5)),
    ]
    for number, body in enumerate(bodies):
        for index in (0, 1, 77, MODULI["u16"] + 3):
            message = bytearray(body)
            Number(served[number]["kind"], served[number]["offset"]).written(message, index)
            marks = [Number(one["mark"]["kind"], one["mark"]["offset"]).read(bytes(message)) for one in served]
            assert marks == [number] * 3


# ---- a service of a board ----

SERVED = ("hmh", "gmg", "nmn")


def test_who_asks_one_service_of_a_board_has_one_level_there() -> None:
    """On the board of the service, all callers have the level of the most urgent of them; on other boards, they have
    their own. If a chain calls two services, all callers of either service have the same level."""
    system = parse(sharing(*SERVED).replace("priority = 8", "priority = 20"))
    assert levels(system, "m") == {"c0": 20, "c1": 20, "c2": 20}
    assert levels(system, "n") == {"c2": 7}
    assert not any(check_levels(system)) and not with_servers(system).groups
    document = link_document(parse(sharing("hmh", "gmg")))
    assert [(one["priority"], one["shares_level"]) for one in document["chains"]] == [(9, True), (9, True)]
    alone = link_document(parse(described(service("c0", "hmh", priority=9), service("c1", "gmg", priority=8))))
    assert [(one["priority"], "shares_level" in one) for one in alone["chains"]] == [(9, False), (8, False)]


def test_levels_of_services_that_chains_have_in_common_are_one() -> None:
    first, second = sharing("hmh", "gmg"), sharing("hmh", "gmg").replace('"one"', '"other"')
    chains = [
        *first.partition("[[chains]]")[2].split("[[chains]]"),
        *second.partition("[[chains]]")[2].split("[[chains]]"),
    ]
    apart = [
        chain.replace(f'"c{n % 2}"', f'"c{n}"').replace(f"= {9 - n % 2}\n", f"= {9 - n}\n")
        for n, chain in enumerate(chains)
    ]
    text = first.partition("[[chains]]")[0] + "".join(f"[[chains]]{chain}\n" for chain in apart)
    assert levels(parse(text), "m") == {"c0": 9, "c1": 9, "c2": 7, "c3": 7}
    system = parse(text)
    chain = system.chain("c3")
    both = chain.model_copy(update={"callbacks": (*chain.callbacks, *system.chain("c0").callbacks)})
    found = shared_priorities("m", [*system.chains[:3], both], servers_of(system))
    assert found == {"c0": 9, "c1": 9, "c2": 9, "c3": 9}


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
def test_a_board_serves_several_chains_within_their_bounds(executor: str) -> None:
    """Requests are served in the order of arrival, so the bound of the most urgent chain includes its wait for the
    others."""
    ways = SERVED[:2] if executor == "batch" else SERVED  # batch has no bound for three callers
    system = parse(sharing(*ways, times=(1, 9, 1)))
    bounds = all_ns(system, executor)
    waits_ms = 1 + (len(ways) - 1) * 9 + 1
    assert min(bounds.values()) >= (waits_ms + 9) * MS, bounds
    worst = worst_of(system, executor, 24)
    assert all(worst[name] <= bounds[name] for name in bounds), (worst, bounds)
    assert worst["c0"] > waits_ms * MS, "nobody waits for anybody"


def test_without_the_shared_level_the_bound_of_the_most_urgent_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With lanes and a level for each chain, the board would postpone the requests of the other chains."""
    system = parse(sharing(*SERVED, times=(1, 30, 1)))
    worst = worst_of(system, "lanes", 24)
    monkeypatch.setattr(lower, "shared_priorities", lambda *_: {})
    assert worst["c0"] > bound_ns(system, "c0", "lanes")


def test_a_lost_request_of_another_chain_keeps_one_waiting() -> None:
    """The requests of both chains are on the same stream, which delivers messages in order."""
    link = "escaped_bytes = 0\nexact_sizes = true\nheartbeat_delay_ms = 20\nagent_heartbeat_ms = 20"
    chains = [service(f"c{n}", way, priority=9 - n) for n, way in enumerate(SERVED[:2])]
    apart = described(*chains, link=link).replace("_ms = 200\n", "_ms = 2000\n")
    together = apart.replace('"c0/set"', '"one"').replace('"c1/set"', '"one"')
    apart_ns = bound_ns(apart, "c0", "tide", 1)
    assert bound_ns(together, "c0", "tide", 1) > apart_ns + 2 * 100 * MS, (
        "the question about what was lost comes after 100 ms"
    )


def test_a_board_is_told_whose_a_request_is(tmp_path: Path) -> None:
    system = parse(sharing(*SERVED, kind=GOAL, request=20))
    file = tmp_path / "m_plan.txt"
    write_board_plan(system.executor("m"), plan_of(system, system.executor("m"), 5), file)
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("callback")]
    assert [line[-1] for line in lines] == ["0", "1", "2"] and len({tuple(line[-3:-1]) for line in lines}) == 1
    askers = [plan_of(system, system.executor(name), 5) for name in "hgn"]
    (kind, offset), bodies = lines[0][-3:-1], [body for one in askers for body in requests_of(one)]
    assert [Number(kind, int(offset)).read(body) for body in bodies] == [0, 1, 2]


def test_a_footprint_has_one_service_with_a_place_for_each_who_asks() -> None:
    sizes = pools(client_of(parse(sharing("hmh", "gmg"))))
    assert (sizes["TIDE_SERVICES"], sizes["TIDE_SERVICE_DEPTH"], sizes["TIDE_CLIENTS"]) == (1, 2, 0)
    assert sizes["TIDE_SLOTS"] == 2 * 2 + 2
    alone = pools(client_of(parse(described(service("c", "hmh"), service("d", "gmg", priority=2)))))
    assert (alone["TIDE_SERVICES"], alone["TIDE_SERVICE_DEPTH"]) == (2, 1)


@pytest.mark.parametrize("ways", [("mhm", "ghg", "nhn"), ("hmh", "gmg")])
def test_chains_whose_requests_cannot_name_them_call_services_of_their_own_in_a_run(ways: tuple[str, ...]) -> None:
    system = parse(sharing(*ways, request=4))
    played, services = with_services_apart(system)
    names = [one.requests.service for chain in played.chains for one in chain.callbacks if one.requests]
    assert services == ["one"] and names == ["one", *(f"one_of_c{n}_ask" for n in range(1, len(ways)))]
    assert names == [one.replies.service for chain in played.chains for one in chain.callbacks if one.replies]
    server = ways[0][1]
    plan = plan_of(played, played.executor(server), 5)
    assert len(plan) == len(ways) and (server == "m" or {len({one.callbacks[0].group for one in plan})} == {1})
    assert all(bound_ns(played, one.name) == bound_ns(system, one.name) for one in system.chains), "it is one server"
    assert levels(played, "m") == levels(system, "m") and not [*unplayable(played)]
    told = parse(sharing(*ways, kind=GOAL, request=20))
    assert with_services_apart(told) == (told, []), "a field of the request names the chain"


def test_a_program_whose_requests_name_no_chain_is_refused_before_a_run(tmp_path: Path) -> None:
    mine = sharing("mhm", "ghg", request=4).replace('name = "g"\n', 'name = "g"\ncommand = "./mine"\n')
    file = tmp_path / "mine.toml"
    file.write_text(mine, encoding="utf-8")
    status, output = tide("run", file, "--out", tmp_path / "out")
    assert status != 0 and re.search(
        r"mine\.toml:\d+: service 'one' is called by 2 chains, and 'ask' is of your", output
    )
    assert "give the server, 'h', a program, too" in output and not (tmp_path / "out").exists()
    theirs = mine.replace('name = "h"\n', 'name = "h"\ncommand = "./theirs"\n')
    assert not [*unplayable(parse(theirs))] and plan_of(parse(theirs), parse(theirs).executor("m"), 5)


# ---- a subscription of a topic that several callbacks publish ----


def published(*ways: str, times: tuple[float, float] = (1, 4), reliability: str = "best_effort") -> str:
    """A description with the chains c0, c1, .... Their timers publish the topic `cmd_vel`, which one subscription
    takes. The first chain is the most urgent."""
    chains = [
        chain(
            f"c{n}",
            9 - n,
            (way[0], times[0], {"name": "tick", "publishes": {"topic": "cmd_vel", "payload_bytes": 48}}),
            (way[1], times[1], {"name": "drive"}),
            period_ms=200,
            reliability=reliability,
        )
        for n, way in enumerate(ways)
    ]
    return described(*chains)


def test_several_callbacks_may_publish_a_topic_that_one_subscription_takes() -> None:
    system = parse(published("hg", "hg", "mg"))
    ((words, several),) = servers_of(system).items()
    assert words == "subscription 'drive' of topic 'cmd_vel' on 'g'" and len(several) == 3
    bounds = all_ns(with_lanes(published("gh", "gh"), 3))
    assert min(bounds.values()) >= (1 + 4 + 4) * MS, "one at a time, whatever the lanes"
    executors = host_document(with_servers(parse(published("hg", "hg"))), "priority")["executors"]
    assert {one["name"]: one["policy"] for one in executors} == {"h": "priority", "g": "any_order"}
    assert any("a subscription of a topic that several" in one.text for one in bounds_of(system).assumptions)


def test_a_topic_that_nobody_takes_may_have_any_publishers() -> None:
    first = published("hg", "gh").split('[[chains.callbacks]]\nname = "drive"')[0]
    again = first.partition("[[chains]]")[2].replace('"c0"', '"c1"').replace("= 9\n", "= 8\n")
    assert servers_of(parse(f"{first}[[chains]]{again}")) == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"drive"', '"other"', "'drive' on executor 'g' takes topic 'cmd_vel' of 'tick' of chain 'c0', and therefore"),
        ('"cmd_vel"', '"cmd_vel", type = "std_msgs/msg/Bool"', "topic 'cmd_vel' is std_msgs/msg/String of 'tick'"),
        ('"drive"', '"drive"\ngroup = "x"', "subscription 'drive' of 'cmd_vel' has no group in chain 'c0' and group"),
    ],
)
def test_what_one_subscription_may_not_be_is_told(old: str, new: str, told: str) -> None:
    text = last_changed(published("hg", "hg"), old, new) + '\n[[groups]]\nname = "x"\nkind = "exclusive"\n'
    lines = refusal(text)
    assert any(told in line and ";" in line for line in lines), lines


@pytest.mark.parametrize(("executor", "losses", "told"), [("batch", 0, "use tide"), ("tide", 1, "without losses")])
def test_where_one_subscription_of_a_board_has_no_bound_is_told(executor: str, losses: int, told: str) -> None:
    with pytest.raises(NoBoundError) as found:
        bounds_of(parse(published("hm", "gm", reliability="reliable")), executor, losses)
    assert (
        told in found.value.findings[0].remedy and "'drive' of topic 'cmd_vel' on 'm'" in found.value.findings[0].what
    )


@pytest.mark.parametrize("executor", ["tide", "lanes"])
def test_a_board_takes_messages_of_several_publishers_within_their_bounds(executor: str) -> None:
    system = parse(published("hm", "gm", "hm", times=(1, 9)))
    assert set(levels(system, "m").values()) == {9}
    bounds, worst = all_ns(system, executor), worst_of(system, executor, 24)
    assert min(bounds.values()) >= 3 * 9 * MS, "the most urgent one waits for the others, too"
    assert all(worst[name] <= bounds[name] for name in bounds), (worst, bounds)
    assert worst["c0"] > 2 * 9 * MS, "nobody waits for anybody"


def test_a_footprint_has_one_subscription_with_room_for_all_publishers() -> None:
    sizes = pools(client_of(parse(published("hm", "gm"))))
    assert (sizes["TIDE_SUBSCRIPTIONS"], sizes["TIDE_SUBSCRIPTION_DEPTH"]) == (1, 2)


def test_a_run_plays_each_publisher_on_a_topic_of_its_own() -> None:
    text = published("hg", "gg", "mg")
    system, topics = with_topics_apart(parse(text))
    assert topics == ["cmd_vel"] and all_ns(system) == all_ns(text), "the bounds are those of the description"
    assert [one.callbacks[0].publishes[0].topic for one in system.chains] == [
        "cmd_vel",
        "cmd_vel_of_c1_tick",
        "cmd_vel_of_c2_tick",
    ]
    alone = parse(published("hg"))
    assert with_topics_apart(alone) == (alone, [])
    mine = published("hg", "mg").replace('name = "h"\n', 'name = "h"\ncommand = "./mine"\n')
    apart, _ = with_topics_apart(parse(mine))
    assert [one.callbacks[0].publishes[0].topic for one in apart.chains] == ["cmd_vel", "cmd_vel_of_c1_tick"]
    for name in ("g", "h"):
        theirs = published("hg", "hg").replace(f'name = "{name}"\n', f'name = "{name}"\ncommand = "./mine"\n')
        with pytest.raises(PlanError, match="topic 'cmd_vel' has several publishers, and its messages do not say"):
            with_topics_apart(parse(theirs))


def test_what_several_publish_is_not_watched() -> None:
    points = points_of(parse(published("hg", "hg")), 1000)
    assert all(one.unseen == ("/cmd_vel has several publishers, whose messages look alike",) for one in points)
