"""How long the small commands take, against importing NumPy.

A command that answers at once gets used. Each is a process on the worked example of four operators; what
is measured is start-up. The baseline is a process that imports NumPy, which every command that plans must
do as well: the ratio of the slowest command is below 1, and says how much comes on top.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from levelwind.bench.files import write_worked
from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.timing import COMMAND, interleaved, process_seconds

NAME = "start"
LIMIT_S = 1.0
ROUNDS = 5
BASELINE = "import numpy"


def run(settings: Settings, *, only: tuple[str, ...] | None = None) -> Result:
    """Run every command, or ``only`` some of them, in turn with the baseline."""
    with TemporaryDirectory() as folder:
        network, placement = write_worked(Path(folder))
        commands = {
            name: (*COMMAND, *arguments)
            for name, arguments in _arguments(network, placement).items()
            if only is None or name in only
        }
        commands[BASELINE] = (sys.executable, "-c", BASELINE)

        def timed(name: str) -> float:
            settings.step(name)
            return process_seconds(commands[name])

        taken = interleaved(
            {name: lambda name=name: timed(name) for name in commands},  # type: ignore[misc]
            settings.rounds(ROUNDS),
        )
    base = taken[BASELINE]
    slowest = max((name for name in commands if name != BASELINE), key=lambda name: median(taken[name]))
    others = [name for name in commands if name not in (BASELINE, slowest)]
    best = ", ".join(f"{name} {min(seconds):.3f}" for name, seconds in taken.items())
    return compared(
        NAME,
        taken[slowest],
        base,
        labels=(f"levelwind {slowest} (the slowest)", f'python -c "{BASELINE}"'),
        limit=LIMIT_S,
        figures=[
            Figure(label=f"levelwind {name}", value=median(taken[name]), unit="s", limit=LIMIT_S)
            for name in others
        ],
        notes=(f"best of {len(base)}: {best} s",),
        details={"rounds_s": taken, "best_s": {name: min(seconds) for name, seconds in taken.items()}},
    )


def _arguments(network: Path, placement: Path) -> dict[str, tuple[str, ...]]:
    nodes = ("--nodes", "2")
    return {
        "--help": ("--help",),
        "plan": ("plan", str(network), *nodes),
        "check": ("check", str(network)),
        "measure": ("measure", str(network), *nodes, "--placement", str(placement)),
        "planners": ("planners",),
    }
