"""Spark sessions for runs: quiet, and with what the exchange needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# One task has one core: libraries that start threads would take others' cores, and their CPU time would
# not be seen by the clock of the thread that runs the operators.
ONE_THREAD = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
CONFIGURATION = {
    "spark.app.name": "levelwind",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Old progress reports are of no use to us, and hold memory.
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "levelwind.spark.daemon",
    # Blobs are few and in memory: compressing them costs more than it saves on one machine.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{LOG_SETTINGS}",
    **{f"spark.executorEnv.{name}": "1" for name in ONE_THREAD},
}


def start_session(
    master: str, settings: Mapping[str, str] | None = None, *, log: Path | None = None
) -> SparkSession:
    """A session on a master; what Spark and its workers print goes to a log file.

    A session that is already running in this process is not used: its settings are another's.
    """
    wanted = {**CONFIGURATION, **(settings or {})}
    # Workers on this machine must be this very Python, whatever else is first on the path. Spark heeds the
    # setting only where it starts the driver itself.
    python = wanted.get("spark.pyspark.python", sys.executable if master.startswith("local") else None)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    builder = SparkSession.builder.master(master)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with _stderr_to(log):
        session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Let processes that are started inside the block print their errors to a file."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
