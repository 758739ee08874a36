# SPDX-License-Identifier: Apache-2.0
"""The system description: how it is read, and what is reported for each kind of mistake."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounded import refusal
from commands import tide
from tide_tools.play.host import host_plan
from tide_tools.system.load import SystemFileError, load, parse
from tide_tools.system.locate import locate
from tide_tools.system.schema import json_schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
THREE_CHAINS = ROOT / "examples/three_chains/system.toml"
PICAS = ROOT / "examples/published/picas_mt/system.toml"
FOUR_CHAINS = ROOT / "examples/published/four_chains/system.toml"
TEXT = THREE_CHAINS.read_text(encoding="utf-8")


def line_of(text: str, needle: str, occurrence: int = 1) -> int:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if needle in line]
    return lines[occurrence - 1]


def replaced(old: str, new: str, occurrence: int = 1) -> str:
    parts = TEXT.split(old)
    assert len(parts) > occurrence, f"the example has no {old!r} number {occurrence}"
    return old.join(parts[:occurrence]) + new + old.join(parts[occurrence:])


def test_example_is_read_in_nanoseconds() -> None:
    system = load(THREE_CHAINS)
    assert [chain.name for chain in system.by_urgency()] == ["brake", "steer", "battery"]
    brake = system.chains[0]
    assert (brake.period_ns, brake.deadline_ns) == (500_000_000, 60_000_000)
    assert [callback.execution_ns for callback in brake.callbacks] == [10_000_000, 1_000_000, 10_000_000]
    assert [system.where(callback) for callback in brake.callbacks] == ["mcu", "host", "mcu"]
    link = system.link_of(brake)
    assert link is not None and link.kind == "serial" and link.byte_ns == 86_806


def test_fractions_of_milliseconds_are_exact() -> None:
    longest = parse(replaced("execution_ms = 10", "execution_ms = 0.1").replace("_ms = 500", "_ms = 999999999.999999"))
    assert longest.chains[0].period_ns == 999_999_999_999_999
    system = parse(replaced("execution_ms = 10", "execution_ms = 0.1"))
    assert system.chains[0].callbacks[0].execution_ns == 100_000
    assert "whole number of nanoseconds" in refusal(replaced("execution_ms = 10", "execution_ms = 0.0000001"))[0]


@pytest.mark.parametrize(
    ("old", "new", "what", "remedy", "place"),
    [
        ("period_ms = 500", "period_ms = 0", "'period_ms' is 0", "more than 0", None),
        ("period_ms = 500", f"period_ms = {2**63}", f"'period_ms' is {2**63}", "at most 1000000000", None),
        ("execution_ms = 10", "execution_ms = 1e30", "'execution_ms' is 1E+30", "at most 1000000000", None),
        ("deadline_ms = 60", "deadline_ms = -1", "'deadline_ms' is -1", "more than 0", None),
        ("deadline_ms = 60", "deadline_ms = 15", "executes for longer", "lengthen", None),
        ("deadline_ms = 60", "deadlin_ms = 60", "unknown key 'deadlin_ms'", "did you mean 'deadline_ms'", None),
        (
            "priority = 2",
            "priority = 3",
            "both have priority 3 and meet on executor 'client'",
            "give each its own priority",
            None,
        ),
        ("priority = 2", "priority = 1000001", "'priority' is 1000001", "at most 1000000", None),
        ('"reliable"', '"sure"', "'reliability' is 'sure'", "'reliable' or 'best_effort'", None),
        ('name = "steer"', 'name = "brake"', "two chains named 'brake'", "rename", None),
        ('name = "act"', 'name = "sample"', "two callbacks named 'sample'", "rename", None),
        ('executor = "client"', 'executor = "clint"', "no executor 'clint'", "client, ros2", None),
        ('kind = "timer"', 'kind = "subscription"', "so nothing starts it", "timer first", None),
        ('kind = "subscription"', 'kind = "timer"', "in the middle", "subscription", None),
        (
            "steer/request",
            "brake/answer",
            "takes topic 'brake/answer' of",
            "rename the topic",
            'topic = "brake/answer"',
        ),
        ("115_200", "1_200", "has to carry", "raise baud", "[[links]]"),
        ("execution_ms = 10", "execution_ms = 600", "one core", "shorten execution_ms", "[[executors]]"),
        ("payload_bytes = 100", "payload_bytes = 1.5", "'payload_bytes' is 1.5", "whole number", None),
        ('where = "mcu"', "", "executor 1 lacks 'where'", "add where", "[[executors]]"),
        ('name = "uart"', 'name = "uart"\nname = "uart"', "", "remove one of the two", "+1"),
        ("[[links]]", "[links]\n[links]", "[links] is declared twice", "begins with [[...]]", "+1"),
        ("period_ms = 500", "period_ms = inf", "finite", "milliseconds", None),
        ("period_ms = 500", 'period_ms = "500"', "'period_ms' is '500'", "number of milliseconds", None),
        ("period_ms = 500", "period_ms = true", "'period_ms' is true", "number of milliseconds", None),
        ("baud = 115_200", "baud = 0", "'baud' is 0", "at least 1200", None),
        ('kind = "serial"', 'kind = "can"', "serial", "udp", "[[links]]"),
        ('name = "brake"', 'name = "Brake"', "'name' is 'Brake'", "lower-case", None),
    ],
)
def test_mistakes_name_line_and_remedy(old: str, new: str, what: str, remedy: str, place: str | None) -> None:
    text = replaced(old, new)
    changed = TEXT[: TEXT.index(old)].count("\n") + 1
    expected = changed if place is None else changed + 1 if place == "+1" else line_of(text, place)
    lines = refusal(text)
    for line in lines:
        assert re.fullmatch(r"system\.toml:\d+: [^\n]+; [^\n]+", line), line
    matching = [line for line in lines if what in line and remedy in line]
    assert matching, lines
    assert matching[0].startswith(f"system.toml:{expected}: ")


def test_a_break_in_a_chain_is_found() -> None:
    text = replaced('publishes = { topic = "brake/answer", payload_bytes = 10 }\n', "")
    (line,) = refusal(text)
    assert "breaks after 'decide'" in line and "'act'" in line
    assert int(line.split(":")[1]) == line_of(text, "[[chains.callbacks]]", 2)


def test_all_mistakes_come_at_once_and_in_order() -> None:
    text = TEXT.replace("period_ms = 500", "period_ms = 0")
    lines = refusal(text)
    assert [int(line.split(":")[1]) for line in lines] == [line_of(text, "period_ms = 0", n) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "text", ["", "x", "[system]\nname = ", "chains = 3\nlinks = [1]\n", "[[chains]]\n[chains.x]\n"]
)
def test_useless_files_are_refused_line_by_line(text: str) -> None:
    for line in refusal(text):
        assert re.fullmatch(r"system\.toml:\d+: [^\n]+; [^\n]+", line), line


def test_a_chain_has_at_most_so_many_callbacks() -> None:
    callback = '{ name = "b", kind = "timer", executor = "main", execution_ms = 1 }, '
    text = f"[[chains]]\ncallbacks = [{1001 * callback}]\n"
    assert "system.toml:2: 'callbacks' has 1001 entries; at most 1000 are possible" in refusal(text)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SystemFileError, match=r"cannot be read.*check the path"):
        load(tmp_path / "missing.toml")
    with pytest.raises(SystemFileError, match=r"bom\.toml:1: begins with a byte order mark; save"):
        (tmp_path / "bom.toml").write_text(TEXT, encoding="utf-8-sig")
        load(tmp_path / "bom.toml")
    (tmp_path / "latin.toml").write_bytes(b"# fine\n# \xe9\n")
    with pytest.raises(SystemFileError, match=r"latin\.toml:2: is not UTF-8"):
        load(tmp_path / "latin.toml")


@settings(max_examples=300)
@given(st.data())
def test_any_mutation_is_read_or_refused_in_one_line_each(data: st.DataObject) -> None:
    lines = TEXT.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        action = data.draw(st.sampled_from(["drop", "double", "cut", "character"]))
        if action == "drop":
            lines[at] = ""
        elif action == "double":
            lines[at] = lines[at] + "\n" + lines[at]
        elif action == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
        else:
            place = data.draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:place] + data.draw(st.sampled_from(list("=[]{}\"'-.#0x\n,é"))) + lines[at][place:]
    text = "\n".join(lines)
    try:
        parse(text)
    except SystemFileError as error:
        last = text.count("\n") + 1
        for line in error.lines:
            match = re.fullmatch(r"system\.toml:(\d+): [^\n]+; [^\n]+", line)
            assert match and 1 <= int(match.group(1)) <= last, line


_VALUES = st.recursive(
    st.one_of(
        st.integers(-99, 99),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.text(alphabet="a#]}[{,\"'\\=\n é", max_size=6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text('ab.# "', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(inner) for inner in value) + "]"
    return json.dumps(value)


def _paths(value: object, path: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(found for key, child in inner for found in _paths(child, (*path, key)))]


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["a", "b b", "c.d", "e", '"', "#"]), _VALUES, max_size=4), st.integers(0, 2))
def test_locator_finds_every_key_on_its_line(values: dict[str, object], gap: int) -> None:
    lines = ["[[list]]", "[list.first]", "[[list]] # again", "[list.second]"]
    expected: dict[tuple[str | int, ...], int] = {
        ("list", 0): 1,
        ("list", 0, "first"): 2,
        ("list", 1): 3,
        ("list", 1, "second"): 4,
    }
    for key, value in values.items():
        lines += ["# comment [x] = 'y'"] * gap
        lines.append(f"{json.dumps(key)} = {_inline(value)}")
        for path in _paths(value, ("list", 1, "second", key)):
            expected[path] = len(lines)
    text = "\n".join(lines)
    tomllib.loads(text)
    found = locate(text)
    assert {path: found.get(path) for path in expected} == expected


def test_locator_follows_strings_and_arrays_over_lines() -> None:
    text = 'a = """\n[not.a.table]\n""""\nb = [ # x\n  1,\n  { c = \'\'\'\n\'\'\' },\n]\nd.e = 1979-05-27 07:32:00\n'
    text += "f = 1\n"
    tomllib.loads(text)
    found = locate(text)
    assert {path: found[path] for path in [("a",), ("b", 0), ("b", 1, "c"), ("d", "e"), ("f",)]} == {
        ("a",): 1,
        ("b", 0): 5,
        ("b", 1, "c"): 6,
        ("d", "e"): 9,
        ("f",): 10,
    }


def test_schema_accepts_the_example_and_refuses_mistakes() -> None:
    schema = json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    data = tomllib.loads(TEXT)
    assert validator.is_valid(data)
    assert validator.is_valid(tomllib.loads(PICAS.read_text(encoding="utf-8")))
    for change in ({"period_ms": 0}, {"colour": 1}, {"reliability": "sure"}, {"priority": 0}, {"name": "Brake"}):
        data["chains"][0] = {**tomllib.loads(TEXT)["chains"][0], **change}
        assert not validator.is_valid(data), change


def _words(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_words, schema))
    if not isinstance(schema, dict):
        return set()
    inner = [_words(value) for key, value in schema.items() if key not in ("properties", "$defs", "mapping", "default")]
    tables = [_words(value) for key in ("properties", "$defs") for value in schema.get(key, {}).values()]
    return set(schema) | set().union(*inner, *tables)


def test_schema_has_only_words_that_editors_know_and_describes_every_key() -> None:
    schema = json_schema()
    known = (
        "$schema $defs $ref type properties required additionalProperties items anyOf oneOf const enum default title"
    )
    limits = "description minimum maximum exclusiveMinimum minLength maxLength pattern minItems maxItems discriminator"
    assert _words(schema) <= {*known.split(), *limits.split(), "exclusiveMaximum", "propertyName", "mapping"} | {
        "mcu",
        "host",
        "serial",
        "udp",
    }
    for name, definition in {**schema["$defs"], "System": schema}.items():
        for key, entry in definition["properties"].items():
            assert entry.get("description"), f"{name}.{key}"


@pytest.mark.parametrize("key", ["heartbeat_delay_ms", "agent_heartbeat_ms", "agent_ms", "baud", "mtu_bytes"])
@pytest.mark.parametrize("value", [-1, 0, 1, 63, 1000, 1001, 10_000, 10_001, 65_536, 10**9, 10**9 + 1])
def test_schema_and_tide_have_the_same_limits(key: str, value: int) -> None:
    text = re.sub(rf"^{key} = .*\n", "", TEXT, flags=re.MULTILINE)
    text = text.replace('kind = "serial"\n', f'kind = "serial"\n{key} = {value}\n', 1)
    validator = jsonschema.Draft202012Validator(json_schema())
    try:
        parse(text)
        said = []
    except SystemFileError as error:
        said = [line for line in error.lines if "it must be" in line]
    assert validator.is_valid(tomllib.loads(text)) == (not said), said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[system]", "[sytem]", "unknown key 'sytem'; did you mean 'system'?"),
        ("[[links]]", "[links]", "'links' is a table; write a list of tables, each below a line [[links]]"),
        ("period_ms", "perid_ms", "unknown key 'perid_ms' in chain 1; did you mean 'period_ms'?"),
        ("\nbaud", "\nbaut", "unknown key 'baut' in link 1; did you mean 'baud'?"),
    ],
)
def test_one_mistake_is_one_line(old: str, new: str, says: str) -> None:
    (line,) = refusal(TEXT.replace(old, new, 1))
    assert line.endswith(says)


def test_a_missing_table_is_shown_as_it_is_written() -> None:
    text = TEXT[TEXT.index("[[executors]]") :]
    (line,) = refusal(text)
    assert line.endswith("the file lacks 'system'; add [system]")


def test_of_many_problems_the_first_are_told() -> None:
    text = TEXT + "".join(
        f'[[chains]]\nname = "c{n}"\npriority = 1\nperiod_ms = 9\ndeadline_ms = 9\nreliability = "reliable"\n'
        f'[[chains.callbacks]]\nname = "a"\nkind = "timer"\nexecutor = "none"\nexecution_ms = 1\n'
        for n in range(50)
    )
    lines = refusal(text)
    assert len(lines) == 21 and "more problems from here on; correct those above first" in lines[-1]


def test_a_device_without_an_end_is_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tide_tools.system.load.MOST_BYTES", 2**20)
    with pytest.raises(SystemFileError, match="has more than 1 MB"):
        load("/dev/zero")


def test_commands_print_table_schema_and_problems(tmp_path: Path) -> None:
    status, shown = tide("show", THREE_CHAINS)
    assert status == 0 and "brake" in shown and "115200 baud" in shown
    status, printed = tide("show", "--as", "schema")
    assert json.loads(printed)["title"] == "tide system description"
    bad = tmp_path / "bad.toml"
    bad.write_text(TEXT.replace("period_ms = 500", "period_ms = 0", 1), encoding="utf-8")
    status, refused = tide("show", bad)
    assert status == 2
    assert f"{bad}:{line_of(TEXT, 'period_ms')}: " in refused


def host_refusal(old: str, new: str) -> tuple[str, list[str]]:
    text = PICAS.read_text(encoding="utf-8")
    assert text.count(old) >= 1, old
    text = text.replace(old, new, 1)
    return text, refusal(text)


def test_a_chain_that_branches_begins_with_the_callbacks_of_another() -> None:
    system = load(PICAS)
    c2 = system.chain("c2")
    assert [callback.name for callback in system.path(c2)] == ["sense", "filter", "track", "steer"]
    assert system.path(c2)[0] is system.chain("c1").callbacks[0]
    assert [one.priority for one in system.path(c2)] == [8, 9, 10, 11]
    more = """
[[chains]]
name = "c5"
priority = 5
period_ms = 50
deadline_ms = 50
reliability = "reliable"
branches_from = "c2.track"

[[chains.callbacks]]
name = "record"
kind = "subscription"
executor = "main"
execution_ms = 1
priority = 13
"""
    longer = parse(PICAS.read_text(encoding="utf-8") + more)
    assert [callback.name for callback in longer.path(longer.chain("c5"))] == ["sense", "filter", "track", "record"]


@pytest.mark.parametrize(
    ("old", "new", "what", "remedy", "place"),
    [
        ('"c1.sense"', '"c9.sense"', "no chain 'c9'", "c1, c2, c3, c4", "branches_from"),
        ('"c1.sense"', '"c1.sence"', "no callback 'sence' of its own", "sense, control", "branches_from"),
        ('"c1.sense"', '"c2.filter"', "branches from itself", "begin with a timer", "branches_from"),
        ('"c1.sense"', '"c1.control"', "publishes nothing", "add publishes", "branches_from"),
        ('"c1.sense"', '"sense"', "'branches_from' is 'sense'", "chain.callback", "branches_from"),
        ('"c1.sense"', '"c3.sense"', "another period", "period_ms = 100", "period_ms = 50"),
        ('group = "all"', 'group = "al"', "no group 'al'", "all", 'group = "al"'),
        ('kind = "reentrant"', 'kind = "free"', "'kind' is 'free'", "'exclusive' or 'reentrant'", 'kind = "free"'),
        ("priority = 8\n", "", "'sense' has no priority, but", "add priority", "[[chains.callbacks]]"),
        ("priority = 8\n", "priority = 0\n", "'priority' is 0", "at least 1", "priority = 0"),
        (
            "[[groups]]",
            '[[groups]]\nname = "all"\nkind = "exclusive"\n\n[[groups]]',
            "two groups",
            "rename",
            'name = "all"',
        ),
    ],
)
def test_mistakes_of_the_host_name_line_and_remedy(old: str, new: str, what: str, remedy: str, place: str) -> None:
    text, lines = host_refusal(old, new)
    matching = [line for line in lines if what in line and remedy in line]
    assert matching, lines
    occurrence = 2 if what in ("another period", "two groups") else 1
    assert matching[0].startswith(f"system.toml:{line_of(text, place, occurrence)}: ")


def test_groups_stay_on_one_executor_and_on_the_host() -> None:
    two = 'where = "host"\nlanes = 2\n\n[[executors]]\nname = "other"\nwhere = "{}"\n'
    text = PICAS.read_text(encoding="utf-8").replace('where = "host"\nlanes = 2\n', two.format("host"))
    text = text.replace('executor = "main"', 'executor = "other"', 1)
    assert any("on the executors 'other' and 'main'" in line for line in refusal(text))
    lines = refusal(text.replace(two.format("host"), two.format("mcu")))
    assert any("where groups are not described" in line for line in lines)
    assert any("where chains give the priorities" in line for line in lines)


def test_a_callback_of_two_chains_loads_its_executor_once() -> None:
    text = PICAS.read_text(encoding="utf-8").replace("lanes = 2", "lanes = 1")
    (line,) = refusal(text)
    assert "132 % of a core" in line


def test_a_plan_of_the_host() -> None:
    plan = host_plan(load(PICAS), "readyset", 1.5, 7).split(";")
    assert plan[:2] == ["seed=7", "horizon_us=1500000.000"]
    assert plan[4] == "executor=name=main lanes=2 policy=readyset"
    times = "execution_us=3000.000 least_us=3000.000 priority=8 reentrant=true period_us=50000.000 phase_us=0.000"
    assert plan[5] == f"callback=name=c1.sense on=main {times} jitter_us=0.000"
    assert "message=name=c1.sense.1 from=c1.sense to=c2.filter,c1.control bytes=8 depth=64 every=1" in plan
    assert plan[-3] == "path=name=c2 callbacks=c1.sense,c2.filter,c2.track,c2.steer"
    chain_aware = host_plan(load(FOUR_CHAINS), "tide", 1)
    assert "callback=name=c1.plan on=main execution_us=8000.000 least_us=8000.000 priority=1025" in chain_aware
