"""How long a person waits for the plan of a large file, against merely reading it with PyYAML.

``levelwind plan`` on 10,000 operators, from the start of the process to the last byte of the plan: start-up,
reading, checking, planning, measuring, printing. The baseline is a Python process that reads the same file
with ``yaml.SafeLoader`` and does nothing else: what most programs would spend before they have begun.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from levelwind.bench.files import write_trees
from levelwind.bench.result import Result, Settings, compared
from levelwind.bench.timing import COMMAND, interleaved, process_seconds

NAME = "plan_file"
OPERATORS, STREAMS, NODES = 10_000, 20, 100
LIMIT_S = 5.0
ROUNDS = 5
READ = "import sys, yaml; yaml.load(open(sys.argv[1], encoding='utf-8').read(), Loader=yaml.SafeLoader)"


def run(settings: Settings, *, operators: int = OPERATORS, streams: int = STREAMS) -> Result:
    """Write the file, then plan and read it in turn."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "trees.yaml")
        write_trees(file, operators=operators, streams=streams, seed=settings.seed)
        size = file.stat().st_size
        plan = (*COMMAND, "plan", str(file), "--nodes", str(NODES), "--format", "json")
        read = (sys.executable, "-c", READ, str(file))

        def timed(what: str, command: tuple[str, ...]) -> float:
            settings.step(what)
            return process_seconds(command)

        taken = interleaved(
            {"plan": lambda: timed("plan", plan), "read": lambda: timed("read", read)},
            settings.rounds(ROUNDS),
        )
    return compared(
        NAME,
        taken["plan"],
        taken["read"],
        labels=(f"levelwind plan, {operators:,} operators on {NODES} nodes", "yaml.SafeLoader alone"),
        limit=LIMIT_S,
        notes=(f"file of {size / 1e6:.2f} MB",),
        details={"rounds_s": taken},
    )
