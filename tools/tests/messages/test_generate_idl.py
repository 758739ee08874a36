# SPDX-License-Identifier: Apache-2.0
"""Interfaces in .idl files give the same results as in .msg, .srv and .action files. Keys are tested as well."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from messages.build import WARNINGS, compile_c, run_tide
from tide_tools.generate.model import GenerateError, Message, TypeId
from tide_tools.generate.source import KINDS, Library

SHARE = Path(sys.prefix) / "share"
PACKAGES = ("test_msgs", "action_msgs", "std_msgs", "std_srvs")

KEYED = """
#include "geometry_msgs/msg/Point.idl"
module robot_msgs {
  module msg {
    typedef double double__3[3];
    module Reading_Constants {
      const int32 LIMIT = 7;
      const string UNIT = "m\\"s";
      const boolean SIGNED = TRUE;
    };
    struct Reading {
      @key
      uint32 sensor_id;
      @key
      @unit (value="place")
      string<20> place;
      @default (value=1.5)
      double value;
      sequence<int16, 4> few;
      sequence<geometry_msgs::msg::Point> points;
      double__3 three;
      @default (value="[1, 2]")
      sequence<uint8> bytes;
      wstring wide;
      octet one;
      boolean is_new;
    };
  };
};
"""
PLAIN = """
int32 LIMIT=7
string UNIT="m\\"s"
bool SIGNED=true
uint32 sensor_id
string<=20 place
float64 value 1.5
int16[<=4] few
geometry_msgs/Point[] points
float64[3] three
uint8[] bytes [1, 2]
wstring wide
byte one
bool is_new
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / "robot_msgs/msg" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def generated(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*.[ch]")}


def normal(message: Message) -> Message:
    """The message with uint8 instead of char: that is what char means in a .msg file, and how its .idl file says it."""
    constants = (replace(one, type="uint8") if one.type == "char" else one for one in message.constants)
    return replace(message, constants=tuple(constants))


@pytest.mark.parametrize("package", PACKAGES)
def test_both_files_of_an_installed_interface_are_read_alike(package: str, tmp_path: Path) -> None:
    for kind in KINDS:
        for file in sorted((SHARE / package / kind).glob("*.idl")):
            here = tmp_path / package / kind
            here.mkdir(parents=True, exist_ok=True)
            (here / file.name).write_bytes(file.read_bytes())
    installed, copied = Library(), Library([tmp_path])
    wanted = installed.expand(package)
    assert wanted and wanted == copied.expand(package)
    for one in wanted:
        assert copied.interface(one).file.suffix == ".idl"
        assert copied.interface(one).messages == tuple(map(normal, installed.interface(one).messages)), one


def test_a_keyed_type_is_generated_as_one_without_keys(tmp_path: Path) -> None:
    idl = write(tmp_path / "a", "Reading.idl", KEYED)
    message = write(tmp_path / "b", "Reading.msg", PLAIN)
    run_tide("--out", tmp_path / "out_a", idl)
    run_tide("--out", tmp_path / "out_b", message)
    keyed = generated(tmp_path / "out_a")
    assert "robot_msgs/msg/reading.c" in keyed
    assert keyed == generated(tmp_path / "out_b")


def test_a_signed_char_has_its_own_type(tmp_path: Path) -> None:
    text = "module robot_msgs { module msg { struct Grade { char letter; sequence<char, 3> letters; }; }; };"
    run_tide("--out", tmp_path / "out", write(tmp_path, "Grade.idl", text))
    source = tmp_path / "check.c"
    source.write_text(
        '#include "robot_msgs/msg/grade.h"\n'
        "int main(void) {\n"
        "  static signed char room[3] = {1, -2, 3};\n"
        "  robot_msgs__msg__Grade grade = {.letter = -5, .letters = {room, 3, 3}};\n"
        "  return grade.letter == -5 && grade.letters.data[1] == -2 ? 0 : 1;\n"
        "}\n"
    )
    compile_c(source, tmp_path / "out", tmp_path / "program", *WARNINGS)


def with_default(value: str, member: str) -> str:
    return f"module robot_msgs {{ module msg {{ struct Grade {{ @default (value={value}) {member}; }}; }}; }};"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("module robot_msgs { module msg { struct Grade { wchar one; }; }; };", "'one' is of type wchar"),
        ("module robot_msgs { module msg { struct Grade { long double one; }; }; };", "'one' is of type long double"),
        ("module robot_msgs { module msg { struct Other { long one; }; }; };", "it has robot_msgs/msg/Other"),
        ("module robot_msgs { struct Grade { long one; }; };", "it has none"),
        ("module robot_msgs { module msg { struct Grade { long default; }; }; };", "keyword"),
        ("module robot_msgs {\n module msg {\n struct Grade { long one }; }; };", "Grade.idl:3: "),
        ("", "Grade.idl: Unexpected end"),
        ("module robot_msgs { module msg { struct Grade { sequence<sequence<long>> one; }; }; };", "one interface, of"),
        (
            "module robot_msgs { module msg { typedef long m[2][3]; struct Grade { m one; }; }; };",
            "multidimensional array",
        ),
        ("module robot_msgs { module msg { struct Grade { other_msgs::msg::None one; }; }; };", "other_msgs"),
        (with_default("300", "uint8 one"), "the default of 'one' is 300; give an integer from 0 to 255"),
        (with_default("-32769", "short one"), "an integer from -32768 to 32767"),
        (with_default("1.5", "long one"), "an integer from"),
        (with_default("1", "boolean one"), "TRUE or FALSE"),
        (with_default("TRUE", "long one"), "an integer from"),
        (with_default('"text"', "double one"), "a number"),
        (with_default("5", "string one"), "a text"),
        (with_default('"text"', "string<3> one"), "at most 3 characters"),
        (with_default('"(1, 256)"', "sequence<uint8> one"), "is 256; give an integer from 0 to 255"),
        (with_default('"(1, 2, 3)"', "sequence<uint8, 2> one"), "has 3 values; give at most 2"),
        (with_default('"(1, 2)"', "uint8 one[3]"), "has 2 values; give the 3 of the array"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    done = run_tide("--out", tmp_path / "out", write(tmp_path, "Grade.idl", text), check=False)
    assert done.returncode == 2
    assert told in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "out").exists() or not generated(tmp_path / "out")


def test_the_package_in_the_file_is_that_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "Grade.idl", "module other_msgs { module msg { struct Grade { long one; }; }; };")
    library = Library([tmp_path])
    with pytest.raises(GenerateError, match="defines other_msgs/msg/Grade; in this folder it must be robot_msgs"):
        library.closure(library.expand("robot_msgs"))


def test_a_service_that_is_asked_for_as_a_message_is_named() -> None:
    with pytest.raises(GenerateError, match=r"^Trigger is a service: std_srvs/srv/Trigger$"):
        Library().file(TypeId("std_srvs", "msg", "Trigger"))
