# SPDX-License-Identifier: Apache-2.0
"""Sizes of requests and replies that a description leaves to their types."""

from __future__ import annotations

from functools import lru_cache

from tide.system.finding import Finding
from tide.system.model import Callback, System

_PADDING_BYTES = 4  # to which DDS fills what it serialises


def with_sizes(system: System) -> tuple[System, list[Finding]]:
    """The same with all sizes, and which types do not say one."""
    if not any(_lacks(callback) for chain in system.chains for callback in chain.callbacks):
        return system, []
    findings: list[Finding] = []
    chains = []
    for index, chain in enumerate(system.chains):
        callbacks = []
        for position, callback in enumerate(chain.callbacks):
            for key in _lacks(callback):
                part = getattr(callback, key)
                size, problem = _size(part.type, key == "replies")
                callback = callback.model_copy(update={key: part.model_copy(update={"payload_bytes": size})})
                if problem:
                    path = ("chains", index, "callbacks", position, key)
                    what = f"{'the reply' if key == 'replies' else 'a request'} of service '{part.service}' {problem}"
                    findings.append(Finding(path, what, "add payload_bytes = ..., the longest that occurs"))
            callbacks.append(callback)
        chains.append(chain.model_copy(update={"callbacks": tuple(callbacks)}))
    return system.model_copy(update={"chains": tuple(chains)}), findings


def _lacks(callback: Callback) -> list[str]:
    parts = (("requests", callback.requests), ("replies", callback.replies))
    return [key for key, part in parts if part is not None and part.payload_bytes is None]


@lru_cache(maxsize=256)
def _size(name: str, is_reply: bool) -> tuple[int, str]:
    """And why there is none."""
    from tide.generate.capacity import Capacities  # reads definitions, which few descriptions need
    from tide.generate.errors import GenerateError
    from tide.generate.model import TypeId
    from tide.generate.source import Library
    from tide.generate.wire import Wire

    package, kind, short = name.split("/")
    wanted = TypeId(package, kind, short.partition("_")[0])
    try:
        interfaces = Library().closure([wanted])
    except GenerateError:
        return 1, f"has a size that is not known here: there is no definition of {name}"
    messages = {message.id: message for interface in interfaces for message in interface.messages}
    part = TypeId(package, kind, f"{short}_{'Response' if is_reply else 'Request'}")
    most = Wire(messages, Capacities()).most(part, stored=False)
    if most is None:
        return 1, f"has no longest size: {name} has a text or a sequence without a limit"
    return -(-most // _PADDING_BYTES) * _PADDING_BYTES, ""
