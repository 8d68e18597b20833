"""What is asked for between two steps of the kernel: moves, lost nodes, drops, counts, a clean start."""

from __future__ import annotations

import numpy as np

from levelwind.sim.agenda import ARRIVE, KINDS, RESUME, copy_event, push, sift_down
from levelwind.sim.compiling import compiled
from levelwind.sim.kernel import enqueue, resume
from levelwind.sim.notes import DROPPED, LOST, SUSPENDED, note
from levelwind.sim.queues import count_chain, empty_all, park_all, put_back, release
from levelwind.sim.tables import NOWHERE, Floats, Tables

PARTS = "3877aa528446"  # see `compiling`


@compiled
def start_move(t: Tables, number: int, node: int, until_s: float) -> None:
    """Suspend an operator; its waiting tuples go with it. O(queue of its node)."""
    total, operator = t.totals[0], t.operators[number]
    note(t, total.now_s, SUSPENDED, number, operator.node, 0.0)
    if not operator.away:
        park_all(t, number)
    operator.away = 1
    operator.node = node
    operator.era += 1
    push(t, until_s, RESUME + KINDS * np.int64(number), operator.era)


@compiled
def lose_node(t: Tables, number: int) -> None:
    """Take a node away. What waited there waits with its operator; what was in service is done again."""
    total, node = t.totals[0], t.nodes[number]
    note(t, total.now_s, LOST, number, number, 0.0)
    item = node.serving
    left = np.int64(NOWHERE)
    if item >= 0:
        node.serving = NOWHERE
        left = put_back(t, item, number)
    node.era += 1
    for one in range(len(t.operators)):
        operator = t.operators[one]
        if operator.node == number:
            if not operator.away:
                park_all(t, one)
            operator.away = 1
            operator.node = NOWHERE
            operator.era += 1
    # What is left was in service for an operator that has moved away meanwhile: it follows.
    item = node.head
    node.head = node.tail = NOWHERE
    node.queue_length = 0
    while item >= 0:
        following = t.tuples[item].follower
        enqueue(t, item, total.now_s)
        item = following
    if left >= 0:
        enqueue(t, left, total.now_s)


@compiled
def drop(t: Tables, number: int) -> None:
    """Take an operator away, with what waits for it and its windows. O(queue of its node).

    A row in service is worked off; rows on the network stay with it, and go when this is called again.
    """
    total, operator = t.totals[0], t.operators[number]
    if operator.node >= 0:
        note(t, total.now_s, DROPPED, number, operator.node, 0.0)
    if not operator.away:
        park_all(t, number)
    item = operator.parked_head
    operator.parked_head = operator.parked_tail = NOWHERE
    while item >= 0:
        following = t.tuples[item].follower
        release(t, item)
        total.dropped += 1
        item = following
    for side in range(operator.side_start, operator.side_end):
        t.sides[side].count = 0
    operator.away = 1
    operator.node = NOWHERE
    operator.era += 1


@compiled
def place(t: Tables, number: int, node: int) -> None:
    """Have an operator that stands nowhere begin on a node at once."""
    t.operators[number].node = node
    resume(t, number, t.totals[0].now_s)


@compiled
def count_held(t: Tables, held: Floats) -> None:
    """Add up what each operator keeps: rows that wait for it, on its way too, and rows in its windows.

    Rows count with their bytes, with 1 where nobody states any. O(rows that wait + windows).
    """
    for number in range(len(t.nodes)):
        count_chain(t, t.nodes[number].head, held)
        if t.nodes[number].serving >= 0:
            inlet = t.inlets[t.tuples[t.nodes[number].serving].inlet]
            size = t.flows[inlet.flow].bytes
            held[inlet.operator] += size if size > 0.0 else 1.0
    for number in range(len(t.operators)):
        operator = t.operators[number]
        count_chain(t, operator.parked_head, held)
        if len(t.waits) > 0:
            count_chain(t, t.waits[number].head, held)
        for side in range(operator.side_start, operator.side_end):
            held[number] += t.sides[side].count * t.sides[side].bytes


@compiled
def clear(t: Tables) -> None:
    """Empty all queues, links and windows, and forget all events but arrivals. O(tuples + events)."""
    total = t.totals[0]
    total.shared_free_s = 0.0
    empty_all(t)
    for number in range(len(t.nodes)):
        node = t.nodes[number]
        node.serving = NOWHERE
        node.debt_s = node.link_free_s = 0.0
        node.era += 1
    for number in range(len(t.operators)):
        t.operators[number].era += 1
    for side in range(len(t.sides)):
        t.sides[side].count = 0
    kept = 0
    for i in range(total.heap):
        if t.events[i].what & (KINDS - 1) == ARRIVE:
            copy_event(t.events[i], t.events[kept])
            kept += 1
    total.heap = kept
    for i in range(kept - 1, -1, -1):
        sift_down(t, i)
