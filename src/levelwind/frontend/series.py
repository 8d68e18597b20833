"""Rates and load series: numbers, lists, or columns of CSV files; one sample a second."""

from __future__ import annotations

import csv
import math
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from levelwind.errors import InputError, Problem
from levelwind.frontend.document import KeyPath, read_text
from levelwind.frontend.report import BAD, Report, Said, show

Samples = tuple[float, ...]


def resolve_path(text: str, base: Path | None) -> str:
    """A path as the file that names it means it; addresses such as ``s3://…`` are left alone."""
    if base is None or "://" in text or os.path.isabs(text):
        return text
    return os.path.normpath(base / text)


def read_series(value: Any, path: KeyPath, report: Report) -> Samples | None:
    """The samples that a ``rate`` or ``series`` stands for; None if it is unstated or refused."""
    if value is None or value is BAD:
        return None
    if isinstance(value, float):
        return (value,)
    if isinstance(value, tuple):
        return value
    name = value if isinstance(value, str) else value.get("file", BAD)
    column = None if isinstance(value, str) else value.get("column")
    if name is BAD or column is BAD:
        return None
    file = resolve_path(name, report.document.base)
    try:
        header, table = _table(file, os.stat(file).st_mtime_ns if os.path.exists(file) else 0)
        return _column(file, header, table, column)
    except InputError as error:
        for problem in error.problems:
            if problem.line is None:  # the file as a whole: the mistake stands here
                report.add(path, problem.rule, problem.value or name, problem.hint)
            else:
                report.add_all([problem])
        return None


@lru_cache(maxsize=64)
def _table(file: str, _changed_ns: int) -> tuple[tuple[str, ...] | None, tuple[tuple[int, list[str]], ...]]:
    """Header (None if the first row is numbers) and rows with their lines; ten streams may share one file."""
    lines = csv.reader(read_text(file, what="the CSV file").splitlines())
    try:
        rows = [(lines.line_num, row) for row in lines]
    except csv.Error as error:
        raise InputError([Problem(rule=f"must be CSV: {error}", file=file, line=lines.line_num)]) from None
    # Blank lines may end a file; between samples one would shift every second after it.
    while rows and not any(cell.strip() for cell in rows[-1][1]):
        rows.pop()
    if rows and not all(_is_number(cell) for cell in rows[0][1] if cell.strip()):
        return tuple(cell.strip() for cell in rows[0][1]), tuple(rows[1:])
    return None, tuple(rows)


def _column(
    file: str, header: tuple[str, ...] | None, rows: tuple[tuple[int, list[str]], ...], column: str | None
) -> Samples:
    """One column of a table, the last if none is named."""
    index = -1
    if column is not None:
        if header is None or column not in header:
            hint = f"its columns: {', '.join(header)}" if header else "the file has no header"
            raise InputError([Problem(rule="the CSV file must have the column", value=column, hint=hint)])
        index = header.index(column)
    if not rows:
        raise InputError([Problem(rule="the CSV file must hold at least one sample", value=file)])
    samples, problems = [], []
    for line, row in rows:
        text = row[index].strip() if -len(row) <= index < len(row) else ""
        number = float(text) if _is_number(text) else math.nan
        if math.isfinite(number) and number >= 0:
            samples.append(number)
        else:
            rule = "a sample must be a number of at least 0"
            problems.append(Problem(rule=rule, key=column or "", file=file, line=line, value=show(text)))
    if problems:
        raise InputError(problems)
    return tuple(samples)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_lengths(lengths: dict[KeyPath, int], report: Report) -> None:
    """All series of more than one sample have one length: they are the same seconds."""
    several = {path: length for path, length in lengths.items() if length > 1}
    if len(set(several.values())) <= 1:
        return
    counts = list(several.values())
    usual = max(counts, key=counts.count) if len(counts) > 2 else counts[0]
    for path, length in several.items():
        if length != usual:
            rule = f"all series must have one length, here {usual} samples"
            report.add(path, rule, Said(f"{length} samples"))
