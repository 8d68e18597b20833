"""Rows that wait, and which of them is next.

A node has one queue, first come, first served; or each of its operators has one, and a rule says whose turn
it is. Which of the two is known when the kernel is compiled, so that the first pays nothing for the second:
there is a kernel for each number of dimensions of `Tables.queues`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from levelwind.sim.compiling import compiled, inlined
from levelwind.sim.tables import NOWHERE, Floats, Rule, Tables

ONE_PER_NODE = 1
TURN, RANK = int(Rule.TURN), int(Rule.RANK)


# ---- the free list -----------------------------------------------------------------------------------------


@inlined
def take(t: Tables, born_s: float, work_s: float, inlet: int) -> Any:
    """A tuple from the free list; the loop has made sure that there is one."""
    total = t.totals[0]
    item = total.free
    one = t.tuples[item]
    total.free = one.follower
    total.free_count -= 1
    one.born_s, one.work_s, one.inlet, one.follower = born_s, work_s, inlet, NOWHERE
    return item


@inlined
def release(t: Tables, item: int) -> None:
    """A tuple is worked off: back to the free list."""
    total = t.totals[0]
    t.tuples[item].follower = total.free
    total.free = item
    total.free_count += 1


# ---- a queue for every operator ----------------------------------------------------------------------------


@compiled
def _make_ready(t: Tables, number: int, node: int) -> None:
    """To the end of its node's list of operators that have something to do."""
    wait, ready = t.waits[number], t.ready[node]
    wait.before, wait.after = ready.tail, NOWHERE
    if ready.tail < 0:
        ready.head = number
    else:
        t.waits[ready.tail].after = number
    ready.tail = number


@compiled
def _make_unready(t: Tables, number: int, node: int) -> None:
    wait, ready = t.waits[number], t.ready[node]
    if wait.before < 0:
        ready.head = wait.after
    else:
        t.waits[wait.before].after = wait.after
    if wait.after < 0:
        ready.tail = wait.before
    else:
        t.waits[wait.after].before = wait.before
    wait.before = wait.after = NOWHERE


@compiled
def _wait(t: Tables, item: int, number: int, node: int, first: bool) -> None:
    """To the end of its operator's queue, or to its beginning if it was there before."""
    total, wait = t.totals[0], t.waits[number]
    t.order[item] = total.queued
    total.queued += 1
    if wait.waiting == 0:
        wait.head = wait.tail = item
        t.tuples[item].follower = NOWHERE
        _make_ready(t, number, node)
    elif first:
        t.order[item] = t.order[wait.head]
        t.tuples[item].follower = wait.head
        wait.head = item
    else:
        t.tuples[item].follower = NOWHERE
        t.tuples[wait.tail].follower = item
        wait.tail = item
    wait.waiting += 1


@compiled
def _next_waiting(t: Tables, node: int) -> int:
    """Take the next row of a node by the rule in force. O(1) by turns, else O(operators with rows)."""
    rule, chosen = t.totals[0].rule, t.ready[node].head
    if rule != TURN:
        one = t.waits[chosen].after
        while one >= 0:
            other, best = t.waits[one], t.waits[chosen]
            older = t.order[other.head] < t.order[best.head]
            if rule == RANK:
                born_s, best_s = t.tuples[other.head].born_s, t.tuples[best.head].born_s
                older = born_s < best_s or (born_s == best_s and older)
                older = other.rank > best.rank or (other.rank == best.rank and older)
            if older:
                chosen = one
            one = other.after
    wait = t.waits[chosen]
    item = wait.head
    wait.head = t.tuples[item].follower
    wait.waiting -= 1
    if wait.waiting == 0:
        wait.tail = NOWHERE
        _make_unready(t, chosen, node)
    elif rule == TURN:
        _make_unready(t, chosen, node)
        _make_ready(t, chosen, node)
    return item


# ---- waiting at a node -------------------------------------------------------------------------------------


@inlined
def line_up(t: Tables, item: int, number: int, home: int) -> None:
    """To the end of a queue of the node where the tuple's operator stands."""
    node = t.nodes[home]
    if t.queues.ndim == ONE_PER_NODE:
        t.tuples[item].follower = NOWHERE
        if node.head < 0:
            node.head = item
        else:
            t.tuples[node.tail].follower = item
        node.tail = item
    else:
        _wait(t, item, number, home, False)
    node.queue_length += 1


@inlined
def any_waits(t: Tables, number: int) -> bool:
    """Whether a node has something to do next."""
    node = t.nodes[number]
    return node.head >= 0 if t.queues.ndim == ONE_PER_NODE else node.queue_length > 0


@inlined
def next_in_line(t: Tables, number: int) -> Any:
    """Take the first of a node's queue, or what the rule in force chooses; there is one."""
    node = t.nodes[number]
    if t.queues.ndim == ONE_PER_NODE:
        item = node.head
        node.head = t.tuples[item].follower
    else:
        item = _next_waiting(t, number)
    node.queue_length -= 1
    return item


@compiled
def put_back(t: Tables, item: int, number: int) -> Any:
    """Back to the beginning of its queue at a node; the tuple itself if its operator has left the node."""
    node, served = t.nodes[number], t.inlets[t.tuples[item].inlet].operator
    if t.queues.ndim == ONE_PER_NODE:
        t.tuples[item].follower = node.head
        if node.head < 0:
            node.tail = item
        node.head = item
    elif t.operators[served].node == number and not t.operators[served].away:
        _wait(t, item, served, number, True)
    else:
        return item
    node.queue_length += 1
    return NOWHERE


# ---- waiting with an operator that is on its way -----------------------------------------------------------


@inlined
def park(t: Tables, operator: Any, item: int) -> None:
    """To the end of what waits with the operator."""
    t.tuples[item].follower = NOWHERE
    if operator.parked_head < 0:
        operator.parked_head = item
    else:
        t.tuples[operator.parked_tail].follower = item
    operator.parked_tail = item


@compiled
def park_all(t: Tables, number: int) -> None:
    """Take an operator's tuples out of its node's queue, in their order."""
    operator = t.operators[number]
    node = t.nodes[operator.node]
    if t.queues.ndim != ONE_PER_NODE:
        wait = t.waits[number]
        if wait.waiting > 0:
            node.queue_length -= wait.waiting
            _make_unready(t, number, operator.node)
            item = wait.head
            wait.head = wait.tail = NOWHERE
            wait.waiting = 0
            while item >= 0:
                following = t.tuples[item].follower
                park(t, operator, item)
                item = following
        return
    item, before = node.head, np.int32(NOWHERE)
    while item >= 0:
        following = t.tuples[item].follower
        if t.inlets[t.tuples[item].inlet].operator == number:
            if before < 0:
                node.head = following
            else:
                t.tuples[before].follower = following
            if following < 0:
                node.tail = before
            node.queue_length -= 1
            park(t, operator, item)
        else:
            before = item
        item = following


# ---- all of them -------------------------------------------------------------------------------------------


@compiled
def count_chain(t: Tables, first: int, held: Floats) -> None:
    """Add the bytes of a chain's rows to what their operators hold; 1 a row where nobody states any."""
    item = first
    while item >= 0:
        inlet = t.inlets[t.tuples[item].inlet]
        size = t.flows[inlet.flow].bytes
        held[inlet.operator] += size if size > 0.0 else 1.0
        item = t.tuples[item].follower


@compiled
def empty_all(t: Tables) -> None:
    """Nothing waits any more, and every tuple is free. O(tuples + nodes + operators)."""
    total = t.totals[0]
    total.dropped += len(t.tuples) - total.free_count
    for item in range(len(t.tuples)):
        t.tuples[item].follower = item + 1
    t.tuples[len(t.tuples) - 1].follower = NOWHERE
    total.free, total.free_count = 0, len(t.tuples)
    for number in range(len(t.nodes)):
        node = t.nodes[number]
        node.head = node.tail = NOWHERE
        node.queue_length = 0
    for number in range(len(t.operators)):
        operator = t.operators[number]
        operator.parked_head = operator.parked_tail = NOWHERE
    for number in range(len(t.waits)):
        wait = t.waits[number]
        wait.head = wait.tail = wait.before = wait.after = NOWHERE
        wait.waiting = 0
    for number in range(len(t.ready)):
        t.ready[number].head = t.ready[number].tail = NOWHERE
