# SPDX-License-Identifier: Apache-2.0
"""Programs of the user in a run: commands and images that are started, and how each is told what it needs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tide.programs.child import Child, Children
from tide.run.board_image import machine
from tide.system.places import Executor
from tide.system.variants import PlanError

_START_LIMIT_S = 30.0


def role_of(executor: Executor) -> str:
    return f"{'board' if executor.where == 'mcu' else 'host executor'} '{executor.name}'"


def command_of(executor: Executor, folder: Path, values: dict[str, str]) -> list[str]:
    """Its words. PlanError when there is no such program."""
    assert executor.command is not None
    try:
        words = shlex.split(executor.command)
    except ValueError as error:
        raise PlanError(f"{role_of(executor)}: its command is no line of a shell: {error}") from None
    for key, value in values.items():
        words = [word.replace(f"{{{key}}}", value) for word in words]
    unknown = next((found[0] for word in words if (found := re.search(r"\{[a-z]+\}", word))), None)
    if unknown is not None:
        known = ", ".join(f"{{{key}}}" for key in values) or "nothing"
        raise PlanError(f"{role_of(executor)}: its command has {unknown}; known there: {known}")
    program = words[0] if words else ""
    path = shutil.which(str(folder / program) if "/" in program else program)
    if path is None:
        raise PlanError(f"{role_of(executor)}: its command '{program}' is no program that can be started; correct it")
    return [path, *words[1:]]


def require_programs(executors: list[Executor], folder: Path) -> None:
    """PlanError, before anything is started, when one of them cannot be."""
    for executor in executors:
        if executor.command is not None:
            values = ("device", "baud", "port", "domain") if executor.where == "mcu" else ("domain",)
            command_of(executor, folder, dict.fromkeys(values, ""))
        if executor.image is not None and not (folder / executor.image).is_file():
            raise PlanError(f"{role_of(executor)}: there is no image '{executor.image}'; build it, or correct its path")
        if executor.image is not None and shutil.which("qemu-system-arm") is None:
            raise PlanError(f"{role_of(executor)}: qemu-system-arm is missing; install it")
        if executor.attach is not None and executor.attach.startswith("/") and not Path(executor.attach).exists():
            raise PlanError(f"{role_of(executor)}: there is no device '{executor.attach}'; plug it in")


def _by_line() -> list[str]:
    """What makes a program in C write each line at once: its log would lack the last ones, which are those that say why
    it ended."""
    program = shutil.which("stdbuf")
    return [] if program is None else [program, "-oL"]


def start_command(
    children: Children, executor: Executor, folder: Path, log: Path, values: dict[str, str], environment: dict[str, str]
) -> Child:
    command = [*_by_line(), *command_of(executor, folder, values)]
    environment = {**environment, "PYTHONUNBUFFERED": "1"}
    child: Child = children.start(
        role_of(executor), command, log, environment=environment, folder=folder, is_group=True
    )
    return child


def start_image(children: Children, executor: Executor, folder: Path, log: Path) -> str:
    """The terminal in which the line of its first UART ends."""
    image = (folder / str(executor.image)).resolve()
    command = ["qemu-system-arm", "-M", machine(image), "-display", "none", "-monitor", "none"]
    command += ["-chardev", "pty,id=line", "-serial", "chardev:line", "-semihosting-config", "enable=on,target=native"]
    command += ["-kernel", str(image)]
    child: Child = children.start(role_of(executor), command, log, folder=folder)
    line = child.wait_line(lambda text: "/dev/pts/" in text, _START_LIMIT_S, "started")
    found = re.search(r"/dev/pts/\d+", line)
    assert found is not None
    return found.group(0)
