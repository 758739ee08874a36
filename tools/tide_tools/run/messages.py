# SPDX-License-Identifier: Apache-2.0
"""Message objects of any ROS 2 type with the described length, and the position of the chain's instance number in them.
Uses the type support of this Python's ROS 2."""

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
# The number of bytes of a number, and where it wraps around; the names are those of sim/workloads/three_chains/plan.h.
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
_RANKS = ("digits", "u32", "u64", "f64", "f32", "u16", "u8", "bool")  # kinds of numbers, the best first
_TIMES = {"sec", "nanosec"}  # fields that are better left unchanged
_SEQUENCE = re.compile(r"sequence<(.+?)(?:, (\d+))?>")
_ARRAY = re.compile(r"(.+)\[(\d+)\]")
_BOUNDED = re.compile(r"(string|wstring)<(\d+)>")


class MessageError(Exception):
    """The message cannot be made. The text names the mistake and its remedy."""

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
        """The number in the message: -1 if the message contains no valid number at this position, 0 for the kind
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
        """The latest instance, at most `latest`, whose number the message contains. Negative: the number belongs to no
        instance."""
        read = self.read(message)
        return -1 if read < 0 or latest < 0 else latest - (latest - read) % MODULI[self.kind]


@dataclass(frozen=True)
class Sample:
    """A message as it is sent. body: its bytes, a serialised instance without encapsulation. mark: the position of the
    number that names the chain, if there is such a number."""

    body: bytes
    number: Number
    mark: Number = Number()


def message_class(name: str) -> Any:
    """The Python class of a message type. Raises MessageError if the type is missing in this Python. Requests and
    responses have the name of their service followed by _Request or _Response."""
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
    """The class of std_srvs/srv/SetBool, or of a part of an action, for example
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
        """Length of the field's text; 0 for a field that is not a text."""
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
    """A field that can be made longer. rank: fields that grow in larger steps have lower ranks and are filled first."""

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
    """Fills the message up to the size, beginning with the first text, which gets room for a number."""
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
    """Fills the message as far as the payload allows. The search is by bisection, because the size never falls when
    `count` grows."""

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
    """Two values that differ in every byte."""
    if kind == "digits":
        return "0" * length, "1" * length
    if kind == "bool":
        return False, True
    if kind in ("f32", "f64"):
        return 0.0, struct.unpack("<f" if kind == "f32" else "<d", b"\x01" * _WIDTHS[kind])[0]
    return 0, int.from_bytes(b"\x01" * _WIDTHS[kind], "little")


def _place(message: Any, leaf: _Leaf) -> int | None:
    """The position of the field in the serialised message."""
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
    """Positions in the message that can hold a number; first the one that wraps around last and matters least to
    readers."""
    fit = [leaf for leaf in _leaves(message) if leaf.kind != "digits" or leaf.length >= _DIGITS]
    for leaf in sorted(fit, key=lambda leaf: (leaf.field in _TIMES, _RANKS.index(leaf.kind))):
        offset = _place(message, leaf)
        if offset is not None:
            yield Number(leaf.kind, offset)


def _shortest(name: str, padded: int) -> int:
    """Unpadded size of a message of fixed size: rclpy pads it to a multiple of 4 bytes, and a board does not."""
    from tide_tools.system.sizes import shortest

    whole, _, part = name.rpartition("_")
    is_part = part in ("Request", "Response")
    known = shortest(whole, f"_{part}")[0] if is_part else shortest(name)[0]
    return known if padded - 4 < known < padded else padded


def sample_of(name: str, payload_bytes: int, mark: int | None = None) -> Sample:
    """An instance of the type with payload_bytes bytes or, if no instance has exactly that size, with the next smaller
    one. mark: a second number, which names the chain. Raises MessageError when the type is unknown, has more bytes, or
    has no room for a mark."""
    message = message_class(name)()
    padded = len(_serialised(message))
    least = _shortest(name, padded)
    if least > payload_bytes:
        raise MessageError(
            f"{name} has {least} B at least, payload_bytes is {payload_bytes}",
            f"write payload_bytes = {least} or more",
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
