# SPDX-License-Identifier: Apache-2.0
"""Images with reduced runtimes (tide/options.h) exchange messages with ROS 2. Each of them publishes the last received
number plus one, and ends after 20 messages. Their sizes are not greater than promised. One of them is for a micro:bit,
whose Cortex-M0 has no CMake preset here."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from board import ROOT, image, ros_node, run_with_agent
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Int32

from commands import done

sys.path.insert(0, str(ROOT / "scripts"))
import sizes

pytestmark = pytest.mark.full

TALKS = [
    ("cortex-m7", "native_best_effort_leanest"),
    ("cortex-m7", "rclc_best_effort_lean"),
    ("cortex-m7", "native_reliable_lean"),
    ("cortex-m7", "native_reliable_leanest"),
    ("cortex-m4f", "rclc_reliable_lean"),
]


def talk_to_ros(core: str, name: str, tmp_path: Path) -> None:
    best_effort = "best_effort" in name
    qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE)
    said: list[int] = []
    with ros_node("echo") as (node, spin):
        answers = node.create_publisher(Int32, "heard", qos)

        def echo(message: Int32) -> None:
            said.append(message.data)
            answers.publish(message)

        node.create_subscription(Int32, "said", echo, qos)
        code, output = run_with_agent(core, name, tmp_path, spin)
    assert code == 0, f"the image ended with {code} (see tests/images/footprint)\n{output}"
    assert said[-1] == 20
    assert all(later in (earlier, earlier + 1) for earlier, later in pairwise(said)), said


@pytest.mark.parametrize(("core", "name"), TALKS)
def test_lean_image_talks_to_ros(core: str, name: str, tmp_path: Path) -> None:
    talk_to_ros(core, name, tmp_path)


MICROBIT = [
    *"arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb -Os -flto=1 -std=gnu11 -Wall -Wextra -Werror -ffreestanding".split(),
    *"-ffunction-sections -fdata-sections -DFOOTPRINT_CUSTOM -DFOOTPRINT_RELIABLE=1 -Iruntime/include".split(),
    *"-Iruntime/port/bare -Isim/mps2 -nostartfiles --specs=nano.specs -Wl,--gc-sections".split(),
    *"-Wl,--defsym=__stack_wanted=3072 -T sim/mps2/mps2.ld".split(),
    *(f"tests/images/footprint/{name}.c" for name in ("rclc", "microbit")),
    "sim/mps2/semihosting.c",
]


def test_a_microbit_with_16_kb_of_memory_talks_to_ros(tmp_path: Path) -> None:
    done("generate", "--out", tmp_path / "messages", "std_msgs/Int32")
    sources = [ROOT / "runtime/src", ROOT / "runtime/port/bare", tmp_path / "messages"]
    files = [str(file) for folder in sources for file in sorted(folder.rglob("*.c"))]
    elf = tmp_path / "microbit.elf"
    subprocess.run([*MICROBIT, *files, "-I", str(tmp_path / "messages"), "-o", str(elf)], cwd=ROOT, check=True)
    measured = sizes.measure_image(elf)
    print(measured)
    assert measured["ram"] + measured["message_memory"] + measured["stack_reserved"] <= 10_240, measured
    assert measured["flash"] <= 57_344, measured
    talk_to_ros("microbit", str(elf.with_suffix("")), tmp_path)


@pytest.mark.parametrize(
    ("name", "flash", "ram"),
    [
        ("native_best_effort_leanest", 16_384, 4_096),
        ("native_reliable_lean", 22_016, 6_144),
        ("native_reliable_leanest", 20_992, 6_144),
        ("rclc_best_effort_leanest", 22_016, 5_120),
        ("rclc_reliable_lean", 28_672, 6_144),
        ("rclc_reliable_leanest", 27_136, 6_144),
    ],
)
def test_lean_image_stays_small(name: str, flash: int, ram: int) -> None:
    measured = sizes.measure_image(image("cortex-m7", name))
    assert measured["flash"] <= flash, measured
    assert measured["ram"] <= ram, measured


@pytest.mark.parametrize("core", ["cortex-m7", "cortex-m4f"])
def test_no_function_takes_much_of_a_stack(core: str) -> None:
    build = ROOT / "build" / core
    rooms = [library.stem.removeprefix("libtide_") for library in sizes.room_libraries(build)]
    assert "compat" in rooms
    for room in rooms:
        frames = sizes.stack_frames(build, room)
        assert frames, f"{room}: the compiler has not said what its functions need"
        largest = max(frames, key=frames.__getitem__)
        assert frames[largest] <= 384, f"{room}: {largest}: {frames[largest]} bytes"
