# SPDX-License-Identifier: Apache-2.0
"""With one additional line, the Makefile that STM32CubeMX writes builds the package, although several sources have the
same name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, run

DECLARATIONS = ROOT / "runtime/tests/port"
MESSAGES = ("std_msgs", "builtin_interfaces")
MAKEFILE = """
TARGET = robot
BUILD_DIR = build
C_SOURCES = main.c
CC = arm-none-eabi-gcc
MCU = -mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard
C_INCLUDES = {includes}
CFLAGS += $(MCU) $(C_INCLUDES) -O0 -Wall -fdata-sections -ffunction-sections
CFLAGS += -MMD -MP -MF"$(@:%.o=%.d)"
LDFLAGS = $(MCU) -specs=nano.specs -lc -lm -lnosys -Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all
all: $(BUILD_DIR)/$(TARGET).elf
{line}
OBJECTS = $(addprefix $(BUILD_DIR)/,$(notdir $(C_SOURCES:.c=.o)))
vpath %.c $(sort $(dir $(C_SOURCES)))
$(BUILD_DIR)/%.o: %.c Makefile | $(BUILD_DIR)
\t$(CC) -c $(CFLAGS) $< -o $@
$(BUILD_DIR)/$(TARGET).elf: $(OBJECTS) Makefile
\t$(CC) $(OBJECTS) $(LDFLAGS) -o $@
$(BUILD_DIR):
\tmkdir $@
"""
PROGRAM = """
#include "main.h"
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include "cubemx_transport.h"
UART_HandleTypeDef huart3;
int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_node_t node;
  rcl_publisher_t publisher;
  rmw_uros_set_custom_transport(true, &huart3, cubemx_transport_open, cubemx_transport_close, cubemx_transport_write,
                                cubemx_transport_read);
  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 1;
  if (rclc_node_init_default(&node, "node", "", &support) != RCL_RET_OK) return 2;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  return (int)rclc_publisher_init_default(&publisher, &node, type, "numbers");
}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boards")
    run([sys.executable, ROOT / "scripts/packages.py", "--only", "stm32cube", "--out", out], out)
    made = out / "stm32cube/tide_micro_ros"
    for folder in (made / "messages").iterdir():
        if folder.is_dir() and folder.name not in MESSAGES:
            shutil.rmtree(folder)
    return made


@pytest.mark.parametrize(
    ("words", "includes", "names"),
    [
        ("", (), {"cubemx_transport_open", "tide_bare_clock_us", "tide_session_poll"}),
        ("TIDE_CUBE_FREERTOS = 1", (DECLARATIONS / "rtos",), {"cubemx_transport_open", "tide_session_poll"}),
        ("TIDE_CUBE_TRANSPORT =", (), {"tide_bare_clock_us", "tide_session_poll"}),
    ],
    ids=["bare", "FreeRTOS", "own transport"],
)
def test_one_line_builds_it(
    package: Path, words: str, includes: tuple[Path, ...], names: set[str], tmp_path: Path
) -> None:
    shutil.copytree(package, tmp_path / "tide_micro_ros")
    (tmp_path / "main.c").write_text(PROGRAM)
    folders = " ".join(f"-I{folder}" for folder in (".", DECLARATIONS / "stm32cube", *includes))
    line = f"{words}\ninclude tide_micro_ros/tide.mk"
    (tmp_path / "Makefile").write_text(MAKEFILE.format(includes=folders, line=line))
    run(["make", "-j2"], tmp_path)
    listed = run(["arm-none-eabi-nm", "--defined-only", "build/robot.elf"], tmp_path)
    defined = {row.split()[-1] for row in listed.splitlines()}
    known = {"cubemx_transport_open", "tide_bare_clock_us", "tide_session_poll"}
    assert defined & known == names
    again = subprocess.run(["make"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Nothing to be done" in again.stdout
