"""Starts Python workers that are ready to work.

Spark forks its Python workers from a daemon. This one imports everything a node needs before the first
fork, so that no worker does so again, and takes what it has imported out of garbage collection: a worker
collects after each task, and would look through all modules every time.
"""

from __future__ import annotations

import gc
import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a task has one core

from pyspark.daemon import manager

import levelwind.runtime.entry
import levelwind.runtime.node  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
