"""Watching a run from the terminal that started it, and what happens when it is interrupted."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from levelwind.cli.output import console
from levelwind.cli.runs import figure_lines, run_view

if TYPE_CHECKING:
    from rich.live import Live

    from levelwind.spark.api import Run

# A table that is drawn more often takes CPU from what it shows; a line more often fills a log.
DRAW_S = 0.25
LINE_S = 5.0


class Watcher:
    """Shows on stderr how a run fares: a table that is redrawn on a terminal, elsewhere now and then a line.

    Drawn only after a batch: a table that moves by itself would take time from what it shows.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._table = sys.stderr.isatty() and not plain
        self._run: Run | None = None
        self._live: Live | None = None
        self._shown_at = time.monotonic() - LINE_S
        self._changed = False

    def watch(self, run: Run) -> Watcher:
        """Say which run it is."""
        self._run = run
        return self

    def __enter__(self) -> Watcher:
        if self._table:
            from rich.live import Live

            screen = console(sys.stderr)
            self._live = Live(console=screen, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def on_step(self, _: Any) -> None:
        """A step was done. Called by the thread that runs batches."""
        self._changed = True
        if not self._table and self._run is not None:
            for decision in self._run.progress.decided:
                print(f"{decision['operator']}: {decision['reason']}", file=sys.stderr)
        self.tick()

    def tick(self) -> None:
        """Show what is new, unless something was shown just now."""
        now = time.monotonic()
        pause = DRAW_S if self._table else LINE_S
        if not self._changed or self._run is None or now - self._shown_at < pause:
            return
        self._changed, self._shown_at = False, now
        run = self._run
        status = run.status
        if self._live is not None:
            view = run_view(status, name=run.network.name, directory=run.directory.path)
            self._live.update(view, refresh=True)
        elif not self._table:
            print(f"batch {status.get('step', 0)}: {'; '.join(figure_lines(status))}", file=sys.stderr)


class Interrupts:
    """Turns the first Ctrl-C, or a polite request to end, into a wish; a second Ctrl-C into an interrupt.

    Handlers are put in place anew by `renew`: Spark sets one of its own when it starts, which would cancel
    the batch that runs.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.getsignal(number) for number in self.SIGNALS}
        self.renew()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def renew(self) -> None:
        """Put the handlers in place."""
        for number in self.SIGNALS:
            signal.signal(number, self._heed)

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = self.asked or number
