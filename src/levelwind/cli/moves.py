"""Moves files: operators that change their node at stated steps, checked whole before a run starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levelwind.errors import Problem

if TYPE_CHECKING:
    from levelwind.frontend.document import Document
    from levelwind.model import Cluster, Network
    from levelwind.spark.api import ScriptedMove

CAUSE = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A line of a moves file, its operators named as they are placed."""

    step: int
    operators: tuple[str, ...]
    target: str
    cause: str

    def scripted(self) -> ScriptedMove:
        """The move as a run takes it."""
        from levelwind.spark.api import ScriptedMove

        return ScriptedMove(step=self.step, operators=self.operators, target=self.target, cause=self.cause)


def read_moves(file: Path | None, network: Network, cluster: Cluster) -> tuple[PlannedMove, ...]:
    """The moves of a file, in the order of their steps; every problem of the file at once.

    The file is a list of ``{step: 3, operators: [a, b], to: n2, cause: text}``; ``operator: a`` stands for
    a list of one. The moves come before the step of that number (the first is 0).
    """
    if file is None:
        return ()
    from levelwind.frontend.document import read_document
    from levelwind.frontend.report import BAD, Report

    document = read_document(file, what="a moves file")
    report = Report(document)
    moves = []
    for number, value in enumerate(_values(report)):
        if value is BAD or BAD in value.values():
            continue
        names = value.get("operators") or (value.get("operator"),)
        if "step" not in value or "to" not in value or names == (None,):
            continue  # said already
        operators, problems = _checked(names, value["to"], network, cluster, document, number)
        report.add_all(problems)
        moves.append(
            PlannedMove(
                step=value["step"], operators=operators, target=value["to"], cause=value.get("cause", CAUSE)
            )
        )
    report.raise_problems()
    return tuple(sorted(moves, key=lambda move: move.step))


def _values(report: Any) -> Any:
    """The entries of the file, those that are refused `BAD`."""
    from levelwind.frontend.containers import Key, OneOrMore, Record
    from levelwind.frontend.declared import Integer, Text

    name = Text("the name of an operator")
    entry = Record(
        "a move",
        {
            "step": Key(Integer(least=0), "the step before which it happens; the first is 0", required=True),
            "operators": Key(OneOrMore(name), "the operators that move, all in one act"),
            "operator": Key(name, "the operator that moves"),
            "to": Key(Text("the name of a node"), "the node they go to", required=True),
            "cause": Key(Text("a few words"), "why; it is written down with the move"),
        },
        one_of=(("operators", "operator"),),
    )
    value = report.document.value
    if not isinstance(value, list):
        hint = "write - {step: 3, operators: [a, b], to: n2}"
        report.add((), "a moves file must be a list", value, hint)
        report.raise_problems()
    return [entry.read(item, (number,), report) for number, item in enumerate(value)]


def _checked(
    names: tuple[str, ...], target: str, network: Network, cluster: Cluster, document: Document, number: int
) -> tuple[tuple[str, ...], list[Problem]]:
    """The operators as they are placed, and what is wrong, with the place in the file."""
    from levelwind.frontend.document import key_text
    from levelwind.runtime.moves import check_move

    asked = check_move(network, names, target, cluster.names)
    problems = []
    for problem in asked.problems:
        written = document.value[number]
        key = problem.key if problem.key in written else "operator"
        path = (number, key)
        placed = replace(problem, file=document.file, line=document.line(path), key=key_text(path))
        problems.append(placed)
    return asked.operators, problems
