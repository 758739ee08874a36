# SPDX-License-Identifier: Apache-2.0
"""Draws the whole system description for a seed of a family. The result is the content of a system.toml, and later
steps use nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tide_lab.hunt.families import BATCHES, Family
from tide_tools.system.model import Chain

Document = dict[str, Any]
# Names that become ambiguous when they are joined by a character that is allowed in names.
_ALIKE = ("a", "b", "c", "a_b", "b_c", "a_1", "a_2", "a_b_1", "a_b_c", "b_itself", "a_b_itself", "c_itself", "itself")
_PERIODS_MS = (4, 5, 8, 10, 16, 20, 25, 40, 50, 80, 100, 200)


def draw(of: Family, seed: int) -> Document:
    """The description for this seed. The number of lost frames is not a part of it; see losses_of."""
    return _Draw(of, random.Random(f"{of.name} {seed}")).document()


class _Draw:
    def __init__(self, of: Family, source: random.Random) -> None:
        self.of = of
        self.random = source
        self.alike = source.random() < 0.25
        self.few = source.random() < 0.35  # few chains with short callbacks, so that the line and the host matter more

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def names(self, letter: str, count: int) -> list[str]:
        if self.alike:
            return self.random.sample(_ALIKE, count)
        return [f"{letter}{number}" for number in range(count)]

    def document(self) -> Document:
        document = self.chains_and_places()
        if self.of.board and self.of.groups:
            self.group(document)
        if self.of.trees and self.chance(self.of.trees):
            add_tree(document, self.random, reliable=self.of.reliable, few=self.few, services=self.of.services)
            self.widen(document)
        if self.of.publishing and self.chance(self.of.publishing):
            add_topics(document, self.random)
            self.widen(document)
        for chain in document["chains"] if self.of.actions else ():
            ask_for_result(chain, self.host_names(document), self.random, self.of.actions)
        document["paths"] = self.paths(document["chains"]) if self.of.paths and self.chance(self.of.paths) else []
        document["locks"] = self.locks(document) if self.of.locks and self.chance(self.of.locks) else []
        amid = {name for path in document["paths"] for name in path["chains"][1:]}
        for chain in document["chains"] if self.of.events else ():
            if chain["name"] not in amid:
                self.begin_with_event(chain, document["executors"])
        for chain in tuple(document["chains"]) if self.of.seldom else ():
            self.publish_seldom(chain, document)
        if self.of.shared and self.chance(self.of.shared):
            (self.share_topic if self.of.topics else self.share)(document)
            self.widen(document)
        return document

    def publish_seldom(self, chain: Document, document: Document) -> None:
        """Lets a chain's first callback, if it is on the host, publish a further topic: in every nth run, or at a least
        distance in time. A new chain takes the topic."""
        first, *rest = chain["callbacks"]
        hosts = self.host_names(document)
        used = {named.partition(".")[0] for one in document["chains"] for named in [one.get("branches_from", "")]}
        is_alone = "branches_from" not in chain and chain["name"] not in used
        if not rest or first["executor"] not in hosts or not is_alone or not self.chance(self.of.seldom):
            return
        name, apart = f"{chain['name']}_more", self.random.choice((2, 5, 1.5))
        topic: Document = {"topic": f"{name}/b0", "payload_bytes": self.random.randint(8, 90)}
        topic |= {"distance_ms": chain["period_ms"] * apart} if apart == 1.5 else {"every": apart}
        rest[0]["topic"] = first["publishes"]["topic"]
        first["publishes"] = [first["publishes"], topic]
        taken = {one["priority"] for one in document["chains"]}
        more = {"name": name, "priority": self.random.choice([one for one in range(1, 127) if one not in taken])}
        more |= {"period_ms": chain["period_ms"] * apart, "deadline_ms": chain["period_ms"] * apart}
        more |= {"reliability": chain["reliability"], "branches_from": f"{chain['name']}.{first['name']}"}
        taker = {"name": "b0", "kind": "subscription", "executor": self.random.choice(hosts)}
        more["callbacks"] = [taker | {"execution_ms": round(self.random.uniform(0, 1), 2), "topic": topic["topic"]}]
        document["chains"].append(more)

    def group(self, document: Document) -> None:
        """In a description with a board: puts callbacks of the host in groups at random."""
        hosts = [one for one in document["executors"] if one["where"] == "host"]
        document["groups"] = self.groups(hosts)
        for callback in (one for chain in document["chains"] for one in chain["callbacks"]):
            names = [one["name"] for one in document["groups"] if one["executor"] == callback["executor"]]
            if names and self.chance(0.6):
                callback["group"] = self.random.choice(names)

    def widen(self, document: Document) -> None:
        """Of several boards, gives each that has several lanes a lane for each of its chains."""
        for board in document["executors"]:
            if self.of.boards != (1,) and board["where"] == "mcu" and board["lanes"] > 1:
                coming = [
                    chain
                    for chain in document["chains"]
                    if any(one["executor"] == board["name"] for one in chain["callbacks"])
                ]
                board["lanes"] = max(len(coming), 1)

    def begin_with_event(self, chain: Document, executors: Sequence[Document]) -> None:
        first = chain["callbacks"][0]
        hosts = [one["name"] for one in executors if one["where"] == "host"]
        on_host = first["executor"] in hosts
        if "branches_from" in chain or on_host != self.of.host_events or not self.chance(self.of.events):
            return
        first["kind"] = "event"
        if on_host:
            chain.pop("jitter_ms", None)
            chain |= {"burst": self.random.choice((1, 1, 2, 3))}
            return
        (board,) = (one for one in executors if one["name"] == first["executor"])
        board.pop("policy", None)  # a batch executor has no bounds for such chains
        chain.pop("jitter_ms", None)
        if self.of.executors != BATCHES and self.chance(0.5):
            chain["burst"] = self.random.choice((2, 2, 3, 5))

    def share(self, document: Document) -> None:
        """Lets nearly all chains that call a service (of a board or of the host, by shared_on) call the same service,
        or one of two services."""
        places = [one["name"] for one in document["executors"] if one["where"] == self.of.shared_on]
        chains = [one for one in document["chains"] if self.is_asking(one, places)]
        names = ("one", "other") if len(chains) > 3 and self.chance(0.3) else ("one",)
        of = {name: self.random.choice(places) for name in names}
        for chain in chains:
            name = self.random.choice(names)
            if len(chains) > 2 and self.chance(0.1):
                continue
            asks, serves, takes = chain["callbacks"]
            if self.of.shared_on == "mcu" and asks["executor"] == of[name]:  # a simulated board cannot call itself
                asks["executor"] = takes["executor"] = self.random.choice(self.host_names(document))
            serves["executor"] = of[name]
            serves.pop("group", None)
            asks["requests"]["service"] = serves["replies"]["service"] = name

    def share_topic(self, document: Document) -> None:
        """Lets several chains publish the topic of the same subscription, or of one of two subscriptions."""
        places = [one["name"] for one in document["executors"] if one["where"] == self.of.shared_on]
        for name in ("one", "other") if self.chance(0.3) else ("one",):
            place = self.random.choice(places)
            for chain in document["chains"]:
                steps = [n for n, one in enumerate(chain["callbacks"]) if n > 0 and one["name"] != "one"]
                if not steps or self.chance(0.15):
                    continue
                number = self.random.choice(steps)
                taker = chain["callbacks"][number]
                taker |= {"name": name, "executor": place}
                chain["callbacks"][number - 1]["publishes"]["topic"] = name
                for one in chain["callbacks"][number : number + 2]:
                    one.pop("propagation_ms", None)
                taker.pop("group", None)

    @staticmethod
    def host_names(document: Document) -> list[str]:
        return [one["name"] for one in document["executors"] if one["where"] == "host"]

    def is_asking(self, chain: Document, places: Sequence[str]) -> bool:
        if len(chain["callbacks"]) != 3:
            return False
        asks, serves, takes = chain["callbacks"]
        if not self.of.board:
            takes["executor"] = asks["executor"]
            takes.pop("group", None)
            self.make_service(chain)
        return "requests" in asks and serves["executor"] in places

    def locks(self, document: Document) -> list[Document]:
        """Locks for some callbacks; in a description with boards, only for callbacks of boards."""
        callbacks = [(chain["name"], one) for chain in document["chains"] for one in chain["callbacks"]]
        left_us = {
            f"{name}.{one['name']}": round(one["execution_ms"] * 1000)
            for name, one in callbacks
            if one["execution_ms"] >= 0.01 and (not self.of.board or one["executor"] == "m")
        }
        locks, (long, part) = [], (0.5, 3) if self.of.board else (0.2, 4)
        for name in self.names("l", self.random.randint(1, 3)):
            free = [one for one in left_us if left_us[one] > 1]
            if len(free) < 2:
                break
            sections = []
            for one in self.random.sample(free, self.random.randint(2, min(5, len(free)))):
                most_us = left_us[one] if self.chance(long) else max(1, left_us[one] // part)
                left_us[one] -= (section_us := most_us if self.chance(0.3) else self.random.randint(1, most_us))
                sections.append({"callback": one, "section_ms": section_us / 1000})
            locks.append({"name": name, "sections": sections})
        return locks

    def paths(self, chains: Sequence[Document]) -> list[Document]:
        """Paths, each from one chain to another one that begins where the first one ends. The chains are short, so that
        they have bounds."""
        begins = {chain["name"]: self.root(chain, chains)["callbacks"][0]["executor"] for chain in chains}
        paths = []
        for name in self.names("p", 2):
            way = [self.random.choice(chains)]
            for _ in range(self.random.randint(1, 3)):
                end = way[-1]["callbacks"][-1]["executor"]
                fitting = [one for one in chains if one not in way and begins[one["name"]] == end]
                if not fitting:
                    break
                way.append(self.random.choice(fitting))
            if len(way) > 1:
                paths.append({"name": name, "chains": [one["name"] for one in way]})
        return paths

    def chains_and_places(self) -> Document:
        hosts = self.hosts()
        document: Document = {"executors": hosts, "links": [], "groups": [], "chains": []}
        if self.of.boards != (1,):
            return self.boards(document)
        if self.of.board:
            document["executors"] = [self.client(), *hosts]
            document["links"] = [self.ethernet() if self.of.rtps else self.link()]
            if self.of.delays:
                document["links"] = [self.network(document["links"][0])]
            document["chains"] = self.board_chains(document)
            if self.of.cores:
                self.pin(document)
            if self.of.divided:
                self.divide(document)
            if self.of.loads:
                document["executors"][0]["loads"] = [
                    self.load(name) for name in ("w0", "w1")[: self.random.choice((1, 1, 2))]
                ]
            return document
        document["groups"] = self.groups(hosts)
        document["chains"] = self.host_chains(document)
        if self.chance(self.of.own_priorities):
            self.give_priorities(document)
        if self.of.names:
            self.name_executors(document)
        if self.of.cores:
            self.pin(document)
        return document

    # ---- the host ----

    def name_executors(self, document: Document) -> None:
        for host in document["executors"]:
            several = ("multi_threaded", "events_cbg", "tide", "callback_isolated")
            single = ("single_threaded", "events", "events", "events_cbg", "callback_isolated", "tide")
            policy = host["policy"] = self.random.choice(single if host["lanes"] == 1 else several)
            if policy == "callback_isolated":
                host["lanes"] = 1
                host["scheduling"] = "deadline" if "budget_ms" in host else "fifo"
                for group in document["groups"]:
                    group["kind"] = "exclusive" if group["executor"] == host["name"] else group["kind"]

    def load(self, name: str) -> Document:
        """A load of the board, which sleeps in most descriptions."""
        period_ms = self.random.choice((5, 8, 10, 20, 50))
        load = {
            "name": name,
            "period_ms": period_ms,
            "execution_ms": round(period_ms * self.random.uniform(0.02, 0.15), 2),
        }
        return load | ({"sleeps": True} if self.chance(0.7) else {})

    def divide(self, document: Document) -> None:
        """Moves the callbacks of the board's most urgent chains to a second executor on its core, which preempts."""
        board = document["executors"][0]
        board.pop("policy", None)
        board |= {"board": "b", "core": 0, "thread_priority": 3, "lanes": 1}
        urgent = board | {"name": f"{board['name']}_urgent", "thread_priority": 7}
        document["executors"].insert(1, urgent)
        least = self.random.choice([chain["priority"] for chain in document["chains"]])
        for chain in document["chains"]:
            for callback in chain["callbacks"] if chain["priority"] >= least else ():
                if callback["executor"] == board["name"]:
                    callback["executor"] = urgent["name"]

    def pin(self, document: Document) -> None:
        """Pins each thread of the host to one of two cores, with a priority of its own."""
        priorities = iter(self.random.sample(range(1, 100), 60))

        def pinned() -> Document:
            return {"core": self.random.choice((0, 0, 2)), "thread_priority": next(priorities)}

        for host in (one for one in document["executors"] if one["where"] == "host"):
            host |= pinned() if self.chance(0.9) else {}
            if host.get("policy") != "callback_isolated":
                continue
            for key in ("core", "thread_priority"):  # each callback has a group, which names them
                host.pop(key, None)
            for callback in (one for chain in document["chains"] for one in chain["callbacks"]):
                if callback["executor"] == host["name"] and "group" not in callback:
                    callback["group"] = f"{host['name']}_{len(document['groups'])}"
                    group = {"name": callback["group"], "kind": "exclusive", "executor": host["name"]}
                    document["groups"].append(group)
            for group in (one for one in document["groups"] if one["executor"] == host["name"]):
                group |= pinned()

    def hosts(self) -> list[Document]:
        count = self.random.choice(self.of.hosts)
        executors = []
        for name in self.names("h", count):
            executor: Document = {"name": name, "where": "host", "lanes": self.random.choice(self.of.lanes)}
            if self.chance(self.of.budgets):
                period_ms = self.random.choice((2, 4, 5, 10))
                executor["budget_ms"] = round(period_ms * self.random.choice((0.4, 0.5, 0.6, 0.8, 0.9)), 3)
                executor["budget_period_ms"] = period_ms
            executors.append(executor)
        return executors

    def groups(self, hosts: Sequence[Document]) -> list[Document]:
        if not self.chance(self.of.groups):
            return []
        count = self.random.randint(1, 3)
        kinds = ("exclusive", "exclusive", "reentrant")
        return [
            {"name": name, "kind": self.random.choice(kinds), "executor": self.random.choice(hosts)["name"]}
            for name in self.names("g", count)
        ]

    def host_chains(self, document: Document) -> list[Document]:
        hosts = document["executors"]
        crowd = self.chance(0.3)  # one fast timer and many slow chains
        count = self.random.randint(3, 9) if crowd else self.random.randint(2, 4 if len(hosts) == 1 else 5)
        # The share of the processors that all lanes get together: one for each lane, or that of its budget.
        capacity = sum(one["lanes"] * one.get("budget_ms", 1) / one.get("budget_period_ms", 1) for one in hosts)
        # A chain that moves between executors adds load to each of them.
        load = self.random.uniform(0.3, 0.9 if len(hosts) == 1 else 0.6) * capacity
        if self.of.rings:
            crowd, load = False, load * 0.8
        if self.of.cores:
            load = self.random.uniform(0.3, 1.3)
        if self.of.shared:  # less load, because all servers are on one executor
            crowd, load = False, load * 0.6
        shares = self.parts(load, count)
        priorities = self.random.sample(range(1, 127), count)
        chains: list[Document] = []
        for place, (name, share, priority) in enumerate(zip(self.names("c", count), shares, priorities, strict=True)):
            if crowd:
                period_ms, steps = (
                    (self.random.choice((4, 5, 8)), 1) if place == 0 else (100, self.random.randint(1, 2))
                )
            else:
                period_ms, steps = self.random.choice(_PERIODS_MS), self.random.choice((1, 1, 2, 2, 3, 4, 6))
            if self.of.shared:
                steps = self.random.choice((1, 3, 3, 3))
            if self.of.rings:
                period_ms, steps = self.random.choice((20, 40, 50, 80, 100)), self.random.choice((2, 3, 3, 4))
            chain: Document = {"name": name, "priority": priority, "period_ms": period_ms}
            if chains and self.of.branches and self.chance(0.6):
                other = self.random.choice(chains)
                chain["branches_from"] = f"{other['name']}.{self.random.choice(other['callbacks'])['name']}"
                chain["period_ms"] = other["period_ms"]
                if self.of.joins and self.chance(self.of.joins):
                    self.join(chain, chains)
            if "branches_from" not in chain:
                self.give_jitter(chain)
            chain["reliability"] = "reliable"
            chain["callbacks"] = self.host_callbacks(document, chain, min(share, 0.8), steps)
            before_ms = self.shared_ms(chain, chains)
            own_ms = sum(one["execution_ms"] + one.get("propagation_ms", 0) for one in chain["callbacks"])
            least_ms = before_ms + own_ms + self.root(chain, chains).get("jitter_ms", 0)
            chain["deadline_ms"] = max(self.deadline_ms(chain["period_ms"]), round(least_ms + 0.1, 1))
            chains.append(chain)
        return chains

    def join(self, chain: Document, chains: Sequence[Document]) -> None:
        """Makes the chain join: adds one or two callbacks that start after the same timer."""
        root = self.root(chain, chains)
        named = [
            f"{other['name']}.{callback['name']}"
            for other in chains
            if self.root(other, chains) is root
            for callback in other["callbacks"]
        ]
        named.remove(chain["branches_from"])
        count = min(len(named), self.random.choice((1, 1, 2)))
        if count > 0:
            chain["joins"] = self.random.sample(named, count)

    def give_jitter(self, chain: Document) -> None:
        if "jitter_ms" in Chain.model_fields and self.chance(0.2):
            chain["jitter_ms"] = round(chain["period_ms"] * self.random.choice((0.05, 0.1, 0.25)), 2)

    def shared_ms(self, chain: Document, chains: Sequence[Document]) -> float:
        """Execution time of the callbacks that this chain shares with the chain from which it branches."""
        if "branches_from" not in chain:
            return 0.0
        name, _, last = chain["branches_from"].partition(".")
        other = next(one for one in chains if one["name"] == name)
        place = next(place for place, one in enumerate(other["callbacks"]) if one["name"] == last)
        shared_ms = sum(one["execution_ms"] for one in other["callbacks"][: place + 1])
        return float(shared_ms + self.shared_ms(other, chains))

    def root(self, chain: Document, chains: Sequence[Document]) -> Document:
        """The chain whose timer starts this chain."""
        while "branches_from" in chain:
            name = chain["branches_from"].partition(".")[0]
            chain = next(one for one in chains if one["name"] == name)
        return chain

    def host_callbacks(self, document: Document, chain: Document, share: float, steps: int) -> list[Document]:
        hosts = document["executors"]
        at = self.random.choice(hosts)
        times_ms = [max(0.1, round(one, 1)) for one in self.parts(share * chain["period_ms"], steps)]
        if steps == 2 and self.chance(0.5):  # a short timer callback before a long one
            times_ms = [0.1, max(0.1, round(sum(times_ms) - 0.1, 1))]
        callbacks: list[Document] = []
        for place, (name, execution_ms) in enumerate(zip(self.names("b", steps), times_ms, strict=True)):
            kind = "timer" if place == 0 and "branches_from" not in chain else "subscription"
            callback: Document = {"name": name, "kind": kind, "executor": at["name"], "execution_ms": execution_ms}
            if self.of.rings and self.chance(0.9):
                callback["least_ms"] = round(execution_ms * self.random.choice((0.5, 0.8, 1, 1)), 2)
            elif self.chance(0.2):
                callback["least_ms"] = round(execution_ms * self.random.choice((0.3, 0.5, 1)), 1)
            groups = [one["name"] for one in document["groups"] if one["executor"] == at["name"]]
            if groups and self.chance(0.6):
                callback["group"] = self.random.choice(groups)
            moved = bool(callbacks) and callbacks[-1]["executor"] != at["name"]
            if self.of.propagation and moved and self.chance(self.of.propagation):
                callback["propagation_ms"] = round(chain["period_ms"] * self.random.choice((0.02, 0.1, 0.3)), 2)
            callback["publishes"] = {"topic": f"{chain['name']}/{name}", "payload_bytes": 8}
            callbacks.append(callback)
            if self.of.rings:
                at = hosts[(hosts.index(at) + 1) % len(hosts)]
            elif len(hosts) > 1 and self.chance(0.5):
                at = self.random.choice(hosts)
        return callbacks

    def deadline_ms(self, period_ms: float) -> float:
        kind = self.random.random()
        if kind < 0.65:
            return period_ms
        factor = self.random.uniform(0.5, 1) if kind < 0.8 else self.random.uniform(1, 3)
        return max(0.1, round(period_ms * factor, 1))

    def give_priorities(self, document: Document) -> None:
        most = self.random.choice((6, 12, 40))
        for chain in document["chains"]:
            rising = self.random.randint(1, most)
            ordered = self.chance(0.5)  # with priorities in the order that tide_chain_add gives them
            for place, callback in enumerate(chain["callbacks"]):
                callback["priority"] = rising + place if ordered else self.random.randint(1, most)

    def parts(self, whole: float, count: int) -> list[float]:
        """Divides a whole into parts, drawn uniformly from all divisions (UUniFast)."""
        parts, rest = [], whole
        for left in range(count - 1, 0, -1):
            further = rest * self.random.random() ** (1 / left)
            parts.append(rest - further)
            rest = further
        self.random.shuffle(parts := [*parts, rest])
        return parts

    # ---- several boards ----

    def boards(self, document: Document) -> Document:
        count = self.random.choice(self.of.boards)
        clients = [self.client() | {"name": f"m{place}", "link": f"l{place}"} for place in range(count)]
        document["links"] = [self.link() | {"name": f"l{place}"} for place in range(count)]
        for place, link in enumerate(document["links"]):
            if self.chance(self.of.delays or 0.2):
                document["links"][place] = self.network(link)
        if self.of.rtps:
            document["links"][0] = self.ethernet() | {"name": "l0"}
        hosts = document["executors"]
        document["executors"] = [*clients, *hosts]
        names = [one["name"] for one in hosts]
        chain_count = self.random.randint(2, 4 if self.few else 7)
        priorities = self.random.sample(range(1, 127), chain_count)
        mtu_bytes = min(link["mtu_bytes"] for link in document["links"])
        for name, priority in zip(self.names("c", chain_count), priorities, strict=True):
            chain = self.board_chain(name, priority, names, mtu_bytes)
            self.send_round(chain, [one["name"] for one in clients], names, not document["chains"])
            document["chains"].append(chain)
        if self.of.levels:
            self.meet(document["chains"])
            if self.chance(0.02):
                self.crowd(document["chains"], clients)
        for client in clients:
            levels = sum(
                any(one["executor"] == client["name"] for one in chain["callbacks"]) for chain in document["chains"]
            )
            client["lanes"] = self.random.choice((1, max(levels, 1)))
            if self.chance(0.2) and "described" in self.of.executors and self.of.losses == (0,):
                client["policy"] = self.random.choice(BATCHES)
        return document

    def meet(self, chains: Sequence[Document]) -> None:
        """Gives the chains priorities, of which at most nine differ, close together or far apart. Chains with equal
        ones share no executor."""
        step = self.random.choice((1, 40, 7_000, 100_000))
        met: list[tuple[int, set[str]]] = []
        for chain in self.random.sample(chains, len(chains)):
            here = {one["executor"] for one in chain["callbacks"]}
            taken = {priority for priority, there in met if here & there}
            free = [priority for priority in range(step, 10 * step, step) if priority not in taken]
            chain["priority"] = self.random.choice(free)
            met.append((chain["priority"], here))

    def crowd(self, chains: list[Document], clients: Sequence[Document]) -> None:
        """Adds so many chains that a board has more than it has levels. They are less urgent than the others."""
        for client in clients:
            for number in range(130 // len(clients) + 1):
                chain: Document = {"name": f"{client['name']}_{number}", "priority": number + 1, "period_ms": 1000}
                chain |= {"deadline_ms": 1000, "reliability": "best_effort"}
                chain["callbacks"] = [
                    {"name": "t", "kind": "timer", "executor": client["name"], "execution_ms": 0.05, "least_ms": 0.05}
                ]
                chains.append(chain)
        for chain in chains[: len(chains) - len(clients) * (130 // len(clients) + 1)]:
            chain["priority"] += 1000

    def network(self, link: Document) -> Document:
        kept = ("name", "mtu_bytes", "agent_ms", "return_ms", "heartbeat_delay_ms", "agent_heartbeat_ms")
        network = {"kind": "udp"} | {key: link[key] for key in kept if key in link}
        for key in ("agent", "return") if self.of.delays else ():
            if self.chance(0.8):
                longest_ms = network[f"{key}_ms"]
                shares = self.random.choice(((0.5, 0.99), (0.9, 0.999), (0.9999,), (0.25, 0.5, 0.75)))
                network[f"{key}_quantiles_ms"] = {
                    f'"{share}"': round(longest_ms * part, 2)
                    for share, part in zip(shares, sorted(self.random.random() for _ in shares), strict=True)
                }
        return network

    def ethernet(self) -> Document:
        """The network of a board that speaks RTPS. It is slow, so that datagrams take as long as frames on a line."""
        link: Document = {"name": "l", "kind": "rtps", "mbit_per_s": self.random.choice((1, 1, 2, 5, 10, 100))}
        link["mtu_bytes"] = self.random.choice((1472, 4096) if self.of.fragments else (256, 512, 512, 1472, 4096))
        link["datagram_bytes"] = self.random.choice((768, 768, 1472))
        link["queued_datagrams"] = self.random.choice((1, 1, 2, 4))
        link["more_readers"] = self.random.choice((0, 0, 0, 1, 3))
        link["discovery_datagrams"] = self.random.choice((10, 20, 64))
        link["acknowledge_ms"] = self.random.choice((0, 0, 10))
        link["to_host_ms"] = round(self.random.uniform(0, 5), 2) if self.chance(0.7) else 0
        link["to_board_ms"] = round(self.random.uniform(0, 3), 2) if self.chance(0.6) else 0
        if self.of.losses != (0,):
            link["mbit_per_s"] = self.random.choice((5, 10, 100))
            link["heartbeat_ms"] = 40  # with up to two losses, the simulated nodes are as slow as that
        if self.of.queued:
            link |= {"mbit_per_s": 2, "mtu_bytes": 4096, "datagram_bytes": 768, "discovery_datagrams": 10}
            link |= {"queued_datagrams": self.random.choice((4, 8)), "more_readers": self.random.choice((0, 1))}
        return link

    def send_round(self, chain: Document, boards: Sequence[str], hosts: Sequence[str], first: bool) -> None:
        """Gives a chain that goes from board to host and back another form at random. The first chain of a description
        still touches a board."""
        here, there = self.random.sample(boards, 2)
        host = self.random.choice(hosts)
        way = self.random.choice(
            (
                *((here, host, here), (here, host, here), (here, host, there), (here, host, there), (here, there)),
                *((here, host), (host, there), (host,), (here,), (here, here)),
            )
        )
        if "requests" in chain["callbacks"][0]:
            way = self.random.choice(
                ((here, host, here), (host, there, host), (here, there, here), (here, there, here))
                if not self.of.shared
                else ((here, host, here), (here, host, here), (host, host, host), (here, there, here))
                if self.of.shared_on == "host"
                else ((host, there, host), (host, there, host), (here, there, here), (here, there, here))
            )
        if first and set(way) == {host}:
            way = (here,) if len(way) == 1 else (here, host, here)
        chain["callbacks"] = chain["callbacks"][: len(way)]
        for callback, where in zip(chain["callbacks"], way, strict=True):
            callback["executor"] = where
        chain["callbacks"][-1].pop("publishes", None)

    # ---- a board with a line ----

    def client(self) -> Document:
        lanes = 2 if self.of.executors == ("lanes",) or self.chance(0.1) else 1
        client: Document = {"name": "m", "where": "mcu", "lanes": lanes}
        longer = 6 if self.few else 1
        costs_us = (("submit", 400 * longer), ("process", 300), ("dispatch", 30), ("interrupt", 80 * longer))
        for name, most_us in costs_us:
            if self.chance(0.6):
                client[f"{name}_ms"] = self.random.randint(0, most_us) / 1000
        return client

    def link(self) -> Document:
        link: Document = {"name": "l", "kind": "serial", "baud": self.random.choice((115200, 460800, 921600))}
        link["mtu_bytes"] = self.random.choice((128, 256, 512, 512, 512, 4096))
        link["agent_ms"] = round(self.random.uniform(0, 5), 2) if self.chance(0.7) else 0
        link["return_ms"] = round(self.random.uniform(0, 3), 2) if self.chance(0.5) else 0
        known = 0.8 if self.few else 0.5
        link["exact_sizes"] = self.chance(known)
        # in the simulator, no frame has more escaped bytes than these, and no short frame more than 4
        if self.chance(known):
            link["escaped_bytes"] = 4 if self.few else 12
        if self.chance(0.5) or self.of.losses != (0,):
            link["heartbeat_delay_ms"] = self.random.randint(0, 60)
        if self.chance(0.5):
            link["agent_heartbeat_ms"] = self.random.randint(0, 120)
        if self.of.fast:
            link["baud"] = self.random.choice((460800, 921600, 921600, 2_000_000))
            link["agent_ms"] = round(self.random.choice((2, 10, 30)) * self.random.random(), 2)
            link["return_ms"] = round(self.random.choice((1, 10, 20)) * self.random.random(), 2)
        if self.of.wide:
            link["baud"] = self.random.choice((9600, 38400, 115200, 460800, 921600, 4_000_000, 20_000_000))
            link["mtu_bytes"] = self.random.choice((68, 96, 128, 512, 512, 1500, 4096, 16_000, 65_000))
            for key, most in (("agent_ms", 100), ("return_ms", 60)):
                link[key] = round(self.random.choice((0.2, 2, 20, 1)) * self.random.uniform(0, most) / 20, 2)
        return link

    def board_chains(self, document: Document) -> list[Document]:
        hosts = [one["name"] for one in document["executors"] if one["where"] == "host"]
        count = self.random.randint(2 if self.of.shared else 1, 2 if self.few else 6)
        priorities = self.random.sample(range(1, 127), count)
        return [
            self.board_chain(name, priority, hosts, document["links"][0]["mtu_bytes"])
            for name, priority in zip(self.names("c", count), priorities, strict=True)
        ]

    def board_chain(self, name: str, priority: int, hosts: Sequence[str], mtu_bytes: int) -> Document:
        period_ms = self.random.choice((100, 150, 200, 250, 400, 500, 800, 1000))
        if self.of.losses != (0,):
            period_ms = self.random.choice((800, 1000, 1200))
        reliable = self.chance(self.of.reliable)
        execution_ms = 1 if self.few else self.random.choice((2, 8, 15))
        is_host_busy = self.of.groups or (self.of.shared and self.of.shared_on == "host")
        host_ms = self.random.choice((8, 25) if is_host_busy else (1, 8))
        whole = mtu_bytes - (
            52 if self.of.rtps else 20
        )  # longer best-effort messages, too, are sent in fragments by this code
        request, reply = (self.random.randint(8, min(whole, most)) for most in ((200, 20) if self.few else (250, 120)))
        if reliable and self.of.losses == (0,) and not self.few and not self.of.rtps and self.chance(0.15):
            request = self.random.randint(8, min(3000, 13 * whole))
        if self.of.rtps:
            request = self.random.randint(8, min(whole, 550))
            if self.of.fragments and self.chance(0.6):
                request = self.random.randint(600, 3000) if reliable else self.random.randint(8, min(whole, 3000))
        if self.of.wide:
            period_ms = self.random.choice((2, 5, 10, 20, 50, 200, 500, 1000, 2000))
            most = 12 * (mtu_bytes - 20) if reliable else whole
            request, reply = (
                self.random.choice((8, self.random.randint(8, 200), self.random.randint(8, max(most, 8))))
                for _ in range(2)
            )
            request, reply = min(request, most, 60_000), min(reply, most, 60_000)
        longest_ms = (execution_ms, host_ms, execution_ms)
        times_ms = [
            round(self.random.uniform(0, min(most, period_ms / 20) if self.of.wide else most), 2) for most in longest_ms
        ]
        if self.of.fast:
            period_ms = self.random.choice((4, 5, 8, 10, 16, 20, 25, 40, 80, 200))
            most_ms = min(period_ms / 6, self.random.choice((0.2, 0.6, 2)))
            times_ms = [round(self.random.uniform(0, most_ms), 2) for _ in times_ms]
            if self.of.rtps and reliable and self.chance(0.3):  # blocks the board while several samples come
                period_ms = self.random.choice((80, 200))
                times_ms[0] = round(self.random.uniform(5, 30), 2)
            a_ms = self.random.choice((16, 16, 40))  # octets: some frames take half a period
            request, reply = min(request, a_ms * period_ms, whole), min(reply, 12 * period_ms, whole)
        if self.of.idle and self.chance(self.of.idle):
            times_ms[self.random.randrange(3)] = 0
        chain: Document = {"name": name, "priority": priority, "period_ms": period_ms, "deadline_ms": period_ms}
        chain["reliability"] = "reliable" if reliable else "best_effort"
        if self.of.fast:
            factors = (5, 20) if self.of.rtps and reliable else (1, 2, 5, 20)
            chain["deadline_ms"] = period_ms * self.random.choice(factors)
        if self.chance(self.of.hold):
            chain["hold"] = True
        self.give_jitter(chain)
        names = self.names("b", 3)
        chain["callbacks"] = []
        way: tuple[str, ...] = ("m", "h", "m")
        is_service = bool(self.of.services) and self.chance(self.of.services)
        if is_service and self.chance(0.8 if self.of.shared_on == "mcu" else 0.15 if self.of.shared else 0.4):
            way = ("h", "m", "h")
        elif is_service and self.of.shared and self.chance(0.2):
            way = ("h", "h", "h")
        if self.of.shapes and self.chance(0.7):
            ways: tuple[tuple[str, ...], ...] = (("m",), ("m", "h"), ("h", "m"), ("m", "m"), ("h",))
            ways = (("m",), ("m", "h"), ("m", "h"), ("h", "m") if reliable else ("h",)) if self.of.fragments else ways
            way = self.random.choice([one for one in ways if one != ("m", "m") or not self.of.rtps])
        host = self.random.choice(hosts)
        for place, side in enumerate(way):
            where = host if side == "h" else "m"
            kind = "timer" if place == 0 else "subscription"
            callback: Document = {"name": names[place], "kind": kind, "executor": where}
            callback["execution_ms"] = times_ms[place]
            if self.chance(0.8 if self.few else 0.5):
                callback["least_ms"] = times_ms[place] if self.chance(0.7) else round(times_ms[place] / 2, 2)
            if place < len(way) - 1:
                size = request if place == 0 else reply
                callback["publishes"] = {"topic": f"{name}/{names[place]}", "payload_bytes": size}
            chain["callbacks"].append(callback)
        if is_service:
            self.make_service(chain)
        return chain

    def make_service(self, chain: Document) -> None:
        """Turns a chain of three callbacks into a call of a service. Many requests have the smallest possible size."""
        chain["reliability"] = "reliable"
        asks, serves, takes = chain["callbacks"]
        for callback, sent in ((asks, "requests"), (serves, "replies")):
            size = callback.pop("publishes")["payload_bytes"]
            size = self.random.choice((1, self.random.randint(1, 12), size, size))
            size = max(size, 9) if sent == "replies" else size  # the reply has a flag and a text
            callback[sent] = {"service": chain["name"], "type": "std_srvs/srv/SetBool", "payload_bytes": size}
        serves["kind"], takes["kind"] = "service", "client"


def losses_of(of: Family, seed: int) -> int:
    return random.Random(f"{of.name} {seed} losses").choice(of.losses)


def rendered(document: Document, name: str = "drawn") -> str:
    """The document as the text of a system.toml."""
    lines = ["[system]", f'name = "{name}"']
    for kind in ("executors", "links", "groups", "paths", "locks"):
        for entry in document.get(kind, ()):
            lines += ["", f"[[{kind}]]", *_fields(entry, ("executor",) if kind == "groups" else ())]
    for chain in document["chains"]:
        lines += ["", "[[chains]]", *_fields(chain, ("callbacks",))]
        for callback in chain["callbacks"]:
            lines += ["", "[[chains.callbacks]]", *_fields(callback)]
    return "\n".join(lines) + "\n"


def _fields(entry: Document, but: tuple[str, ...] = ()) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in entry.items() if name not in but]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


# ---- chains that branch and join ---- Chains of one timer in a description with boards. They branch on the host, and
# join there or on a board.


_CHAINS = 2  # greatest number of the drawn chains that are kept


def add_tree(document: Document, source: random.Random, reliable: float, few: bool, services: float) -> None:
    """Adds chains of one timer that branch and join. `services` is the share of chains of a reliable tree that end with
    the call of a service."""
    _Tree(document, source, few).add(source.random() < reliable, services)


class _Tree:
    def __init__(self, document: Document, source: random.Random, few: bool) -> None:
        self._document, self._random = document, source
        self._most_ms = source.choice((0.3, 1) if few else (1, 4, 8))
        places = document["executors"]
        self._boards = [one["name"] for one in places if one["where"] == "mcu"]
        self._hosts = [one["name"] for one in places if one["where"] == "host"]
        self._chains: list[Document] = []
        self._made: list[tuple[Document, Document]] = []  # (chain, callback) after which a chain may branch

    def add(self, reliable: bool, services: float) -> None:
        source, document = self._random, self._document
        del document["chains"][source.randrange(_CHAINS + 1) :]
        period_ms = source.choice((100, 150, 200, 250, 400, 500, 800))
        kind = "reliable" if reliable else "best_effort"
        self._common: Document = {"period_ms": period_ms, "deadline_ms": period_ms, "reliability": kind}
        self._begin()
        for _ in range(source.choice((1, 1, 2, 3))):
            self._branch()
        for _ in range(source.choice((1, 1, 1, 2))):
            self._join()
        for chain in self._chains if reliable and services else ():
            if source.random() < services:
                self._call(chain)
        taken = {chain["priority"] for chain in document["chains"]}
        free = [one for one in range(1, 127) if one not in taken]
        own = source.sample(free, len(self._chains))
        if source.random() < 0.5:  # leaves a gap below the most urgent chain
            own = [*free[: len(self._chains) - 1], free[-1]]
        for chain, priority in zip(self._chains, own, strict=True):
            chain["priority"] = priority
        document["chains"] = self._mixed([*document["chains"], *self._chains])

    def _mixed(self, chains: Sequence[Document]) -> list[Document]:
        return self._random.sample(chains, len(chains))

    def _begin(self) -> None:
        on_board = self._random.random() < 0.65
        way = [self._random.choice(self._boards if on_board else self._hosts)]
        way += self._random.choices(self._hosts, k=self._random.choice((0, 1, 1, 2) if on_board else (0, 0, 1)))
        chain = self._chain(way, {})
        if self._random.random() < 0.2:
            chain["jitter_ms"] = round(chain["period_ms"] * self._random.choice((0.02, 0.1)), 2)

    def _branch(self) -> None:
        chain, callback = self._random.choice(self._made)
        self._chain(self._way(), {"branches_from": f"{chain['name']}.{callback['name']}"})

    def _join(self) -> None:
        named = [f"{chain['name']}.{callback['name']}" for chain, callback in self._made]
        count = min(len(named), self._random.choice((2, 2, 3)))
        first, *others = self._random.sample(named, count)
        self._chain(self._way(), {"branches_from": first} | ({"joins": others} if others else {}))

    def _call(self, chain: Document) -> None:
        """Ends a chain with a call of a service on another executor, unless other chains branch from its last
        callback."""
        used = [
            named.partition(".")[0]
            for one in self._chains
            for named in (one.get("branches_from", ""), *one.get("joins", ()))
        ]
        asks = chain["callbacks"][-1]
        places = [one for one in (*self._boards, *self._hosts) if one != asks["executor"]]
        if chain["name"] in used or "joins" in chain or not places:
            return
        asks.pop("publishes", None)
        service = {"service": chain["name"], "type": "std_srvs/srv/SetBool"}
        asks["requests"] = service | {"payload_bytes": self._random.choice((1, self._random.randint(1, 60)))}
        for name, kind, executor in (
            ("serve", "service", self._random.choice(places)),
            ("take", "client", asks["executor"]),
        ):
            execution_ms = round(self._random.uniform(0, self._most_ms), 2)
            chain["callbacks"].append({"name": name, "kind": kind, "executor": executor, "execution_ms": execution_ms})
        chain["callbacks"][-2]["replies"] = service | {"payload_bytes": self._random.randint(9, 60)}

    def _way(self) -> list[str]:
        """The executors for the rest of a chain. It ends on a board or on the host."""
        way = self._random.choices(self._hosts, k=self._random.choice((0, 0, 1, 1, 2)))
        return [*way, self._random.choice(self._boards)] if not way or self._random.random() < 0.6 else way

    def _chain(self, way: Sequence[str], begins: Document) -> Document:
        name = f"t{len(self._chains)}"
        chain: Document = {"name": name, "priority": 0} | self._common | begins | {"callbacks": []}
        for place, executor in enumerate(way):
            kind = "subscription" if place > 0 or begins else "timer"
            execution_ms = round(self._random.uniform(0, self._most_ms), 2)
            callback: Document = {"name": f"b{place}", "kind": kind, "executor": executor}
            callback["execution_ms"] = execution_ms
            if self._random.random() < 0.6:
                callback["least_ms"] = self._random.choice((execution_ms, round(execution_ms / 2, 2)))
            if executor in self._hosts or kind == "timer":
                payload_bytes = self._random.choice((8, self._random.randint(8, 100)))
                callback["publishes"] = {"topic": f"{name}/{callback['name']}", "payload_bytes": payload_bytes}
                self._made.append((chain, callback))
            chain["callbacks"].append(callback)
        self._chains.append(chain)
        return chain


# ---- callbacks that publish several topics ----


def add_topics(document: Document, source: random.Random) -> None:
    """Lets the first callbacks on boards publish further topics, some of them not in every run. Most of these topics
    get a chain of their own, to a node or back to the board."""
    boards = {one["name"] for one in document["executors"] if one["where"] == "mcu"}
    hosts = [one["name"] for one in document["executors"] if one["where"] == "host"]
    taken = {chain["priority"] for chain in document["chains"]}
    free = source.sample([one for one in range(1, 127) if one not in taken], 16)
    several = [
        chain
        for chain in document["chains"]
        if len(chain["callbacks"]) > 1 and chain["callbacks"][0]["executor"] in boards and "branches_from" not in chain
    ]
    for chain in source.sample(several, min(len(several), source.choice((1, 1, 2)))):
        first, second = chain["callbacks"][:2]
        second["topic"] = first["publishes"]["topic"]
        every = [first["publishes"]]
        for number in range(source.choice((1, 1, 2, 4))):
            topic = {"topic": f"{chain['name']}/more{number}", "payload_bytes": source.randint(1, 90)}
            apart = source.choice((1, 1, 1, 2, 5, 1.5))
            if apart > 1:
                topic |= {"distance_ms": chain["period_ms"] * apart} if apart == 1.5 else {"every": apart}
            every.append(topic)
            if source.random() < 0.8:
                heard: dict[str, Any] = {"name": f"{chain['name']}_more{number}", "priority": free.pop()}
                heard |= {"period_ms": chain["period_ms"] * apart, "deadline_ms": chain["period_ms"] * apart}
                heard |= {key: chain[key] for key in ("reliability", "hold") if key in chain}
                heard["branches_from"] = f"{chain['name']}.{first['name']}"
                node = {"name": "b0", "kind": "subscription", "executor": source.choice(hosts)}
                node |= {"execution_ms": round(source.uniform(0, 4), 2), "topic": topic["topic"]}
                heard["callbacks"] = [node]
                if source.random() < 0.4:
                    node["publishes"] = {"topic": f"{heard['name']}/back", "payload_bytes": source.randint(1, 90)}
                    back = {"name": "b1", "kind": "subscription", "executor": first["executor"]}
                    heard["callbacks"].append(back | {"execution_ms": round(source.uniform(0, 4), 2)})
                document["chains"].append(heard)
        first["publishes"] = source.sample(every, len(every))


# ---- goals and results ----
# Chains in which a node calls two services of a board one after the other, as for a goal and its result.


def ask_for_result(chain: Document, hosts: Sequence[str], source: random.Random, share: float) -> None:
    """If in this chain a node calls a board's service, lets the node call a second one afterwards, with the probability
    `share`."""
    asks, serves, takes = (*chain["callbacks"], {}, {})[:3]
    asked = "requests" in asks and asks["executor"] in hosts and serves["executor"] not in hosts
    if not asked or source.random() >= share:
        return
    for name, kind, before in (("result", "service", serves), ("done", "client", takes)):
        callback = {"name": name, "kind": kind, "executor": before["executor"]}
        callback["execution_ms"] = round(source.uniform(0, 4), 2)
        chain["callbacks"].append(callback)
    for callback, sent in ((takes, "requests"), (chain["callbacks"][3], "replies")):
        size = source.choice((16, source.randint(1, 60)))
        service = {"service": f"{chain['name']}/result", "type": "std_srvs/srv/SetBool", "payload_bytes": size}
        callback[sent] = service
