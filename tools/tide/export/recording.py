# SPDX-License-Identifier: Apache-2.0
"""What a run recorded of each instance, from results.json: spans on boards, links and executors of the host."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tide.errors import UsageError


@dataclass(frozen=True, order=True)
class Step:
    """A part of an instance: from start to end on a place, a board, a link or an executor. Of a link and an executor it
    begins when the message comes there and ends when the next part begins, with all waiting.
    release_ns: the nominal expiry that the instance counts from. Times are those of the run's one clock."""

    chain: str
    instance: int
    start_ns: int
    end_ns: int
    place: str
    what: str
    release_ns: int


def read_recording(path: Path) -> list[Step]:
    """Of a results.json of `tide simulate --out`, or the folder that holds one."""
    file = path / "results.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; give the --out of tide simulate") from None
    except ValueError:
        raise UsageError(f"{file}: is no JSON; give the --out of tide simulate") from None
    recording = data.get("recording") if isinstance(data, dict) else None
    if not isinstance(recording, list) or not recording:
        raise UsageError(
            f"{file}: has no recording of instances; tide simulate system.toml --out writes one where a chain touches "
            "a board"
        )
    names = [field.name for field in fields(Step)]
    try:
        return sorted(Step(**{name: one[name] for name in names}) for one in recording)
    except (KeyError, TypeError):
        raise UsageError(f"{file}: is a recording of another version; run tide simulate again") from None


def to_csv(steps: Iterable[Step]) -> str:
    """A line for each step, chain by chain and instance by instance."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Step))
    writer.writerows(astuple(one) for one in steps)
    return text.getvalue()
