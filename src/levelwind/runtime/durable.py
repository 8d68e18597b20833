"""Files that are still there, and whole, if the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# One by one, every file would wait for a flush of the disk; flushes that are asked for together are made one.
TOGETHER = 16


def force(paths: Iterable[Path]) -> None:
    """See files, and then the directories that name them, on the disk."""
    files = list(paths)
    _force_each(files)
    force_directories(path.parent for path in files)


def force_directories(paths: Iterable[Path]) -> None:
    """See on the disk which files are in directories."""
    _force_each(list(dict.fromkeys(paths)))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    aside.write_bytes(data)
    _force(aside)
    os.replace(aside, path)
    _force(path.parent)


def _force_each(paths: list[Path]) -> None:
    if len(paths) < 2:
        for path in paths:
            _force(path)
        return
    with ThreadPoolExecutor(min(len(paths), TOGETHER)) as pool:
        list(pool.map(_force, paths))


def _force(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
