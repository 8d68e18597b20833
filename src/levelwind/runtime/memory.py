"""State that stays in a worker process from one batch to the next, so that it need not be read again."""

from __future__ import annotations

import time

from levelwind.errors import RunError
from levelwind.operators.state import EMPTY, State
from levelwind.runtime.batch import Batch
from levelwind.runtime.commits import read_commit, state_of

# (checkpoint, box) → (step, token of the attempt, state after it). A guess at best: what counts is in the
# checkpoint, and what is here is used only if the commit names this very attempt.
_KEPT: dict[tuple[str, str], tuple[int, str, State]] = {}

# Steps after which a state is given up that was not used.
LONG = 20


def recall(batch: Batch, name: str, token: str) -> tuple[State, int, float]:
    """An operator's state before a step; bytes and seconds it took to load, 0 if it was at hand."""
    if not token or batch.previous is None:
        return EMPTY, 0, 0.0
    under = batch.origins.get(name, name)
    kept = _KEPT.get((batch.directory, under))
    if kept is not None and kept[:2] == (batch.previous, token):
        return kept[2], 0, 0.0
    start = time.perf_counter()
    record = read_commit(batch.directory, batch.previous).boxes.get(under)
    if record is None or record.token != token:
        # To go on from nothing would lose what the state holds, and nobody would see it.
        message = f"the commit of step {batch.previous} does not have the state of operator {name} ({under})"
        raise RunError(message)
    state = state_of(record, batch.directory)
    loaded = 0
    for segment in state.segments():
        if not segment.at_hand:
            loaded += segment.bytes
            _ = segment.frame
    return state, loaded, time.perf_counter() - start


def remember(batch: Batch, name: str, token: str, state: State) -> None:
    """Keep an operator's state after a step."""
    _KEPT[batch.directory, name] = (batch.step, token, state)


def tidy(batch: Batch) -> None:
    """Give up the states of operators that have long been elsewhere; younger ones may help them come back."""
    for key in [
        key for key, (step, _, _) in _KEPT.items() if step < batch.step - LONG or key[0] != batch.directory
    ]:
        del _KEPT[key]


def forget(directory: str | None = None) -> None:
    """Give up what is kept, of one checkpoint or of all."""
    for key in [key for key in _KEPT if directory is None or key[0] == directory]:
        del _KEPT[key]
