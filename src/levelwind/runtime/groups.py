"""Boxes that step together: those that can share their work, and each of the others for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from levelwind.model import Operator
from levelwind.operators.aggregate.kernels import TimeWindows, may_join, step_together
from levelwind.operators.protocol import Hearing, Kernel, Stepped
from levelwind.operators.registry import make_kernel
from levelwind.operators.rows import Arrived, RowType
from levelwind.operators.state import State
from levelwind.runtime.program import Box, Part, Program


@dataclass(frozen=True, slots=True)
class Group:
    """Boxes of one node and superstep that step together."""

    boxes: tuple[Box, ...]
    kernels: tuple[Kernel, ...]

    def step(
        self, states: Sequence[State], inputs: Sequence[Sequence[Arrived]], told: Any = None
    ) -> list[Stepped]:
        """One step of each box; ``told`` is for the first of them, if it listens."""
        first = self.kernels[0]
        if told is not None and isinstance(first, Hearing):
            first = first.hearing(told)
        if isinstance(first, TimeWindows):
            members = [kernel for kernel in self.kernels if isinstance(kernel, TimeWindows)]
            return step_together(members, states, inputs[0][0])
        return [first.step(states[0], inputs[0])]


_GROUPS: WeakKeyDictionary[Program, dict[tuple[int, int], tuple[Group, ...]]] = WeakKeyDictionary()


def groups_of(program: Program, node: int, level: int) -> tuple[Group, ...]:
    """The groups of one node and superstep, each after those that it reads. Made once for a program."""
    of_program = _GROUPS.setdefault(program, {})
    found = of_program.get((node, level))
    if found is None:
        found = of_program[node, level] = _make(program, program.boxes_at.get((node, level), ()))
    return found


def _make(program: Program, boxes: Sequence[Box]) -> tuple[Group, ...]:
    layout = program.layout
    groups: list[tuple[list[Box], list[Kernel]]] = []
    shared: dict[tuple[Part, tuple[str, ...]], list[int]] = {}
    for box in boxes:
        ports = box.operator.inputs
        kernel = _kernel(
            box.operator,
            tuple(layout.types[port] for port in ports),
            tuple(layout.leaves[port] for port in ports),
        )
        if isinstance(kernel, TimeWindows):
            # Readers of one part see the same rows and watermarks, and may stand as early as the first.
            candidates = shared.setdefault((layout.part_read(box, 0), kernel.by), [])
            for number in candidates:
                members = groups[number][1]
                if all(isinstance(each, TimeWindows) and may_join(each, kernel) for each in members):
                    groups[number][0].append(box)
                    members.append(kernel)
                    break
            else:
                candidates.append(len(groups))
                groups.append(([box], [kernel]))
            continue
        groups.append(([box], [kernel]))
    return tuple(Group(tuple(group), tuple(kernels)) for group, kernels in groups)


@lru_cache(maxsize=1 << 14)
def _kernel(operator: Operator, inputs: tuple[RowType, ...], leaves: tuple[int, ...]) -> Kernel:
    """An operator's kernel; instances share it, and so do programs that differ in the plan alone."""
    return make_kernel(operator, inputs, leaves=leaves)
