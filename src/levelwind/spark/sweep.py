"""Independent pieces of work as one Spark job: a parameter sweep on any cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

from pyspark import SparkContext
from pyspark.sql import SparkSession

In = TypeVar("In")
Out = TypeVar("Out")
Tick = Callable[[int, int], None]
POLL_S = 0.2
CONFIGURATION = {
    "spark.app.name": "levelwind sweep",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A task has one core: a BLAS that starts threads would take others' cores.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.MKL_NUM_THREADS": "1",
}


def map_on_spark(
    function: Callable[[In], Out], items: Sequence[In], master: str, progress: Tick | None = None
) -> list[Out]:
    """Apply a function to every item as one Spark job; results in the order of the items.

    Parameters
    ----------
    function
        Importable where the executors run (or small enough to be pickled whole); items and results travel
        by pickle.
    progress
        Called as ``progress(done, total)`` while the job runs, and at its end.
    """
    with sweep(master) as mapped:
        return mapped(function, items, progress or _silent)


@contextmanager
def sweep(master: str) -> Iterator[Callable[..., list[Any]]]:
    """A function like `map_on_spark` that keeps one session for as long as the block lasts.

    A session that is already running in this process is used, and left running; else one is started on
    ``master`` and stopped.
    """
    running = SparkSession.getActiveSession()
    if running is None and master.startswith("local"):
        # Workers on this machine must be this very Python, whatever else is first on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = running or _start(master)
    try:

        def mapped(function: Callable[[In], Out], items: Sequence[In], progress: Tick) -> list[Out]:
            return _run(session.sparkContext, function, items, progress)

        yield mapped
    finally:
        if running is None:
            session.stop()


def _start(master: str) -> SparkSession:
    builder = SparkSession.builder.master(master)
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _run(
    context: SparkContext, function: Callable[[In], Out], items: Sequence[In], progress: Tick
) -> list[Out]:
    """Collect in a thread of its own, so that this one can follow the job's tasks."""
    if not items:
        return []
    group = f"sweep-{uuid4()}"

    def collect() -> list[Out]:
        context.setJobGroup(group, "levelwind sweep", interruptOnCancel=True)
        found: list[Out] = context.parallelize(list(items), len(items)).map(function).collect()
        return found

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(collect)
        try:
            while True:
                try:
                    results = future.result(timeout=POLL_S)
                    break
                except NotYet:
                    progress(_completed(context, group), len(items))
        except BaseException:
            # An interrupt here must not leave the job running until the last item.
            context.cancelJobGroup(group)
            raise
    progress(len(items), len(items))
    return results


def _completed(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            detail = tracker.getStageInfo(stage)
            done += detail.numCompletedTasks if detail else 0
    return done


def _silent(done: int, total: int) -> None:
    """Progress nobody asked for."""
