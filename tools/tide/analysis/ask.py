# SPDX-License-Identifier: Apache-2.0
"""The questions to the native analysis, in this process, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tide.analysis.lower import Document
from tide.programs.binaries import MissingBinaryError, build_folder

if TYPE_CHECKING:
    from tide.analysis.native import ExecutorsAnswer, LinkAnswer


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
