# SPDX-License-Identifier: Apache-2.0
"""Types of the values in a system description: times and names, with their limits."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticKnownError

LEVEL_MAXIMUM = 126  # TIDE_LEVEL_MAXIMUM of include/tide/priority.h
CHAIN_PRIORITY_MAXIMUM = 1_000_000
MILLISECONDS_MAXIMUM = 1_000_000_000  # kLongestTimeNs of analysis/model.h
CALLBACKS_MAXIMUM = 1000  # kMostCallbacks of analysis/model.h
PUBLICATIONS_MAXIMUM = 64  # of one callback
QUANTILES_MAXIMUM = 16
MTU_MINIMUM = 68  # MTU_BYTES_MINIMUM of src/session/session.c
QUANTUM_MINIMUM = 64  # of quantum_bytes
PRIORITY_MAXIMUM = 32_511  # of a callback: level 126, last position (level << 8 | position)
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _milliseconds(value: Any) -> Decimal:
    """Validates a number of milliseconds above 0. One function checks everything, which is faster than several
    validators, because a description has many of these numbers. Errors have the types of pydantic's errors."""
    number = _whole_nanoseconds(value)
    if number <= 0:
        raise PydanticKnownError("greater_than", {"gt": 0})
    return number


def _milliseconds_or_zero(value: Any) -> Decimal:
    number = _whole_nanoseconds(value)
    if number < 0:
        raise PydanticKnownError("greater_than_equal", {"ge": 0})
    return number


def _whole_nanoseconds(value: Any) -> Decimal:
    if isinstance(value, float):
        number = Decimal(str(value))
    elif isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        number = Decimal(value)
    else:
        raise ValueError("must be a number of milliseconds")
    if not number.is_finite():
        raise ValueError("must be a finite number of milliseconds")
    in_nanoseconds = number * 1_000_000
    if in_nanoseconds != in_nanoseconds.to_integral_value():
        raise ValueError("must be a whole number of nanoseconds")
    if number > MILLISECONDS_MAXIMUM:
        raise PydanticKnownError("less_than_equal", {"le": MILLISECONDS_MAXIMUM})
    return number


Quantiles = tuple[tuple[Decimal, Decimal], ...]
_SHARE = re.compile(r"0\.\d{1,6}")


def quantiles_of(value: Any) -> Any:
    """Validates a table of delays by share of the messages that take no longer, and sorts it by share."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict) or not 1 <= len(value) <= QUANTILES_MAXIMUM:
        raise ValueError(
            f'must be a table of 1 to {QUANTILES_MAXIMUM} delays, for example {{ "0.5" = 2, "0.999" = 25 }}'
        )
    if not all(_SHARE.fullmatch(share) and Decimal(share) for share in value):
        raise ValueError('must have shares between 0 and 1 as its keys, for example "0.999", of at most six decimals')
    found = tuple(sorted((Decimal(share), _milliseconds_or_zero(delay)) for share, delay in value.items()))
    if any(one[0] == other[0] or one[1] > other[1] for one, other in pairwise(found)):
        raise ValueError("must have each share once, and no longer delay for a smaller share")
    return found


def branch_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = tuple(value.split("."))
    if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ValueError("must be written as chain.callback")
    return parts


def branches_of(value: Any) -> Any:
    return tuple(map(branch_of, value)) if isinstance(value, (list, tuple)) else value


def nanoseconds(milliseconds: Decimal) -> int:
    return int(milliseconds * 1_000_000)


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


Milliseconds = Annotated[
    Decimal,
    PlainValidator(_milliseconds),
    PlainSerializer(_number, return_type=float),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MILLISECONDS_MAXIMUM}),
]
MillisecondsOrZero = Annotated[
    Decimal,
    PlainValidator(_milliseconds_or_zero),
    PlainSerializer(_number, return_type=float),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MILLISECONDS_MAXIMUM}),
]
DelayQuantiles = Annotated[
    Quantiles,
    BeforeValidator(quantiles_of),
    PlainSerializer(lambda value: {str(share): _number(delay) for share, delay in value} or None),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": MILLISECONDS_MAXIMUM}}
    ),
]
Name = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$", max_length=64)]
MessageType = Annotated[
    str,
    Field(pattern=r"^[a-z][a-z0-9_]*/((msg|srv|action)/[A-Z][A-Za-z0-9]*|action/[A-Z][A-Za-z0-9]*_FeedbackMessage)$"),
]
ServiceType = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9_]*/(srv/[A-Z][A-Za-z0-9]*|action/[A-Z][A-Za-z0-9]*_(SendGoal|GetResult))$")
]
Topic = Annotated[str, Field(pattern=r"^/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$", max_length=200)]
MEASURED = re.compile(r"^measured (\d+) times on \d{4}-\d\d-\d\d, margin (\d+(?:\.\d+)?) %$")
Source = Annotated[
    str,
    Field(
        pattern=f"^(placeholder|guessed|estimated)$|{MEASURED.pattern}",
        description='Source of the times in this entry: "placeholder" (tide new), "guessed" (tide trace describe), '
        '"estimated", or "measured 1200 times on 2026-11-28, margin 20 %" (tide trace).',
    ),
]
Where = Literal["mcu", "host"]
BoardPolicy = Literal["tide", "batch", "batch_stock", "batch_blocking"]
HostExecutor = Literal["tide", "single_threaded", "multi_threaded", "events", "events_cbg", "callback_isolated"]
Scheduling = Literal["other", "fifo", "deadline"]
Core = Annotated[int, Field(ge=0, le=1023)]
ThreadPriority = Annotated[int, Field(ge=1, le=99)]
Reliability = Literal["reliable", "best_effort"]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)
