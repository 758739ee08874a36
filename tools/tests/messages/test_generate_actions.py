# SPDX-License-Identifier: Apache-2.0
"""Actions: all messages and names that rosidl generates from a .action file are compared with rclpy and with rosidl's
headers."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from messages.build import COMPILER, HERE, ROOT, compile_c, run_tide
from messages.harness import Harness
from messages.test_generate_rclpy import check_type
from messages.values import random_message
from tide_tools.generate.model import ACTION_MESSAGES

ACTIONS = ("Fibonacci", "NestedMessage")
INCLUDE = Path(sys.prefix) / "include"


@pytest.fixture(scope="module")
def actions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("actions")
    run_tide("--out", out, "--registry", *(f"test_msgs/action/{name}" for name in ACTIONS))
    return out


@pytest.fixture(scope="module")
def action_harness(actions: Path) -> Harness:
    return Harness(compile_c(HERE / "harness.c", actions, actions / "harness.so", "-shared", "-fPIC", "-O0"))


def test_every_message_of_an_action_is_there(action_harness: Harness) -> None:
    names = {kind.name: kind.dds_name for kind in action_harness.types if kind.kind == "action"}
    assert set(names) == {action + part for action in ACTIONS for part in ACTION_MESSAGES}
    assert names["Fibonacci_SendGoal_Request"] == "test_msgs::action::dds_::Fibonacci_SendGoal_Request_"
    others = {str(kind) for kind in action_harness.types if kind.kind != "action"}
    assert {
        "unique_identifier_msgs/msg/UUID",
        "action_msgs/srv/CancelGoal_Request",
        "action_msgs/msg/GoalInfo",
    } < others


@pytest.mark.parametrize("seed", range(8))
def test_messages_go_to_rclpy_and_back(action_harness: Harness, seed: int) -> None:
    source = random.Random(seed)
    for kind in action_harness.types:
        check_type(action_harness, kind, random_message(kind.python, source))


def test_layouts_are_those_of_rosidl(actions: Path, action_harness: Harness, tmp_path: Path) -> None:
    lines = []
    for kind in (kind for kind in action_harness.types if kind.kind == "action"):
        name = f"test_msgs__action__{kind.name}"
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, _ in kind.fields]

    def sizes(headers: list[str], folders: list[str]) -> str:
        source = tmp_path / "sizes.c"
        included = "".join(f"#include <{header}>\n" for header in ("stdio.h", "stddef.h", *headers))
        source.write_text(f"{included}int main(void) {{\n" + "\n".join(lines) + "\nreturn 0; }\n")
        command = [COMPILER, "-w", *(f"-I{folder}" for folder in folders), str(source), "-o", str(tmp_path / "sizes")]
        subprocess.run(command, check=True)
        return subprocess.run([str(tmp_path / "sizes")], capture_output=True, text=True, check=True).stdout

    stems = ("fibonacci", "nested_message")
    ours = sizes([f"test_msgs/action/{stem}.h" for stem in stems], [str(actions), str(ROOT / "runtime/include")])
    folders = [str(folder) for folder in INCLUDE.iterdir() if folder.is_dir()]
    theirs = sizes([f"test_msgs/action/detail/{stem}__struct.h" for stem in stems], folders)
    assert ours == theirs
    assert len(ours.splitlines()) > 40


def test_type_support_has_every_part(actions: Path, tmp_path: Path) -> None:
    source = tmp_path / "parts.c"
    source.write_text(
        """#include <stdio.h>
#include <test_msgs/action/fibonacci.h>
#include <tide/message_memory.h>
static void service(const rosidl_service_type_support_t *support) {
  const tide_service_type_t *type = support->data;
  printf("%s %s\\n", type->request->dds_name, type->response->dds_name);
}
static void topic(const rosidl_message_type_support_t *support) {
  printf("%s\\n", ((const tide_message_type_t *)support->data)->dds_name);
}
int main(void) {
  const rosidl_action_type_support_t *support = ROSIDL_GET_ACTION_TYPE_SUPPORT(test_msgs, Fibonacci);
  service(support->goal_service_type_support);
  service(support->result_service_type_support);
  service(support->cancel_service_type_support);
  topic(support->feedback_message_type_support);
  topic(support->status_message_type_support);
  service(ROSIDL_GET_SRV_TYPE_SUPPORT(test_msgs, action, Fibonacci_SendGoal));
  return 0;
}
"""
    )
    program = compile_c(source, actions, tmp_path / "parts")
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    dds = "test_msgs::action::dds_::Fibonacci_{}_"
    goal = [dds.format("SendGoal_Request"), dds.format("SendGoal_Response")]
    cancel = [f"action_msgs::srv::dds_::CancelGoal_{part}_" for part in ("Request", "Response")]
    result = [dds.format("GetResult_Request"), dds.format("GetResult_Response")]
    topics = [dds.format("FeedbackMessage"), "action_msgs::msg::dds_::GoalStatusArray_"]
    assert printed == [*goal, *result, *cancel, *topics, *goal]


def test_a_mistake_in_an_action_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "my_msgs" / "action" / "Walk.action"
    file.parent.mkdir(parents=True)
    file.write_text("int32 steps\n---\nint32 walked\n---\nint3 now\n")
    done = run_tide("--out", tmp_path / "out", file, check=False)
    assert done.returncode == 2 and re.search(rf"{re.escape(str(file))}:5: ", done.stderr), done.stderr


def test_capacities_of_an_action(tmp_path: Path) -> None:
    rule = "test_msgs/action/Fibonacci_Result.sequence=500"
    run_tide("--out", tmp_path / "out", "--capacity", rule, "test_msgs/action/Fibonacci")
    header = (tmp_path / "out/test_msgs/action/fibonacci.h").read_text()
    assert "int32_t sequence[500];" in header and "int32_t sequence[16];" in header
