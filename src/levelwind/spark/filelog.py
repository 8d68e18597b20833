"""Spark's log of the files that it has seen, put right after a kill.

Before a batch Spark notes which files are new (``sources/0/5``), and then up to where the batch reads
(``offsets/5``). Killed in between, it would go on from the note and find the next files on top of it: all of
them in one batch. Whether a row is late depends on how batches are cut, so results would depend on the kill.
Files that no batch was planned with are therefore forgotten, and found anew. A batch that was planned is
run again with the very same files: that is Spark's own doing.
"""

from __future__ import annotations

import json
from pathlib import Path

COMPACT = ".compact"


def forget_unplanned(directory: Path) -> list[Path]:
    """Delete notes of files that no batch was planned with; returns them.

    Parameters
    ----------
    directory
        Spark's checkpoint. No query may be at work on it.
    """
    planned = _planned(directory)
    forgotten = [
        path
        for path in directory.glob("sources/*/*")
        if _number(path) > planned.get(path.parent.name, -1) and _names_files(path)
    ]
    for path in forgotten:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return forgotten


def _number(path: Path) -> int:
    number = path.name.removesuffix(COMPACT)
    return int(number) if number.isdigit() else -1


def _planned(directory: Path) -> dict[str, int]:
    """By the number of a source of files: up to which note the last planned batch reads."""
    batches = [path for path in directory.glob("offsets/*") if path.name.isdigit()]
    if not batches:
        return {}
    # The first lines are the log's version and settings of the batch; then comes a line for each source.
    lines = max(batches, key=_number).read_text().splitlines()[2:]
    offsets = {str(source): json.loads(line) for source, line in enumerate(lines) if line.startswith("{")}
    return {source: int(offset["logOffset"]) for source, offset in offsets.items() if "logOffset" in offset}


def _names_files(path: Path) -> bool:
    """Whether it is a note of files: other sources keep other things in the same place."""
    _, _, entries = path.read_text().partition("\n")
    try:
        entry = json.loads(entries.partition("\n")[0])
    except ValueError:
        return False
    return isinstance(entry, dict) and {"path", "batchId"} <= entry.keys()
