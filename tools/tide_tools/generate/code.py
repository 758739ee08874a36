# SPDX-License-Identifier: Apache-2.0
"""The C statements for one message, which the templates arrange in files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tide_tools.generate.model import PRIMITIVES, Constant, Field, Message, Primitive, Shape, TypeId, Value
from tide_tools.generate.wire import Capacities, Wire

# ---- values in C ----

_INT32 = range(-(2**31), 2**31)


def c_string(text: str) -> str:
    """The text as a C string literal in UTF-8."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def c_integer(value: int, kind: str) -> str:
    if value in _INT32:
        return str(value) if value != -(2**31) else "(-2147483647 - 1)"
    if kind.startswith("uint"):
        return f"UINT64_C({value})" if value >= 2**32 else f"{value}u"
    return f"INT64_C({value})" if value != -(2**63) else "(-INT64_C(9223372036854775807) - 1)"


def c_literal(value: Value, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("float32", "float64"):
        assert isinstance(value, (int, float))
        return f"{float(value)!r}{'f' if kind == 'float32' else ''}"
    assert isinstance(value, int)
    return c_integer(value, kind)


def c_constant(owner: TypeId, constant: Constant) -> str:
    """The definition of a constant. An integer of at most 32 bits can be used in case labels and as array size."""
    name = f"{owner.c_name}__{constant.name}"
    if constant.type == "wstring":
        units = [str(unit) for unit in utf16_units(str(constant.value))]
        return f"static const uint16_t {name}[] = {{{', '.join([*units, '0'])}}};"
    if constant.type == "string":
        return f"static const char *const {name} = {c_string(str(constant.value))};"
    literal = c_literal(constant.value, constant.type)
    if constant.type not in ("bool", "float32", "float64") and constant.value in _INT32:
        return f"enum {{ {name} = {literal} }};"
    return f"static const {PRIMITIVES[constant.type].c_type} {name} = {literal};"


def utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-le")
    return [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]


# ---- one message ----

_TEXT_TYPES = {
    "string": ("rosidl_runtime_c__String", "char", "string"),
    "wstring": ("rosidl_runtime_c__U16String", "uint16_t", "wstring"),
}


def _kind_of(primitive: Primitive) -> str:
    return next(kind for kind, p in PRIMITIVES.items() if p is primitive)


@dataclass
class MessageCode:
    """Everything that the templates need for one message."""

    message: Message
    wire: Wire
    capacities: Capacities
    codes: dict[TypeId, MessageCode] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.codes[self.message.id] = self

    # Contents of the headers.

    @property
    def name(self) -> str:
        return self.message.id.c_name

    @property
    def dds_name(self) -> str:
        identity = self.message.id
        return f"{identity.package}::{identity.kind}::dds_::{identity.name}_"

    @property
    def maximum_bytes(self) -> int:
        return self._within_32_bits(self.wire.most(self.message.id, stored=False)) or 0

    @property
    def stored_bytes(self) -> int:
        return self._within_32_bits(self.wire.most(self.message.id, stored=True)) or 0

    @staticmethod
    def _within_32_bits(size: int | None) -> int | None:
        return size if size is not None and size < 2**31 else None

    @property
    def constants(self) -> list[str]:
        return [c_constant(self.message.id, constant) for constant in self.message.constants]

    @property
    def bounds(self) -> list[str]:
        """Definitions of upper bounds, with rosidl's names."""
        result = []
        for member in self.message.fields:
            if member.shape == Shape.SEQUENCE and member.bound:
                result.append(f"enum {{ {self.name}__{member.name}__MAX_SIZE = {member.bound} }};")
            if member.string_bound:
                result.append(f"enum {{ {self.name}__{member.name}__MAX_STRING_SIZE = {member.string_bound} }};")
        return result

    @property
    def members(self) -> list[str]:
        return [self._member(member) for member in self.message.fields]

    def _element_type(self, member: Field) -> str:
        if member.message is not None:
            return member.message.c_name
        return _TEXT_TYPES[member.text][0] if member.primitive is None else member.primitive.c_type

    def _member(self, member: Field) -> str:
        if member.shape == Shape.ARRAY:
            return f"{self._element_type(member)} {member.name}[{member.bound}];"
        if member.shape == Shape.ONE:
            return f"{self._element_type(member)} {member.name};"
        if member.primitive is not None:
            return f"rosidl_runtime_c__{member.primitive.sequence}__Sequence {member.name};"
        return f"{self._element_type(member)}__Sequence {member.name};"

    # Storage.

    @property
    def needs_storage(self) -> bool:
        return any(self._stores(member) for member in self.message.fields)

    def _stores(self, member: Field) -> bool:
        if member.shape == Shape.SEQUENCE or member.text:
            return True
        return member.message is not None and self.codes[member.message].needs_storage

    @property
    def storage(self) -> list[str]:
        return [self._storage(m) for m in self.message.fields if self._stores(m)] or ["uint8_t unused;"]

    def _storage(self, member: Field) -> str:
        count = self._count(member)
        if member.text:
            return self._text_storage(member, count)
        if member.message is None:
            return f"{self._element_type(member)} {member.name}[{count}];"
        nested = f"{member.message.c_name}__Storage"
        if member.shape == Shape.ONE:
            return f"{nested} {member.name};"
        if member.shape == Shape.ARRAY:
            return f"{nested} {member.name}[{count}];"
        inner = f" {nested} storage[{count}];" if self.codes[member.message].needs_storage else ""
        return f"struct {{ {member.message.c_name} elements[{count}];{inner} }} {member.name};"

    def _text_storage(self, member: Field, count: int) -> str:
        structure, character, _ = _TEXT_TYPES[member.text]
        characters = self.capacities.of_string(self.message.id, member)
        if member.shape == Shape.ONE:
            return f"{character} {member.name}[{characters}];"
        if member.shape == Shape.ARRAY:
            return f"{character} {member.name}[{count}][{characters}];"
        return (
            f"struct {{ {structure} elements[{count}]; {character} characters[{count}][{characters}]; }} {member.name};"
        )

    def _count(self, member: Field) -> int:
        if member.shape == Shape.SEQUENCE:
            return self.capacities.of_sequence(self.message.id, member)
        return member.bound

    @property
    def bind(self) -> list[str]:
        """Statements that set the pointers of an initialised message to the storage of its members."""
        return [line for member in self.message.fields if self._stores(member) for line in self._bind(member)]

    def _bind(self, member: Field) -> Iterator[str]:
        to, memory, count = f"message->{member.name}", f"storage->{member.name}", self._count(member)
        if member.shape == Shape.SEQUENCE:
            yield from self._bind_sequence(member, to, memory, count)
            return
        function = (
            f"tide_message_bind_{_TEXT_TYPES[member.text][2]}" if member.text else f"{self._element_type(member)}__bind"
        )
        if member.shape == Shape.ARRAY:
            size = f", sizeof {memory}[i] / sizeof {memory}[i][0]" if member.text else ""
            argument = f"{memory}[i]" if member.text else f"&{memory}[i]"
            yield f"for (size_t i = 0; i < {count}; ++i) {function}(&{to}[i], {argument}{size});"
        elif member.text:
            yield f"{function}(&{to}, {memory}, sizeof {memory} / sizeof {memory}[0]);"
        else:
            yield f"{function}(&{to}, &{memory});"

    def _bind_sequence(self, member: Field, to: str, memory: str, count: int) -> Iterator[str]:
        if member.primitive is not None:
            yield (
                f"{to}.size = tide_message_bind_elements({memory}, {count}, {to}.data, {to}.size, sizeof {memory}[0]);"
            )
            yield f"{to}.data = {memory};"
        else:
            yield f"for (size_t i = 0; i < {count}; ++i) {{"
            yield from (f"  {line}" for line in self._bind_element(member, to, memory))
            yield "}"
            if member.text:
                yield f"if ({to}.size > {count}) {to}.size = {count};"
            yield f"{to}.data = {memory}.elements;"
        yield f"{to}.capacity = {count};"

    def _bind_element(self, member: Field, to: str, memory: str) -> Iterator[str]:
        element = f"{memory}.elements[i]"
        if member.text:
            structure, _, suffix = _TEXT_TYPES[member.text]
            size = f"sizeof {memory}.characters[i] / sizeof {memory}.characters[i][0]"
            yield f"static const {structure} empty = {{0}};"
            yield f"{element} = i < {to}.size ? {to}.data[i] : empty;"
            yield f"tide_message_bind_{suffix}(&{element}, {memory}.characters[i], {size});"
        elif member.message is not None and self.codes[member.message].needs_storage:
            yield f"{member.message.c_name}__bind(&{element}, &{memory}.storage[i]);"
        elif member.message is not None:
            yield f"(void){member.message.c_name}__init(&{element});"

    # Defaults.

    @property
    def has_defaults(self) -> bool:
        return any(m.default is not None for m in self.message.fields) or any(
            self.codes[m.message].has_defaults
            for m in self.message.fields
            if m.message is not None and m.shape != Shape.SEQUENCE
        )

    @property
    def default_tables(self) -> list[str]:
        """C constants for default values with several elements."""
        return [t for m in self.message.fields if m.default is not None for t in self._default_table(m)]

    def _default_table(self, member: Field) -> Iterator[str]:
        name = f"{self.name}__{member.name}__default"
        if member.primitive is not None:
            if isinstance(member.default, list) and member.default:
                values = ", ".join(c_literal(v, _kind_of(member.primitive)) for v in member.default)
                yield f"static const {member.primitive.c_type} {name}[] = {{{values}}};"
            return
        texts = member.default if isinstance(member.default, list) else [member.default]
        if member.text == "wstring":
            for index, text in enumerate(texts):
                units = ", ".join(str(u) for u in [*utf16_units(str(text)), 0])
                yield f"static uint16_t {name}_{index}[] = {{{units}}};"
        if texts and member.shape != Shape.ONE:
            structure = _TEXT_TYPES[member.text][0]
            values = ", ".join(self._text_value(member, i, str(t)) for i, t in enumerate(texts))
            yield f"static {structure} {name}[] = {{{values}}};"

    def _text_value(self, member: Field, index: int, text: str) -> str:
        if member.text == "wstring":
            return f"{{{self.name}__{member.name}__default_{index}, {len(utf16_units(text))}, 0}}"
        return f"{{(char *){c_string(text)}, {len(text.encode())}, 0}}"

    @property
    def init(self) -> list[str]:
        lines: list[str] = []
        for member in self.message.fields:
            if member.default is not None:
                lines += self._init_default(member)
            elif (
                member.message is not None
                and member.shape != Shape.SEQUENCE
                and self.codes[member.message].has_defaults
            ):
                call = f"{member.message.c_name}__init(&message->{member.name}"
                loop = f"for (size_t i = 0; i < {member.bound}; ++i) "
                lines.append(f"{loop}(void){call}[i]);" if member.shape == Shape.ARRAY else f"(void){call});")
        return lines

    def _init_default(self, member: Field) -> Iterator[str]:
        to, table = f"message->{member.name}", f"{self.name}__{member.name}__default"
        if member.shape == Shape.ONE:
            if member.primitive is not None:
                assert member.default is not None
                yield f"{to} = {c_literal(member.default, _kind_of(member.primitive))};"
            else:
                value = self._text_value(member, 0, str(member.default))
                yield f"{to} = ({_TEXT_TYPES[member.text][0]}){value};"
        elif not member.default:
            return
        elif member.shape == Shape.ARRAY:
            yield f"memcpy({to}, {table}, sizeof {table});"
        else:
            yield f"{to}.data = ({self._element_type(member)} *){table};"
            yield f"{to}.size = sizeof {table} / sizeof {table}[0];"

    # Fields.

    @property
    def fields(self) -> list[str]:
        return [self._field(member) for member in self.message.fields]

    def _field(self, member: Field) -> str:
        kind = member.primitive.kind if member.primitive is not None else member.text.upper() or "MESSAGE"
        nested = f"&{member.message.c_name}__type" if member.message is not None else "NULL"
        return (
            f'{{"{member.name}", TIDE_FIELD_{kind}, TIDE_SHAPE_{member.shape.value}, '
            f"offsetof({self.name}, {member.name}), {member.bound}, {member.string_bound}, {nested}}}"
        )

    # Coding.

    def _runs(self) -> Iterator[tuple[list[Field], tuple[int, int] | None]]:
        """The fields in order, in groups: adjacent fields that form one array of equal elements, in memory and on the
        wire, are one group."""
        run: list[Field] = []
        size = total = 0
        for member in self.message.fields:
            unit = self.wire.uniform_field(member)
            if run and (unit is None or unit[0] != size):
                yield run, (size, total)
                run, total = [], 0
            if unit is None:
                yield [member], None
            else:
                run.append(member)
                size, total = unit[0], total + unit[1]
        if run:
            yield run, (size, total)

    @property
    def layout_checks(self) -> list[str]:
        result = []
        for run, unit in self._runs():
            if unit is not None and unit[1] > 1:
                last = f"offsetof({self.name}, {run[-1].name}) + sizeof((({self.name} *)0)->{run[-1].name})"
                first = f"offsetof({self.name}, {run[0].name})"
                result.append(f'_Static_assert({last} - {first} == {unit[0] * unit[1]}, "no padding");')
        return result

    @property
    def encode(self) -> list[str]:
        return [line for run, unit in self._runs() for line in self._encode(run, unit)]

    @property
    def decode(self) -> list[str]:
        return [line for run, unit in self._runs() for line in self._decode(run, unit)]

    def _start(self, run: list[Field], qualifier: str) -> str:
        return f"({qualifier}uint8_t *)message + offsetof({self.name}, {run[0].name})"

    def _encode(self, run: list[Field], unit: tuple[int, int] | None) -> Iterator[str]:
        member = run[0]
        of = f"message->{member.name}"
        if unit is not None and (unit[1] > 1 or member.message is not None):
            yield f"tide_cdr_put_array(cdr, {self._start(run, 'const ')}, {unit[1]}, {unit[0]});"
        elif member.shape == Shape.SEQUENCE:
            yield from self._encode_sequence(member, of)
        elif member.primitive is not None and member.shape == Shape.ARRAY:
            yield f"tide_cdr_put_array(cdr, {of}, {member.bound}, {member.primitive.bytes});"
        elif member.primitive is not None:
            cast = f"({member.primitive.cast})" if member.primitive.cast else ""
            yield f"tide_cdr_put_{member.primitive.put}(cdr, {cast}{of});"
        elif member.text:
            count, first = (1, f"&{of}") if member.shape == Shape.ONE else (member.bound, of)
            yield f"tide_message_put_{member.text}s(cdr, {first}, {count}, {member.string_bound});"
        elif member.shape == Shape.ARRAY:
            yield f"for (size_t i = 0; i < {member.bound}; ++i) {self._element_type(member)}__encode(cdr, &{of}[i]);"
        else:
            yield f"{self._element_type(member)}__encode(cdr, &{of});"

    def _encode_sequence(self, member: Field, of: str) -> Iterator[str]:
        unit = (1, 1) if member.primitive is PRIMITIVES["bool"] else self.wire.uniform_element(member)
        if unit is not None:
            yield (f"tide_message_put_sequence(cdr, {of}.data, {of}.size, {unit[0]}, {unit[1]}, {member.bound});")
            return
        yield f"tide_message_put_count(cdr, {of}.size, {member.bound});"
        if member.text:
            yield f"tide_message_put_{member.text}s(cdr, {of}.data, {of}.size, {member.string_bound});"
        else:
            yield f"for (size_t i = 0; i < {of}.size && cdr->status == 0; ++i)"
            yield f"  {self._element_type(member)}__encode(cdr, &{of}.data[i]);"

    def _decode(self, run: list[Field], unit: tuple[int, int] | None) -> Iterator[str]:
        member = run[0]
        to = f"message->{member.name}"
        if unit is not None and (unit[1] > 1 or member.message is not None):
            yield f"tide_cdr_get_array(cdr, {self._start(run, '')}, {unit[1]}, {unit[0]});"
        elif member.shape == Shape.SEQUENCE:
            yield from self._decode_sequence(member, to)
        elif member.primitive is not None and member.shape == Shape.ARRAY:
            function = "bools(cdr, {}, {})" if member.primitive.kind == "BOOL" else "array(cdr, {}, {}, {})"
            yield f"tide_cdr_get_{function.format(to, member.bound, member.primitive.bytes)};"
        elif member.primitive is not None:
            cast = f"({member.primitive.c_type})" if member.primitive.cast else ""
            yield f"{to} = {cast}tide_cdr_get_{member.primitive.put}(cdr);"
        elif member.text:
            count, first = (1, f"&{to}") if member.shape == Shape.ONE else (member.bound, to)
            yield f"tide_message_get_{member.text}s(cdr, {first}, {count}, {member.string_bound});"
        elif member.shape == Shape.ARRAY:
            yield f"for (size_t i = 0; i < {member.bound}; ++i) {self._element_type(member)}__decode(cdr, &{to}[i]);"
        else:
            yield f"{self._element_type(member)}__decode(cdr, &{to});"

    def _decode_sequence(self, member: Field, to: str) -> Iterator[str]:
        unit = self.wire.uniform_element(member)
        memory = f"{to}.data, {to}.capacity"
        if member.primitive is PRIMITIVES["bool"]:
            yield f"{to}.size = tide_message_get_bools(cdr, {memory}, {member.bound});"
        elif unit is not None:
            yield f"{to}.size = tide_message_get_sequence(cdr, {memory}, {unit[0]}, {unit[1]}, {member.bound});"
        else:
            least = 4 if member.message is None else self.wire.least(member.message)
            yield f"{to}.size = tide_message_get_count(cdr, {to}.capacity, {least}, {member.bound});"
            if member.text:
                yield f"tide_message_get_{member.text}s(cdr, {to}.data, {to}.size, {member.string_bound});"
            else:
                yield f"for (size_t i = 0; i < {to}.size && cdr->status == 0; ++i)"
                yield f"  {self._element_type(member)}__decode(cdr, &{to}.data[i]);"
            yield f"if (cdr->status != 0) {to}.size = 0;"
