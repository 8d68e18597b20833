"""Latency matrices in CSV: one-way milliseconds, node names in the header."""

from __future__ import annotations

import csv
import math

from levelwind.errors import InputError, Problem, did_you_mean
from levelwind.frontend.document import KeyPath, read_text
from levelwind.frontend.report import Report, show

Matrix = tuple[tuple[float, ...], ...]
_MOST_CELLS = 20


def read_latency(file: str, nodes: list[str], path: KeyPath, report: Report) -> Matrix | None:
    """The matrix in the order of the nodes.

    Rows follow the header's order, or are labelled in a first column. Further nodes in the file are
    left out, so that one measured matrix can serve several clusters. Every cell that is used must be there,
    the diagonal included.
    """
    try:
        text = read_text(file, what="the latency file")
    except InputError as error:
        for problem in error.problems:
            report.add(path, problem.rule, file, problem.hint)
        return None
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        report.add_all([Problem(rule=f"must be CSV: {error}", file=file, line=reader.line_num)])
        return None
    if not lines:
        report.add(path, "the latency file must not be empty", file)
        return None
    table = _Table(file, lines, nodes)
    matrix = table.matrix(nodes)
    report.add_all(table.problems)
    return None if table.problems else matrix


class _Table:
    """The lines of the file, and what is wrong with them."""

    def __init__(self, file: str, lines: list[tuple[int, list[str]]], nodes: list[str]) -> None:
        self.file = file
        self.problems: list[Problem] = []
        (self.header_line, header), *self.body = lines
        # A first column of labels stands under an empty cell or a word such as "node".
        labels = all(cells[0] in header[1:] for _, cells in self.body)
        self.labelled = header[0] == "" or (header[0] not in nodes and labels)
        self.names = header[1:] if self.labelled else header

    def matrix(self, nodes: list[str]) -> Matrix:
        """One row per node; cells that are missing are NaN and noted."""
        self._check_names(nodes)
        rows = self._rows()
        column = {name: index for index, name in enumerate(self.names)}
        wanted = [name for name in nodes if name in column]
        found = []
        for name in wanted:
            if name not in rows:
                self._note("every node in the header must have its row", self.header_line, name)
                continue
            line, cells = rows[name]
            if (plain := _numbers(cells, [column[to] for to in wanted])) is not None:
                found.append(plain)
                continue
            found.append(tuple([self._cell(cells, column[to], line, name, to) for to in wanted]))
        return tuple(found)

    def _check_names(self, nodes: list[str]) -> None:
        for name in dict.fromkeys(name for name in self.names if self.names.count(name) > 1):
            self._note("a node must stand only once in the header", self.header_line, name)
        for name in nodes:
            if name and name not in self.names:
                hint = did_you_mean(name, self.names[:50])
                self._note("every node of the cluster must be in the header", self.header_line, name, hint)

    def _rows(self) -> dict[str, tuple[int, list[str]]]:
        """Line and cells by node."""
        if not self.labelled:
            for line, _ in self.body[len(self.names) :]:
                self._note("there must be as many rows as nodes in the header", line, "one more row")
            rows = dict(zip(self.names, self.body, strict=False))
        else:
            rows = {}
            for line, cells in self.body:
                if cells[0] in rows:
                    self._note("a node must have only one row", line, cells[0])
                rows[cells[0]] = (line, cells[1:])
        for line, cells in rows.values():
            if len(cells) > len(self.names):
                self._note("there must be as many cells as nodes in the header", line, f"{len(cells)} cells")
        return rows

    def _cell(self, cells: list[str], index: int, line: int, source: str, to: str) -> float:
        text = cells[index] if index < len(cells) else ""
        if text == "":
            self._note("no latency must be missing", line, f"nothing from {source} to {to}")
            return math.nan
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            self._note("a latency must be a number of milliseconds of at least 0", line, show(text))
        return number

    def _note(self, rule: str, line: int, value: str, hint: str | None = None) -> None:
        if len(self.problems) < _MOST_CELLS:
            self.problems.append(
                Problem(rule=rule, key="latency", file=self.file, line=line, value=value, hint=hint)
            )


def _numbers(cells: list[str], places: list[int]) -> tuple[float, ...] | None:
    """The cells as latencies if nothing is wrong with any of them: a large matrix is read in no time."""
    try:
        values = tuple([float(cells[place]) for place in places])
    except (ValueError, IndexError):
        return None
    # A sum is finite only if all parts are.
    return values if min(values) >= 0 and math.isfinite(sum(values)) else None
