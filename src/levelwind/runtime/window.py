"""The last samples of what a run counted, and the loads that the offered rates ask for in each of them.

A sample ends with the first step that ends a period or more after the sample began. What a stream offered
in it is measured on the stream's own clock, as `measured` has it: event time over the speed of a replay, so
that a node that is behind shows its full overload. A stream that was silent has no clock of its own to go by
for that sample and the next: then the one that came furthest counts, and wall time if there is none.

Costs are CPU seconds per row as each operator reports them, over the whole window. Aggregates that stand
together and group the same rows alike share that work and report equal parts of it: apart they cost more
than these figures say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from levelwind.balance.costs.protocol import RECEIVING, ROWS_IN, ROWS_OUT, SENDING, SENT
from levelwind.loads.arrays import Floats, shared
from levelwind.loads.offered import Counted, offered_work
from levelwind.model import Network
from levelwind.operators.rows import BEGINNING, END
from levelwind.runtime.coordinator import Step
from levelwind.runtime.measured import WARM_UP_STEPS, speed_of
from levelwind.runtime.program import Layout
from levelwind.runtime.sent import SILENT, Received, Sent, send_byte_s

# Below this an operator's own CPU says nothing of how much more it is offered.
LEAST_SPENT_S = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was counted in one sample: rows of streams, their seconds, and the work of operators as placed.

    ``sent`` is what operators put out and sent, ``received`` what nodes received.
    """

    wall_s: float
    rows: Mapping[str, int]
    offered_s: Mapping[str, float]
    boxes: Mapping[str, Counted]
    sent: Mapping[str, Sent]
    received: Received


class LoadWindow:
    """Takes steps in, and keeps the last ``samples`` samples of at least ``period_s`` seconds."""

    def __init__(self, *, period_s: float, samples: int) -> None:
        self._period_s = period_s
        self._samples: deque[Sample] = deque(maxlen=samples)
        self._skipped = 0
        self._since = 0.0
        self._marks: Mapping[str, int] = {}
        # Streams that brought rows in the last sample: only of these is it known where they were at its end.
        self._flowed: frozenset[str] = frozenset()
        self._rows: dict[str, int] = {}
        self._boxes: dict[str, Counted] = {}
        self._sent: dict[str, Sent] = {}
        self._received = Received()

    @property
    def is_full(self) -> bool:
        """Whether there are as many samples as the window holds."""
        return len(self._samples) == self._samples.maxlen

    @property
    def seconds(self) -> float:
        """How long its samples took, all together."""
        return sum(sample.wall_s for sample in self._samples)

    def add(self, step: Step) -> bool:
        """Take a step in; whether a sample ended with it. The first steps pay for imports: left out."""
        ended = step.started + step.wall_s
        if step.commit.closed:
            return False
        if self._skipped < WARM_UP_STEPS:
            self._skipped += 1
            self._begin(ended, step, step.seen)
            return False
        for name, rows in step.seen.items():
            self._rows[name] = self._rows.get(name, 0) + rows
        boxes = step.program.layout.boxes
        for _, report in step.boxes:
            own = Counted(rows_in=report.rows_in, rows_out=report.rows_out, cpu_s=report.cpu_s)
            name = boxes[report.box].name
            self._boxes[name] = self._boxes[name] + own if name in self._boxes else own
            sent = Sent(report.out_bytes, report.away_bytes, report.away_s)
            self._sent[name] = self._sent[name] + sent if name in self._sent else sent
        for node in step.reports:
            self._received += Received(node.received_bytes, node.received_s)
        if ended - self._since < self._period_s:
            return False
        self._end_sample(ended, step)
        return True

    def _end_sample(self, ended: float, step: Step) -> None:
        wall = ended - self._since
        network, marks = step.program.layout.network, step.commit.streams
        came = {
            name: (marks[name] - self._marks[name]) / 1e6 / speed_of(stream)
            for name, stream in network.streams.items()
            if name in self._flowed
            and self._rows.get(name)
            and BEGINNING < self._marks.get(name, BEGINNING) < marks[name] < END
        }
        furthest = max(came.values(), default=wall)
        self._samples.append(
            Sample(
                wall_s=wall,
                rows=self._rows,
                offered_s={name: came.get(name, furthest) for name in network.streams},
                boxes=self._boxes,
                sent=self._sent,
                received=self._received,
            )
        )
        self._begin(ended, step, self._rows)

    def _begin(self, ended: float, step: Step, rows: Mapping[str, int]) -> None:
        """A new sample; ``rows`` came in the last one."""
        self._since, self._marks = ended, step.commit.streams
        self._flowed = frozenset(name for name, count in rows.items() if count)
        self._rows, self._boxes, self._sent, self._received = {}, {}, {}, Received()

    def loads(self, layout: Layout) -> Floats:
        """Load of every box in every sample (boxes × samples, oldest first). O(operators × samples).

        An operator that came lately counts as if it had been there all the time.
        """
        network, samples = layout.network, tuple(self._samples)
        rates, seconds = self._offered(network)
        boxes = {
            box.name: sum((sample.boxes.get(box.name, NOTHING) for sample in samples), NOTHING)
            for box in layout.boxes
        }
        counted = {
            name: sum((boxes[box.name] for box in instances), NOTHING)
            for name, instances in layout.boxes_of.items()
        }
        offered = offered_work(network, rates, seconds, counted)
        loads = np.zeros((len(layout.boxes), len(samples)))
        for box in layout.boxes:
            given = offered[box.operator.name]
            if given.work:
                loads[box.index] = boxes[box.name].cpu_s / given.work * given.work_per_s
            else:
                loads[box.index] = [s.boxes.get(box.name, NOTHING).cpu_s / s.wall_s for s in samples]
        return shared(loads)

    def sending(self, layout: Layout) -> dict[str, Floats]:
        """What every box sends, would send, and would make others receive, as loads like those of `loads`.

        O(operators × samples).
        """
        wall = max(self.seconds, 1e-9)
        load = self.loads(layout).mean(axis=1)
        names = [box.name for box in layout.boxes]
        spent = np.array([sum(s.boxes.get(n, NOTHING).cpu_s for s in self._samples) for n in names])
        sent = [sum((s.sent.get(n, SILENT) for s in self._samples), SILENT) for n in names]
        receive_s = sum((s.received for s in self._samples), Received()).byte_s
        # From what was spent in wall time to what the offered rates ask for, as `loads` has it.
        all_told = load.sum() / spent.sum() if spent.sum() > 0 else 1.0 / wall
        scale = np.divide(load, spent, out=np.full(len(names), all_told), where=spent > LEAST_SPENT_S)
        out = np.array([own.out_bytes for own in sent], dtype=np.float64)
        each = np.array(send_byte_s(sent))
        away = np.array([own.away_s for own in sent])
        found = {SENT: away * scale, SENDING: each * out * scale, RECEIVING: receive_s * out * scale}
        return {name: shared(values) for name, values in found.items()}

    def rows(self, layout: Layout) -> dict[str, Floats]:
        """Rows that every box took in and put out per second of wall time. O(operators × samples)."""
        counted = [
            sum((sample.boxes.get(box.name, NOTHING) for sample in self._samples), NOTHING)
            for box in layout.boxes
        ]
        found = {ROWS_IN: [own.rows_in for own in counted], ROWS_OUT: [own.rows_out for own in counted]}
        wall = max(self.seconds, 1e-9)
        return {name: shared(np.array(rows, dtype=np.float64) / wall) for name, rows in found.items()}

    def _offered(self, network: Network) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Rows per second that each stream offered in every sample, and how long the sample was to it."""
        rates, seconds = {}, {}
        for name in network.streams:
            lasted = np.array([s.offered_s.get(name, s.wall_s) for s in self._samples])
            seconds[name] = lasted
            rates[name] = np.array([s.rows.get(name, 0) for s in self._samples]) / lasted
        return rates, seconds


NOTHING = Counted()
