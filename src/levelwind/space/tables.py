"""Text and tables of published networks: every way in which such a file can be wrong becomes a problem."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

import polars as pl

from levelwind.errors import InputError, Problem, did_you_mean

GZIP = b"\x1f\x8b"
# A file that is wrong from top to bottom is told by its first lines.
MOST_PROBLEMS = 20


def raw_bytes(path: Path) -> bytes:
    """What is in a file, gzip or plain.

    Raises
    ------
    InputError
        If it cannot be read or is a broken archive.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise _failure(path, "must exist") from None
    except OSError as error:
        raise _failure(path, "must be readable", error.strerror) from None
    if raw[:2] != GZIP:
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise _failure(path, "must be a whole gzip file", str(error)) from None


def raw_text(path: Path) -> str:
    """The text of a file, gzip or plain."""
    try:
        return raw_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _failure(path, "must be UTF-8 text") from None


def read_table(path: Path, *, texts: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
    """Columns of a CSV file with a header, gzip or plain; numbers must be finite and at least 0.

    Raises
    ------
    InputError
        With all columns that are missing, or the first cells that are wrong and their lines.
    """
    wanted = [*texts, *numbers]
    try:
        found = pl.read_csv(BytesIO(raw_bytes(path)), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise _failure(path, "must be CSV with a header", str(error).partition("\n")[0]) from None
    missing = [name for name in wanted if name not in found.columns]
    if missing:
        raise InputError(
            Problem(
                rule="must be a column of the table",
                key=name,
                file=str(path),
                line=1,
                hint=did_you_mean(name, found.columns),
            )
            for name in missing
        )
    cast = found.select(
        *texts, *(pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) for name in numbers)
    )
    problems = [
        Problem(
            rule="must be a number of at least 0",
            key=name,
            file=str(path),
            line=2 + row,
            value=str(found[name][row]),
        )
        for name in numbers
        for row in cast.select((~pl.col(name).is_between(0.0, 1e300)).fill_null(True).arg_true())
        .to_series()
        .head(MOST_PROBLEMS)
    ]
    problems += [
        Problem(rule="must not be empty", key=name, file=str(path), line=2 + row)
        for name in texts
        for row in cast.select(pl.col(name).is_null().arg_true()).to_series().head(MOST_PROBLEMS)
    ]
    refuse(problems)
    return cast


def part_of(table: pl.DataFrame, column: str, value: object, path: Path) -> pl.DataFrame:
    """The rows of one network out of a table of many; an unknown one is refused with the nearest."""
    found = table.filter(pl.col(column) == str(value))
    if not len(found):
        known = [str(each) for each in table[column].unique(maintain_order=True)]
        rule, hint = f"must be a {column} of the table", did_you_mean(str(value), known)
        problem = Problem(rule=rule, key=column, file=str(path), value=str(value), hint=hint)
        raise InputError([problem])
    return found


def refuse(problems: Iterable[Problem]) -> None:
    """Raise the first problems, in the order of their lines, if there are any."""
    found = sorted(problems, key=lambda problem: problem.line or 0)
    if found:
        raise InputError(found[:MOST_PROBLEMS])


def _failure(path: Path, rule: str, value: str | None = None) -> InputError:
    return InputError([Problem(rule=f"a published network {rule}", file=str(path), value=value)])
