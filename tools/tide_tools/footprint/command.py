# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.analysis.bounds import uses_of
from tide_tools.analysis.sizing import Client, client_of, only_board, options, pools
from tide_tools.errors import UsageError
from tide_tools.footprint.build import BuildError, Sizes, build, features, growth, measure, runtime_sources, symbols
from tide_tools.footprint.program import header
from tide_tools.footprint.stack import EXCEPTION_FRAME_BYTES, bound, read
from tide_tools.outputs import require_file, write_text
from tide_tools.system.load import load
from tide_tools.system.servers import on_one_core
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped

app = typer.Typer()
_SIZES = ("flash", "ram", "message_memory")
_STACKS = {
    "the program, or its only lane": "main",
    "a preemptive lane": "tide_cortex_m_software_interrupt",
    "an interrupt of the link": "tide_mps2_uart_receive_interrupt",
    "the timer's interrupt": "tide_cortex_m_wakeup_interrupt",
}


class Core(str, Enum):
    m7 = "cortex-m7"
    m4f = "cortex-m4f"


def _built(client: Client, core: str, definitions: list[str]) -> Sizes:
    with tempfile.TemporaryDirectory() as folder:
        return measure(build(client, core, definitions, Path(folder)))


def _with_stacks(client: Client, core: str, definitions: list[str]) -> tuple[Sizes, dict[str, int], dict[str, int]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = build(client, core, definitions, folder, graph=True)
        sizes = measure(image)
        graph = read(folder.glob("*.ci"), [*runtime_sources(), folder / "program.c"], symbols(image))
        stacks = {what: bound(graph, root).bytes for what, root in _STACKS.items()}
        return sizes, stacks, growth(core, definitions, folder)


def _whole_stack(client: Client, stacks: dict[str, int]) -> int:
    """Bound of the common stack: the stack of the program, and an exception frame and a stack for each lane that may
    preempt it and for one interrupt."""
    main, lane, *interrupts = stacks.values()
    lanes = client.lanes * (lane + EXCEPTION_FRAME_BYTES) if client.lanes > 1 else 0
    return main + lanes + max(interrupts) + EXCEPTION_FRAME_BYTES


def measured(client: Client, core: str) -> dict[str, Any]:
    needed = options(client)
    lean, stacks, more = _with_stacks(client, core, needed)
    whole = _built(client, core, [])
    result: dict[str, Any] = {
        "core": core,
        "everything": asdict(whole),
        "what the description needs": asdict(lean),
        "definitions": needed,
        "stack": stacks | {"all on one stack": _whole_stack(client, stacks)},
        "one more": more,
        "one feature more": features(core),
        "pools": pools(client),
    }
    return result


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = empty_table(title)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _print(result: dict[str, Any]) -> None:
    console = Console(emoji=False)
    needed, stack = result["what the description needs"], result["stack"]["all on one stack"]
    print_wrapped(
        console,
        f"{result['core']}: {needed['flash']:,} B of flash, {needed['ram']:,} B of RAM, "
        f"{needed['message_memory']:,} B of messages, {stack:,} B of stack at most",
        style="bold",
    )
    rows: list[tuple[str, ...]] = []
    for what in ("everything", "what the description needs"):
        sizes = result[what]
        rows.append((f"runtime with {what}", *(f"{sizes[key]:,}" for key in _SIZES)))
    columns = ("-Os, without link-time optimisation", "flash", "RAM", "of messages")
    print_whole(console, _table("bytes", columns, rows))
    stacks = [(what, f"{size:,}") for what, size in result["stack"].items() if size > 0]
    print_whole(console, _table("stack at most, with callbacks that publish", ("what", "bytes"), stacks))
    more = [(what.replace("_", " "), f"{size:,}") for what, size in sorted(result["one more"].items())]
    print_whole(console, _table("one more, without its messages", ("what", "RAM"), more))
    if result["one feature more"]:
        rows = [(what, *(f"{one[key]:,}" for key in _SIZES)) for what, one in result["one feature more"].items()]
        title = "one feature more than publishing, as recorded (scripts/sizes.py)"
        print_whole(console, _table(title, ("what", "flash", "RAM", "of messages"), rows))
    console.print("definitions for runtime and program: " + " ".join(result["definitions"]), soft_wrap=True)


@app.command()
def footprint(
    file: Annotated[Path, typer.Argument(help="Description of the system.")] = Path("system.toml"),
    core: Annotated[Core, typer.Option(help="Core to build for.")] = Core.m7,
    board: Annotated[
        str | None, typer.Option(metavar="NAME", help="Board to build for, if the description has several.")
    ] = None,
    header_file: Annotated[
        Path | None,
        typer.Option("--header", help="File for the header that sizes every pool; nothing else is built then."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compute flash, RAM and stack of a board's image, with pools sized from the description.

    The image contains everything that the description names, with empty callbacks. The sizes are those of the whole
    image with its start-up code. RAM does not include the memory of messages, which is printed separately.

    Example: tide footprint examples/three_chains/system.toml
    """
    require_file(header_file)
    system = on_one_core(load(file))
    client = client_of(only_board(system, board), uses_of(system))
    if not client.executors:
        raise UsageError(f"tide footprint: '{file}' has no executor on a microcontroller")
    if header_file is not None:
        write_text(header_file, header(client, file.name))
        return
    try:
        result = measured(client, core.value)
    except BuildError as error:
        typer.echo(f"tide footprint: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(result, indent=1))
    else:
        _print(result)
