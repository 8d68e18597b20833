"""Warnings: what is allowed but probably not meant, a line for each sort."""

from __future__ import annotations

from levelwind.frontend.draft import Draft, Sketch
from levelwind.frontend.report import name_list

# One row out for each row in, by nature.
_ONE_TO_ONE = ("union", "map", "sql_write")


def warn(sketch: Sketch) -> None:
    """Adds the warnings of a network without problems."""
    operators = sketch.all_operators().values()
    _add(sketch, [d.name for d in operators if _lacks_cost(d)], "cost unstated for", "1 µs assumed")
    lacking = [d.name for d in operators if _lacks_selectivity(d) and d.name in sketch.read_operators]
    _add(sketch, lacking, "selectivity unstated for", "1 assumed")
    unread = [name for name in sketch.streams if name not in sketch.read_streams]
    if unread:
        sketch.report.warnings.append(
            f"nobody reads {name_list(unread, 'the streams ' if len(unread) > 1 else 'the stream ', '')}"
        )


def _add(sketch: Sketch, names: list[str], what: str, assumed: str) -> None:
    if names:
        noun = "operator" if len(names) == 1 else "operators"
        listed = name_list(names, "", "")
        sketch.report.warnings.append(f"{what} {len(names)} {noun} ({assumed}): {listed}")


def _states_load(draft: Draft) -> bool:
    return "load" in draft.values or "series" in draft.values


def _lacks_cost(draft: Draft) -> bool:
    return "cost" not in draft.values and not _states_load(draft)


def _lacks_selectivity(draft: Draft) -> bool:
    return "selectivity" not in draft.values and draft.kind not in _ONE_TO_ONE and not _states_load(draft)
