# SPDX-License-Identifier: Apache-2.0
"""The questions to the native analysis, in this process, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tide.analysis.lower import Document
from tide.programs.binaries import MissingBinaryError, build_folder

if TYPE_CHECKING:
    from tide.analysis.native import ChainAnswer, ExecutorsAnswer, LinkAnswer


class AnalysisError(Exception):
    """The analysis refused the system; the text has a line for each entry that is wrong."""


def ask_link(document: Document) -> LinkAnswer:
    """AnalysisError if the document is wrong, MissingBinaryError if the analysis has not been built."""
    with _refusals():
        from tide.analysis import native

        return native.bound_link(document)


def ask_executors(document: Document, **options: bool) -> ExecutorsAnswer:
    """As `ask_link`; the options are those of native.bound_executors."""
    with _refusals():
        from tide.analysis import native

        return native.bound_executors(document, **options)


def compare_executors(document: Document) -> tuple[ChainAnswer, ...]:
    """As `ask_link`: by every analysis that applies."""
    with _refusals():
        from tide.analysis import native

        return native.compare_executors(document)


def judge_random_sets(recipe: dict[str, Any], first: int, count: int) -> dict[str, int]:
    """As `ask_link`: how many of the sets of these seeds each analysis finds schedulable."""
    with _refusals():
        from tide.analysis import native

        return native.judge_random_sets(recipe, first=first, count=count)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise AnalysisError(str(error)) from None
    except ImportError as error:
        raise MissingBinaryError(
            f"the analysis is not built for this Python in {build_folder()} ({error}); "
            "run `make build`, or set TIDE_BUILD_DIR to a build"
        ) from None
