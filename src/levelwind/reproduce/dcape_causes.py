"""Where the time of a batch goes: why one setting of the query plans puts out less than another.

Nodes work side by side, each capped, and a batch lasts until the fullest is done. So a setting is slow where
all nodes together work more (sending is work), or where the work is uneven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Runs = Sequence[Mapping[str, Any]]


def batch_of(runs: Runs) -> dict[str, float]:
    """A batch in the median over all that count, in all rounds: seconds, CPU seconds, megabytes. O(batches).

    Examples
    --------
    >>> step = {"wall_s": 2.0, "fullest_s": 0.6, "cpu_s": 0.9, "sent": 3e6}
    >>> batch_of([{"steps": [step]}, {"steps": [step]}])
    {'wall_s': 2.0, 'fullest_cpu_s': 0.6, 'cpu_s': 0.9, 'sent_mb': 3.0}
    """
    steps = [step for run in runs for step in run["steps"]]

    def middle(what: str) -> float:
        return float(median(step[what] for step in steps))

    return {
        "wall_s": round(middle("wall_s"), 3),
        "fullest_cpu_s": round(middle("fullest_s"), 3),
        "cpu_s": round(middle("cpu_s"), 3),
        "sent_mb": round(middle("sent") / 1e6, 1),
    }


def why_slower(runs: Runs, rival: Runs) -> str:
    """What a setting's batches have more of than those of a faster one, in words."""
    mine, theirs = batch_of(runs), batch_of(rival)
    return (
        f"its fullest node works {mine['fullest_cpu_s']:.2f} CPU s a batch instead of "
        f"{theirs['fullest_cpu_s']:.2f}, of {mine['cpu_s']:.2f} instead of {theirs['cpu_s']:.2f} in all; "
        f"{mine['sent_mb']:.0f} MB are sent instead of {theirs['sent_mb']:.0f}"
    )
