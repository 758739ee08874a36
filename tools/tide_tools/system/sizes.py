# SPDX-License-Identifier: Apache-2.0
"""The message types of a description: payload sizes that follow from types, sizes that are too small, and types that do
not exist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tide_tools.extras import install_of
from tide_tools.generate.model import TypeId
from tide_tools.system.finding import Finding
from tide_tools.system.model import Callback, System

if TYPE_CHECKING:
    from tide_tools.generate.source import Library
    from tide_tools.generate.wire import Wire

_PADDING_BYTES = 4  # the alignment to which DDS pads samples


def with_sizes(system: System) -> tuple[System, list[Finding]]:
    """The system with the sizes that follow from types, and findings about types from which no size follows."""
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
                    findings.append(Finding(path, what, "add payload_bytes = ..., the largest size that occurs"))
            callbacks.append(callback)
        chains.append(chain.model_copy(update={"callbacks": tuple(callbacks)}))
    return system.model_copy(update={"chains": tuple(chains)}), findings


def _lacks(callback: Callback) -> list[str]:
    parts = (("requests", callback.requests), ("replies", callback.replies))
    return [key for key, part in parts if part is not None and part.payload_bytes is None]


def check_types(system: System) -> Iterator[Finding]:
    """Reports types that their package does not have, and sizes below the shortest message of a type. Messages without
    a type, and types whose package is not installed, are not checked."""
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            at = ("chains", index, "callbacks", position)
            services = (("requests", "_Request", callback.requests), ("replies", "_Response", callback.replies))
            parts = [(path, "", one) for path, one in callback.located(at)]
            for path, suffix, part in (*parts, *(((*at, key), suffix, part) for key, suffix, part in services)):
                if part is None or "type" not in part.model_fields_set:
                    continue
                least, problem = shortest(part.type, suffix)
                if problem:
                    yield Finding(path, problem, "correct its name")
                elif part.payload_bytes is not None and part.payload_bytes < least:
                    what = f"{part.type}{suffix} has {least} B at least, payload_bytes is {part.payload_bytes}"
                    yield Finding(path, what, f"write payload_bytes = {least} or more")


@lru_cache(maxsize=1024)
def shortest(name: str, suffix: str = "") -> tuple[int, str]:
    """The size of the shortest message in bytes, and why there is none. The size is 0 if the package is not installed
    or the definition cannot be read. suffix: of a part of a service."""
    from tide_tools.generate.model import GenerateError

    package, kind, short = name.split("/")
    try:
        library().folder(package)
    except GenerateError:
        return 0, ""
    wanted = TypeId(package, kind, short.partition("_")[0] if kind == "action" else short)
    try:
        library().file(wanted)
    except GenerateError:
        return 0, f"type '{name}' is not known here: package '{package}' has no such type"
    try:
        return _wire(wanted).shortest(TypeId(package, kind, f"{short}{suffix}")), ""
    except (GenerateError, KeyError):
        return 0, ""


def sizes_of(name: str, is_reply: bool) -> tuple[int, int]:
    """The sizes of a service's requests or replies, if all have the same, and of the shortest; 0: unknown."""
    if not types_are_known():
        return 0, 0
    most, problem = _size(name, is_reply)
    return 0 if problem else most, shortest(name, "_Response" if is_reply else "_Request")[0]


@lru_cache(maxsize=1)
def library() -> Library:
    """The installed interface definitions. They are loaded at the first call, because few descriptions need them.
    Raises GenerateError if there are no packages of ROS 2."""
    from tide_tools.generate.model import GenerateError

    try:
        from tide_tools.generate.source import Library
    except ModuleNotFoundError as error:
        raise GenerateError(f"needs {error.name}: {install_of('messages')}") from None

    return Library()


def types_are_known() -> bool:
    """Whether message definitions can be read on this machine."""
    from tide_tools.generate.model import GenerateError

    try:
        library()
    except GenerateError:
        return False
    return True


def _wire(wanted: TypeId) -> Wire:
    from tide_tools.generate.wire import Capacities, Wire

    interfaces = library().closure([wanted])
    messages = {message.id: message for interface in interfaces for message in interface.messages}
    return Wire(messages, Capacities())


@lru_cache(maxsize=256)
def _size(name: str, is_reply: bool) -> tuple[int, str]:
    """The largest size of a service's request or reply, padded as DDS does; if there is no largest size: 1, and the
    reason."""
    from tide_tools.generate.model import GenerateError

    package, kind, short = name.split("/")
    wanted = TypeId(package, kind, short.partition("_")[0])
    try:
        wire = _wire(wanted)
    except GenerateError:
        return 1, f"has an unknown size: there is no definition of {name} here"
    part = TypeId(package, kind, f"{short}_{'Response' if is_reply else 'Request'}")
    most = wire.most(part, stored=False)
    if most is None:
        return 1, f"has no largest size: {name} has a string or a sequence without a limit"
    return -(-most // _PADDING_BYTES) * _PADDING_BYTES, ""
