"""Where the work is done: here, in a pool of processes, or as Spark jobs. The results are the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol

from levelwind.reproduce.outcome import Item, Result

Measure = Callable[[Item], Result]
Tick = Callable[[int, int], None]
# As many workers as cores already: a BLAS that starts threads in each would only make them wait.
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


class Mapper(Protocol):
    """Applies a function to items somewhere and returns the results in the items' order."""

    def __call__(self, function: Measure, items: Sequence[Item], tick: Tick) -> list[Result]:
        """Call ``tick(done, total)`` as results come in."""
        ...


@contextmanager
def mapper(master: str | None = None, workers: int | None = None) -> Iterator[Mapper]:
    """A mapper for as long as the block lasts: one pool, or one Spark session, for all that is mapped.

    Parameters
    ----------
    master
        A Spark master such as ``local[4]`` or ``spark://host:7077``; None for processes here.
    workers
        Number of processes, all cores by default; 1 works in this process.
    """
    count = workers or os.cpu_count() or 1
    if master is not None:
        # Only here, so that nothing else of this package waits for Spark to be imported.
        from levelwind.spark.sweep import sweep

        with sweep(master) as spark_map:
            yield spark_map
    elif count == 1:
        yield _in_turn
    else:
        with _environment(ONE_THREAD), _pool(count) as pool:

            def in_pool(function: Measure, items: Sequence[Item], tick: Tick) -> list[Result]:
                return _submit_all(pool, function, items, tick)

            yield in_pool


def _in_turn(function: Measure, items: Sequence[Item], tick: Tick) -> list[Result]:
    results = []
    for item in items:
        results.append(function(item))
        tick(len(results), len(items))
    return results


def _submit_all(
    pool: ProcessPoolExecutor, function: Measure, items: Sequence[Item], tick: Tick
) -> list[Result]:
    futures = [pool.submit(function, item) for item in items]
    for done, future in enumerate(as_completed(futures), 1):
        future.result()  # a cell that fails fails the run at once
        tick(done, len(items))
    return [future.result() for future in futures]


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    # Fresh processes: a fork would copy the locks of threads that a caller (a progress bar, Spark) may hold.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set what child processes inherit, and put everything back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
