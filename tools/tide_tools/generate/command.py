# SPDX-License-Identifier: Apache-2.0
"""Command line of `tide generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

_EPILOG = (
    "Examples: tide generate --out generated std_msgs geometry_msgs/Twist | "
    "tide generate --out generated --capacity sensor_msgs/msg/Image.data=40000 sensor_msgs/Image | "
    "tide generate --out generated my_robot_msgs/msg/Wheel.msg"
)


@app.command(epilog=_EPILOG)
def generate(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packages (std_msgs), interfaces (std_msgs/String), folders of packages, or .msg, .srv, .action, "
            ".idl files."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder that receives the C files.")] = Path("generated"),
    all_common: Annotated[
        bool, typer.Option("--all-common", help="Generate all of common_interfaces and the packages that it uses.")
    ] = False,
    search: Annotated[
        list[Path] | None, typer.Option("--search", help="Folder with further packages; may be repeated.")
    ] = None,
    string_capacity: Annotated[
        int | None, typer.Option("--string-capacity", help="Characters of a string, including its NUL. [default: 64]")
    ] = None,
    sequence_capacity: Annotated[
        int | None, typer.Option("--sequence-capacity", help="Elements of an unbounded sequence. [default: 16]")
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option("--capacity", help="Capacity of one member, PACKAGE/msg/NAME.MEMBER=COUNT; may be repeated."),
    ] = None,
    capacities: Annotated[
        Path | None,
        typer.Option("--capacities", help="TOML file with the keys string and sequence and the table capacity."),
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write a table of all types, too, for selection at run time.")
    ] = False,
) -> None:
    """Turn ROS 2 message definitions into C: structures with rosidl's layout, CDR encoders and decoders, static memory.

    Types that a message contains are generated, too. Files whose content does not change are not written."""
    from tide_tools.generate.emit import generate as run
    from tide_tools.generate.model import GenerateError
    from tide_tools.generate.source import COMMON_PACKAGES, Library
    from tide_tools.generate.wire import combine

    try:
        for folder in search or ():
            if not folder.is_dir():
                raise GenerateError("no such folder; correct --search", folder)
        library = Library(list(search or []))
        words = [*(inputs or []), *(COMMON_PACKAGES if all_common else ())]
        if not words:
            raise GenerateError("nothing to generate; name a package such as std_msgs, or give --all-common")
        wanted = [item for word in words for item in library.expand(word)]
        memory = combine(capacities, string_capacity, sequence_capacity, list(capacity or []))
        result = run(library, wanted, memory, out, registry=registry)
    except GenerateError as error:
        typer.echo(f"tide generate: {error}", err=True)
        raise typer.Exit(2) from None
    interfaces = "1 interface" if result.interfaces == 1 else f"{result.interfaces} interfaces"
    if result.up_to_date:
        typer.echo(f"{interfaces} in {out}: up to date")
    else:
        typer.echo(f"{interfaces} in {out}: files written: {len(result.written)}")
