"""``levelwind stop``: end a run after the batch it is in."""

from __future__ import annotations

import time

from levelwind.cli.errors import DONE, NO
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer, note
from levelwind.cli.runs import RunArgument, Timeout, find_run, shown_path, wait_until


def stop(run_directory: RunArgument, timeout: Timeout = 60.0, format: FormatOption = None) -> int:
    """Stop a run after the batch it is in.

    Waits until it has stopped. A later run with the same checkpoint goes on from there. A run that is over
    already is left as it is. Ends with exit code 1 if the run has not stopped in time, or has failed.

    Example:
      levelwind stop runs/traffic-20260101T120000Z
    """
    found = find_run(run_directory)
    from levelwind.runtime.rundir import Command

    began = time.monotonic()
    if found.is_running():
        asked = found.ask(Command("stop"))
        if not wait_until(lambda: not found.is_running(), timeout):
            note("it still runs; it stops after the batch it is in")
        else:
            asked.unlink(missing_ok=True)
    else:
        note("it was not at work")
    state, seconds = found.status().get("state", "not started"), time.monotonic() - began
    answer(
        format,
        lambda: {"run": str(found.path.absolute()), "state": state, "seconds": seconds},
        lambda: f"{shown_path(found.path.absolute())}: {state}",
    )
    return DONE if state in ("stopped", "finished") else NO
