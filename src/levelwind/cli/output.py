"""What leaves the command: the answer on stdout, in one of two forms, and everything else on stderr.

Rich is imported only where something is drawn: a program that reads JSON does not wait for it.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Format(StrEnum):
    """The form of an answer."""

    TEXT = "text"
    JSON = "json"


def chosen_format(asked: Format | None) -> Format:
    """The form asked for, else what suits the reader: text for a terminal, JSON for a pipe or a file."""
    if asked is not None:
        return asked
    return Format.TEXT if sys.stdout.isatty() else Format.JSON


def answer(
    asked: Format | None,
    as_json: Callable[[], Any],
    as_text: Callable[[], RenderableType],
    *,
    remarks: Iterable[str] = (),
) -> None:
    """Print the answer in the chosen form; only that form is worked out.

    ``remarks`` stand in the JSON already; with the text they follow on stderr, each once.
    """
    if chosen_format(asked) is Format.JSON:
        print_json(as_json())
        return
    print_text(as_text())
    for remark in dict.fromkeys(remarks):
        note(remark)


def print_json(value: Any) -> None:
    """Print a value as JSON to stdout. NaN and infinity, which JSON lacks, become null."""
    _write(json_text(value, only_ascii="utf" not in (sys.stdout.encoding or "utf-8").lower()))


def json_text(value: Any, *, only_ascii: bool = False) -> str:
    """A value as JSON text with a line end. Mappings, tuples and NumPy's scalars are allowed."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=only_ascii, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return _plain(value.value)
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays; asked by name so that NumPy need not be there
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def print_text(shown: RenderableType) -> None:
    """Draw text or a table on stdout; colours and bold only on a terminal that wants them."""
    if isinstance(shown, str):  # a sentence or a path is copied whole
        _write(f"{shown}\n")
        return
    screen = console(sys.stdout)
    with screen.capture() as drawn:
        screen.print(shown)
    _write("".join(f"{line.rstrip(' ')}\n" for line in drawn.get().splitlines()))


def console(stream: Any) -> Console:
    """A console that draws what it is given and guesses nothing (no markup, emoji or highlighting)."""
    from rich.console import Console

    terminal = Console(file=stream)
    return Console(
        file=stream,
        width=terminal.width,
        force_terminal=terminal.is_terminal,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def note(text: str) -> None:
    """Tell the person something that is not part of the answer."""
    _tell("note", text)


def warning(text: str) -> None:
    """Tell the person of something that is allowed but probably not meant."""
    _tell("warning", text)


def _tell(kind: str, text: str) -> None:
    print(f"{kind}: {text}", file=sys.stderr)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`): no answer of ours, so no exit code either. What is left in
        # the buffer goes to nowhere, else Python would complain about it while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
