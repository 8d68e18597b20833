"""Whether a network may go on from a checkpoint that was made by another version of it.

Operators that did not change keep their state, new ones start empty, those that are gone lose theirs. What
cannot be right is refused: state that would be read as something it is not. Streams must stay as they are,
since Spark knows its sources by their number. But traces and generators are one source to Spark, which knows
them by name: these may come, to be read from their beginning, and go.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from levelwind.errors import InputError, Problem
from levelwind.model import Multijoin, Network, Stream
from levelwind.model.frozen import frozen_mapping
from levelwind.model.operator import Diffusion, JoinPart, Spec
from levelwind.operators.multijoin.holding import has_changed
from levelwind.operators.rows import RowType
from levelwind.operators.timespans import microseconds
from levelwind.rewrite.diffuse import spread_name
from levelwind.runtime.commits import Commit, refuse_newer
from levelwind.runtime.inheriting import gone_on_from, inherited_from, origins
from levelwind.runtime.program import Box, Layout
from levelwind.runtime.sources import is_own

STREAM_PREFIX = "stream "


def fingerprints(layout: Layout) -> dict[str, str]:
    """For every operator (as placed) and stream, a short text that changes when its meaning does."""
    found = _boxes(layout, _lasting)
    for name, stream in layout.network.streams.items():
        found[STREAM_PREFIX + name] = _stream(stream)
    return found


def _boxes(layout: Layout, lasting: Callable[[Spec], Spec]) -> dict[str, str]:
    return {
        box.name: _box(box, [layout.types[port] for port in box.operator.inputs], lasting)
        for box in layout.boxes
    }


def _box(box: Box, inputs: list[RowType], lasting: Callable[[Spec], Spec]) -> str:
    operator = box.operator
    told = [
        operator.kind,
        repr(lasting(operator.spec)),
        repr(operator.split),
        *(str(port) for port in operator.inputs),
    ]
    return _short([*told, *(repr((rows.schema, rows.time)) for rows in inputs)])


def _lasting(spec: Spec) -> Spec:
    """What must not change of an operator. A multijoin holds its rows whole: its windows may change."""
    if isinstance(spec, Diffusion | JoinPart):
        spec = replace(spec, join=replace(spec.join, windows_s=frozen_mapping()))
    return _lasting_once(spec)


def _lasting_once(spec: Spec) -> Spec:
    """What must not change if the checkpoint is from before the sender of a spread join kept rows."""
    if isinstance(spec, Multijoin):
        return replace(spec, windows_s=frozen_mapping(), shed_rows=None)
    if isinstance(spec, Diffusion):  # no part of what it remembers
        return replace(spec, selectivity=1.0, join=replace(spec.join, shed_rows=None))
    return spec


def _stream(stream: Stream) -> str:
    source = sorted((key, repr(value)) for key, value in (stream.source or {}).items() if key in _IDENTITY)
    return _short([repr(stream.schema), repr(stream.time), repr(source)])


# Of a source, what its offsets depend on; how fast it is read may change.
_IDENTITY = ("format", "path", "subscribe", "assign", "seed", "order")


def _short(parts: list[str]) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


def check_commit(
    commit: Commit, layout: Layout, nodes: tuple[str, ...], written: Layout | None = None
) -> list[str]:
    """Refuse what cannot be right; returns notes on what starts empty and what is given up.

    ``written`` is the network without sharing, if the layout has equal operators once: what an operator means
    does not depend on who computes it.
    """
    refuse_newer(commit.format)
    now = fingerprints(written or layout)
    as_once = _boxes(written or layout, _lasting_once)
    computed = origins(layout, commit.boxes, inherited_from(commit, layout))
    problems = [
        *_changed_streams(commit, now, layout.network),
        *_changed_boxes(gone_on_from(commit, computed), now, as_once),
    ]
    if commit.in_flight and set(layout.box_named) != set(commit.boxes):
        rule = "operators must stay as they are while rows are on their way between them"
        hint = "run the network as it was with --until-idle first"
        problems.append(Problem(rule=rule, key="checkpoint", hint=hint))
    if problems:
        raise InputError(problems)
    served = set() if written is None else {box.name for box in written.boxes} - set(layout.box_named)
    return [
        *_notes(commit, layout, computed, served),
        *_notes_on_streams(commit, now),
        *_changed_windows(commit, layout),
    ]


def _changed_streams(commit: Commit, now: dict[str, str], network: Network) -> list[Problem]:
    before = {name: mark for name, mark in commit.fingerprints.items() if name.startswith(STREAM_PREFIX)}
    if not before:
        return []
    problems = []
    free = {STREAM_PREFIX + name for name in _free(commit, before, network)}
    for name in sorted({*before, *(key for key in now if key.startswith(STREAM_PREFIX))}):
        if before.get(name) == now.get(name) or (name in free and (name not in before or name not in now)):
            continue
        what = (
            "is new"
            if name not in before
            else "is gone"
            if name not in now
            else "has another source or schema"
        )
        rule = "the streams of a checkpoint must stay as they are: it says how far each was read"
        hint = "take a new checkpoint, or leave the stream as it was"
        key = f"streams.{name.removeprefix(STREAM_PREFIX)}"
        problems.append(Problem(rule=rule, key=key, value=what, hint=hint))
    return problems


def _free(commit: Commit, before: Iterable[str], network: Network) -> set[str]:
    """The streams that may come and go: those of our own sources, if that is there before and after."""
    known = {name.removeprefix(STREAM_PREFIX) for name in before}
    # Ours is the last of Spark's sources, and its offset has a number for each stream.
    last = json.loads(commit.offsets[-1]) if commit.offsets and commit.offsets[-1].startswith("{") else {}
    ours_before = set(last) if set(last) <= known else set()
    ours_now = {name for name, stream in network.streams.items() if is_own(stream)}
    return ours_before | ours_now if ours_before and ours_now else set()


def _changed_boxes(commit: Commit, now: dict[str, str], as_once: dict[str, str]) -> list[Problem]:
    rule = "an operator with state must stay as it is under its name: its state would be read as another's"
    hint = "give the changed operator a new name: it then starts empty"
    return [
        Problem(rule=rule, key=name, value=f"{_rows(commit, name)} rows of state", hint=hint)
        for name, record in commit.boxes.items()
        if name in now
        and record.has_state
        and commit.fingerprints.get(name, now[name]) not in (now[name], as_once[name])
    ]


def _rows(commit: Commit, name: str) -> int:
    return sum(s.rows for table in commit.boxes[name].tables.values() for s in table.segments)


def _changed_windows(commit: Commit, layout: Layout) -> list[str]:
    notes = []
    for box in layout.boxes:
        spec, record = box.operator.spec, commit.boxes.get(box.name)
        join = spec.join if isinstance(spec, Diffusion) else spec
        if not isinstance(join, Multijoin) or record is None:
            continue
        changed = [
            alias
            for alias, window_s in join.windows_s.items()
            if has_changed(record.marks, alias, microseconds(window_s))
        ]
        if changed:
            notes.append(
                f"{spread_name(box.name)}: new windows for {', '.join(changed)}: groups whose last member "
                "comes from now on go by them; rows that the old windows gave up do not come back"
            )
    return notes


def _notes(commit: Commit, layout: Layout, computed: Mapping[str, str], served: set[str]) -> list[str]:
    new = [box.name for box in layout.boxes if box.name not in computed]
    kept = {*computed.values(), *served}
    gone = [name for name in commit.boxes if name not in kept]
    notes = []
    if new:
        notes.append(f"new, start empty: {', '.join(new)}")
    if gone:
        notes.append(f"gone, their state is given up: {', '.join(gone)}")
    return notes


def _notes_on_streams(commit: Commit, now: dict[str, str]) -> list[str]:
    notes = []
    was, is_now = (
        {name for name in names if name.startswith(STREAM_PREFIX)} for names in (commit.fingerprints, now)
    )
    if was and is_now - was:
        notes.append(f"read from their beginning: {', '.join(sorted(is_now - was))}")
    if was - is_now:
        notes.append(f"no longer read: {', '.join(sorted(was - is_now))}")
    return notes
