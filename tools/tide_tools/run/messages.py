# SPDX-License-Identifier: Apache-2.0
"""Message objects of any ROS 2 type and of the described length, and the position at which they contain the number of
an instance. Uses the type support of this Python's ROS 2."""

from __future__ import annotations

import array
import importlib
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ENCAPSULATION_BYTES = 4
_DIGITS = 5
# By format of a number (the names of sim/workloads/three_chains/plan.h): its size in bytes, and where it wraps around.
_FORMS = {
    "none": (0, 1),
    "bool": (1, 2),
    "u8": (1, 1 << 7),
    "u16": (2, 1 << 15),
    "u32": (4, 1 << 31),
    "u64": (8, 1 << 31),
    "f32": (4, 1 << 24),
    "f64": (8, 1 << 31),
    "digits": (_DIGITS, 10**_DIGITS),
    "count": (0, 1),
}
_WIDTHS, MODULI = ({kind: form[n] for kind, form in _FORMS.items()} for n in (0, 1))
_KINDS = {
    "boolean": "bool",
    **dict.fromkeys(("uint8", "int8", "octet", "byte", "char"), "u8"),
    **dict.fromkeys(("uint16", "int16"), "u16"),
    **dict.fromkeys(("uint32", "int32"), "u32"),
    **dict.fromkeys(("uint64", "int64"), "u64"),
    "float": "f32",
    "double": "f64",
}
_RANKS = ("digits", "u32", "u64", "f64", "f32", "u16", "u8", "bool")  # formats of numbers, the best first
_TIMES = {"sec", "nanosec"}  # fields that are changed only if there is no other field
_SEQUENCE = re.compile(r"sequence<(.+?)(?:, (\d+))?>")
_ARRAY = re.compile(r"(.+)\[(\d+)\]")
_BOUNDED = re.compile(r"(string|wstring)<(\d+)>")


class MessageError(Exception):
    """A message cannot be made. The text says why and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


@dataclass(frozen=True)
class Number:
    """The position of a number in a serialised message without encapsulation."""

    kind: str = "none"
    offset: int = 0

    def written(self, message: bytearray, index: int) -> None:
        number = index % MODULI[self.kind]
        width = _WIDTHS[self.kind]
        if self.kind == "digits":
            encoded = f"{number:0{_DIGITS}d}".encode()
        elif self.kind in ("f32", "f64"):
            encoded = struct.pack("<f" if self.kind == "f32" else "<d", number)
        else:
            encoded = number.to_bytes(width, "little")
        message[self.offset : self.offset + width] = encoded

    def read(self, message: bytes) -> int:
        """The number in the message; -1 if the message has no valid number at this position, and 0 for the format
        "none"."""
        if self.kind == "none":
            return 0
        part = message[self.offset : self.offset + _WIDTHS[self.kind]]
        if len(part) < _WIDTHS[self.kind]:
            return -1
        if self.kind == "digits":
            return int(part) if part.isdigit() else -1
        if self.kind in ("f32", "f64"):
            (value,) = struct.unpack("<f" if self.kind == "f32" else "<d", part)
            return int(value) if 0 <= value < MODULI[self.kind] else -1
        number = int.from_bytes(part, "little")
        return number if number < MODULI[self.kind] else -1

    def instance(self, message: bytes, latest: int) -> int:
        """The latest instance up to `latest` to which the number in the message belongs; negative: there is none."""
        read = self.read(message)
        return -1 if read < 0 or latest < 0 else latest - (latest - read) % MODULI[self.kind]


@dataclass(frozen=True)
class Sample:
    """A serialised message that a run sends. body: its bytes, without encapsulation. mark: the position of a second
    number that names the chain, if there is one."""

    body: bytes
    number: Number
    mark: Number = Number()


def message_class(name: str) -> Any:
    """The Python class of a message type. For a request or response, `name` is the name of the service followed by
    _Request or _Response. Raises MessageError if this Python does not have the type."""
    package = name.partition("/")[0]
    whole, _, part = name.rpartition("_")
    if part in ("Request", "Response"):
        return getattr(service_class(whole), part)
    if part == "FeedbackMessage":
        return _found(whole).Impl.FeedbackMessage
    found = _found(name)
    if not hasattr(found, "get_fields_and_field_types"):
        raise MessageError(f"type '{name}' is not known here: package '{package}' has no such type", "correct its name")
    return found


def service_class(name: str) -> Any:
    """The Python class of a service, such as std_srvs/srv/SetBool, or of a service of an action, such as
    example_interfaces/action/Fibonacci_SendGoal."""
    whole, _, part = name.rpartition("_")
    if "/action/" in name:
        return getattr(_found(whole).Impl, f"{part}Service")
    return _found(name)


def _found(name: str) -> Any:
    package, kind, short = name.split("/")
    try:
        module = importlib.import_module(f"{package}.{kind}")
    except ImportError:
        raise MessageError(
            f"type '{name}' is not known here: this Python has no package '{package}'",
            "install or source it, or name a type that is there",
        ) from None
    found = getattr(module, short, None)
    if found is None:
        raise MessageError(f"type '{name}' is not known here: package '{package}' has no such type", "correct its name")
    return found


def _serialised(message: Any) -> bytes:
    from rclpy.serialization import serialize_message

    return bytes(serialize_message(message))[ENCAPSULATION_BYTES:]


@dataclass(frozen=True)
class _Leaf:
    """A scalar field, or the first element of an array or sequence."""

    owner: Any
    field: str
    kind: str
    is_element: bool = False

    def put(self, value: Any) -> None:
        if self.is_element:
            getattr(self.owner, self.field)[0] = value
        else:
            setattr(self.owner, self.field, value)

    @property
    def length(self) -> int:
        """Length of the text in the field; 0 if the field is not a text."""
        return len(getattr(self.owner, self.field)) if self.kind == "digits" else 0


def _is_message(value: Any) -> bool:
    return hasattr(value, "get_fields_and_field_types")


def _leaves(message: Any) -> Iterator[_Leaf]:
    for field, declared in message.get_fields_and_field_types().items():
        value = getattr(message, field)
        several = _ARRAY.fullmatch(declared) or _SEQUENCE.fullmatch(declared)
        if declared in _KINDS:
            yield _Leaf(message, field, _KINDS[declared])
        elif declared == "string" or _BOUNDED.fullmatch(declared):
            yield _Leaf(message, field, "digits")
        elif _is_message(value):
            yield from _leaves(value)
        elif several and len(value) > 0 and several.group(1) in _KINDS:
            yield _Leaf(message, field, _KINDS[several.group(1)], is_element=True)
        elif several and len(value) > 0 and _is_message(value[0]):
            yield from _leaves(value[0])


@dataclass(frozen=True)
class _Room:
    """A field that can be made longer. rank: fields with lower ranks, which grow in larger steps, are filled first."""

    rank: int
    most: int
    fill: Callable[[int], None]


_CODES = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "uint64": "Q"}
_CODES |= {"int64": "q", "float": "f", "double": "d", "octet": "B", "byte": "B", "char": "B"}


def _rooms(message: Any) -> Iterator[_Room]:
    for field, declared in message.get_fields_and_field_types().items():
        value = getattr(message, field)
        sequence = _SEQUENCE.fullmatch(declared)
        text = _BOUNDED.fullmatch(declared)
        if declared == "string" or text:
            yield _Room(3, int(text.group(2)) if text else 2**31, _text(message, field))
        elif sequence:
            yield from _room_of_sequence(message, field, sequence)
        elif _is_message(value):
            yield from _rooms(value)


def _text(message: Any, field: str) -> Callable[[int], None]:
    return lambda count: setattr(message, field, "0" * count)


def _room_of_sequence(message: Any, field: str, sequence: re.Match[str]) -> Iterator[_Room]:
    element = sequence.group(1)
    most = int(sequence.group(2)) if sequence.group(2) else 2**31
    if element in _CODES:
        code = _CODES[element]
        width = array.array(code).itemsize
        as_bytes = element in ("octet", "byte")
        yield _Room(
            2 if width == 1 else 1,
            most,
            lambda count: setattr(
                message, field, [b"\0"] * count if as_bytes else array.array(code, bytes(count * width))
            ),
        )
    elif "/" in element:
        package, short = element.rsplit("/", 1)
        made = message_class(f"{package}/msg/{short}")
        yield _Room(0, most, lambda count: setattr(message, field, [made() for _ in range(count)]))


def _filled(message: Any, payload_bytes: int) -> None:
    """Fills the message up to the size. The first text is filled first, so that it has room for a number."""
    rooms = sorted(_rooms(message), key=lambda room: room.rank)
    texts = [room for room in rooms if room.rank == 3 and room.most >= _DIGITS]
    if texts:
        texts[0].fill(_DIGITS)
        if len(_serialised(message)) > payload_bytes:
            texts[0].fill(0)
    for room in rooms:
        least = _DIGITS if texts and room is texts[0] and len(_serialised(message)) <= payload_bytes else 0
        _fill(message, room, payload_bytes, least)


def _fill(message: Any, room: _Room, payload_bytes: int, least: int) -> None:
    """Makes one field as long as the size allows. Bisection finds its length, because the size never falls when the
    field grows."""

    def fits(count: int) -> bool:
        room.fill(count)
        return len(_serialised(message)) <= payload_bytes

    low, high = least, min(room.most, payload_bytes)
    if not fits(low):
        low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    room.fill(low)


def _probes(kind: str, length: int) -> tuple[Any, Any]:
    """Two values of this format that differ in every byte."""
    if kind == "digits":
        return "0" * length, "1" * length
    if kind == "bool":
        return False, True
    if kind in ("f32", "f64"):
        return 0.0, struct.unpack("<f" if kind == "f32" else "<d", b"\x01" * _WIDTHS[kind])[0]
    return 0, int.from_bytes(b"\x01" * _WIDTHS[kind], "little")


def _place(message: Any, leaf: _Leaf) -> int | None:
    """The position of the field in the serialised message; None: it cannot be found."""
    low, high = _probes(leaf.kind, leaf.length)
    try:
        leaf.put(low)
        first = _serialised(message)
        leaf.put(high)
        second = _serialised(message)
        leaf.put(low)
    except (AssertionError, TypeError, ValueError):
        return None
    differ = [one != other for one, other in zip(first, second, strict=False)]
    return differ.index(True) if len(first) == len(second) and any(differ) else None


def _numbers(message: Any) -> Iterator[Number]:
    """The positions in the message that can contain a number, the best first: those that wrap around last, and whose
    value matters least to receivers."""
    fit = [leaf for leaf in _leaves(message) if leaf.kind != "digits" or leaf.length >= _DIGITS]
    for leaf in sorted(fit, key=lambda leaf: (leaf.field in _TIMES, _RANKS.index(leaf.kind))):
        offset = _place(message, leaf)
        if offset is not None:
            yield Number(leaf.kind, offset)


def _shortest(name: str, padded: int) -> int:
    """Size of a message of fixed size without padding. rclpy pads a message to a multiple of 4 bytes, but a board does
    not."""
    from tide_tools.system.sizes import shortest

    whole, _, part = name.rpartition("_")
    is_part = part in ("Request", "Response")
    known = shortest(whole, f"_{part}")[0] if is_part else shortest(name)[0]
    return known if padded - 4 < known < padded else padded


def sample_of(name: str, payload_bytes: int, mark: int | None = None) -> Sample:
    """A message of the type with payload_bytes bytes or, if no message has exactly this size, with the next smaller
    one. mark: the value of a second number, which names the chain. Raises MessageError if the type is unknown, if all
    its messages are larger, or if they have no room for a mark."""
    message = message_class(name)()
    padded = len(_serialised(message))
    least = _shortest(name, padded)
    if least > payload_bytes:
        raise MessageError(
            f"{name} has {least} B at least, payload_bytes is {payload_bytes}", f"write payload_bytes = {least} or more"
        )
    _filled(message, max(payload_bytes, padded))
    number, *others = [*_numbers(message), Number()]
    body = bytearray(_serialised(message))
    body = body[:least] if len(body) > payload_bytes else body
    number.written(body, 0)
    if mark is None:
        return Sample(bytes(body), number)
    place = next((one for one in others if mark < MODULI[one.kind]), None)
    if place is None or place.kind == "none":
        raise MessageError(
            f"{name} has one field at most, and a run tells chains that ask the same service apart by another one",
            "use a type with two, or give each chain a service of its own in a run",
        )
    place.written(body, mark)
    return Sample(bytes(body), number, place)
