# SPDX-License-Identifier: Apache-2.0
"""Rules of services: who requests, who replies to it, and who takes the reply."""

from __future__ import annotations

from collections.abc import Iterator

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Chain, System


def check_services(system: System) -> Iterator[Finding]:
    servers: dict[str, tuple[Chain, Callback]] = {}
    for index, chain in enumerate(system.chains):
        if not any(one.requests or one.replies or one.kind in ("service", "client") for one in chain.callbacks):
            continue
        path: Path = ("chains", index)
        for position in range(len(chain.callbacks)):
            yield from _callback(chain, position, (*path, "callbacks", position))
        yield from _servers(chain, servers, path)
        if chain.reliability != "reliable":
            yield Finding(
                (*path, "reliability"),
                f"chain '{chain.name}' has a service and is best effort: a lost request would never be answered",
                'write reliability = "reliable"',
            )


def _at(chain: Chain, position: int) -> Callback | None:
    return chain.callbacks[position] if 0 <= position < len(chain.callbacks) else None


def _callback(chain: Chain, position: int, path: Path) -> Iterator[Finding]:
    callback = chain.callbacks[position]
    sent = [key for key in ("publishes", "requests", "replies") if getattr(callback, key) is not None]
    if len(sent) > 1:
        yield Finding(
            (*path, sent[1]),
            f"'{callback.name}' of chain '{chain.name}' {sent[0]} and {sent[1]}, and sends one thing at its end",
            "give the other one to a callback behind it, or to a chain of its own",
        )
    elif callback.replies is not None and callback.kind != "service":
        yield Finding(
            (*path, "replies"),
            f"'{callback.name}' of chain '{chain.name}' is a {callback.kind}, which nobody asks for a reply",
            'write kind = "service", or publishes in place of replies',
        )
    elif callback.kind == "service":
        yield from _service(chain, position, path)
    elif callback.requests is not None and not _is(_at(chain, position + 1), "service"):
        yield Finding(
            (*path, "requests"),
            f"'{callback.name}' of chain '{chain.name}' requests service '{callback.requests.service}', and the "
            "callback behind it is no server",
            'put a callback of kind = "service" behind it, with replies = { service = "...", type = "..." }',
        )
    elif callback.kind == "client" and not _is(_at(chain, position - 1), "service"):
        yield Finding(
            (*path, "kind"),
            f"client '{callback.name}' of chain '{chain.name}' stands behind no service whose reply it could take",
            'put it behind a callback of kind = "service", or make it a subscription',
        )


def _is(callback: Callback | None, kind: str) -> bool:
    return callback is not None and callback.kind == kind


def _service(chain: Chain, position: int, path: Path) -> Iterator[Finding]:
    server = chain.callbacks[position]
    asker, client = _at(chain, position - 1), _at(chain, position + 1)
    if server.replies is None:
        yield Finding(
            path,
            f"service '{server.name}' of chain '{chain.name}' replies nothing",
            'add replies = { service = "...", type = "..." }',
        )
        return
    if asker is None or asker.requests is None:
        yield Finding(
            path,
            f"service '{server.name}' of chain '{chain.name}' is requested by no callback before it",
            f'add requests = {{ service = "{server.replies.service}", type = "{server.replies.type}" }} to that',
        )
        return
    for key in ("service", "type"):
        asked, served = getattr(asker.requests, key), getattr(server.replies, key)
        if asked.lstrip("/") != served.lstrip("/"):
            yield Finding(
                (*path, "replies", key),
                f"'{server.name}' of chain '{chain.name}' serves {key} '{served}', and '{asker.name}' asks for "
                f"'{asked}'",
                "correct one of them",
            )
    if client is None or client.kind != "client":
        yield Finding(
            path,
            f"the reply of service '{server.name}' of chain '{chain.name}' is taken by no client",
            f'put a callback of kind = "client" behind it, on executor {asker.executor}; execution_ms = 0 if it does '
            "nothing",
        )
    elif client.executor != asker.executor:
        yield Finding(
            (*path[:-1], position + 1, "executor"),
            f"client '{client.name}' of chain '{chain.name}' is on executor '{client.executor}', and the reply comes "
            f"to who has requested, on '{asker.executor}'",
            f'write executor = "{asker.executor}"',
        )


def _servers(chain: Chain, servers: dict[str, tuple[Chain, Callback]], path: Path) -> Iterator[Finding]:
    """Each service has one place in a chain. Several chains may ask it: it is one callback of one executor."""
    for position, callback in enumerate(chain.callbacks):
        if callback.replies is None or callback.kind != "service":
            continue
        name = callback.replies.service.lstrip("/")
        of, first = servers.setdefault(name, (chain, callback))
        if first is callback:
            continue
        here: Path = (*path, "callbacks", position, "replies", "service")
        if first.executor != callback.executor:
            yield Finding(
                here,
                f"service '{name}' has servers on the executors '{first.executor}' and '{callback.executor}'",
                "give each a name of its own",
            )
        elif of is chain:
            yield Finding(
                here,
                f"service '{name}' is already that of '{first.name}' of chain '{of.name}'",
                "use one service for each step of a chain",
            )
        else:
            yield from _same_server(chain, position, (of, first), path)


def _same_server(chain: Chain, position: int, known: tuple[Chain, Callback], path: Path) -> Iterator[Finding]:
    """What a callback has once, whoever asks."""
    of, first = known
    callback = chain.callbacks[position]
    here: Path = (*path, "callbacks", position)
    assert first.replies is not None and callback.replies is not None
    if first.replies.type != callback.replies.type:
        yield Finding(
            (*here, "replies", "type"),
            f"service '{first.replies.service}' is {first.replies.type} in chain '{of.name}' and "
            f"{callback.replies.type} in chain '{chain.name}'",
            "correct one of them",
        )
    for key in ("group", "priority"):
        one, other = getattr(first, key), getattr(callback, key)
        if one != other:
            yield Finding(
                (*here, key) if other is not None else here,
                f"the server of '{first.replies.service}' has {_said(key, one)} in chain '{of.name}' and "
                f"{_said(key, other)} in chain '{chain.name}', and is one callback",
                "write the same in both",
            )


def _said(key: str, value: object) -> str:
    return f"no {key}" if value is None else f"{key} '{value}'"
