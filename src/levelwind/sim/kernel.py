"""The event kernel: one compiled loop over arrivals, completions, deliveries and ends of moves.

Nothing here allocates. Before an event is taken the loop makes sure that there is room for all it can cause;
if not, it returns and the caller doubles what was too small. So memory follows the longest queues, not time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from levelwind.sim.agenda import ARRIVE, DELIVER, FINISH, KINDS, LAND, pop, push
from levelwind.sim.compiling import compiled, inlined
from levelwind.sim.notes import ARRIVED, DELIVERED, FINISHED, RESUMED, note, note_result
from levelwind.sim.queues import any_waits, line_up, next_in_line, park, release, take
from levelwind.sim.tables import NOWHERE, Law, Tables

PARTS = "42d012963fe7"  # see `compiling`

DONE, GROW_TUPLES, GROW_EVENTS, GROW_WINDOWS, DRAIN_TRACE = 0, 1, 2, 3, 4
POISSON, GIVEN = int(Law.POISSON), int(Law.GIVEN)
# The sides of a join may be delayed that much more or less than each other before it misses pairs.
LINGER_S = 60.0


# ---- chance and shares -------------------------------------------------------------------------------------


@inlined
def _uniform(owner: Any) -> float:
    """The owner's next number in [0, 1): SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    z = np.uint64(owner.random) + np.uint64(0x9E3779B97F4A7C15)
    owner.random = np.int64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


@inlined
def _by_credit(flow: Any, pairs: float) -> Any:
    """Rows that come out of one row, or of so many pairs. Fractions add up until they make a row.

    After n rows in, n·ratio are out, give or take one: selectivity is the constant of the papers' load model.
    """
    credit = flow.credit + flow.ratio * pairs
    rows = np.int64(credit)
    flow.credit = credit - rows
    return rows


@inlined
def _by_chance(flow: Any, operator: Any, pairs: float) -> Any:
    wanted = flow.ratio * pairs
    rows = np.int64(wanted)
    return rows + (1 if _uniform(operator) < wanted - rows else 0)


# ---- nodes -------------------------------------------------------------------------------------------------


@inlined
def _meet(t: Tables, operator: Any, side: int, born_s: float) -> float:
    """Groups that a row of a join makes with rows still in the other sides' windows; it stays in its own.

    A window forgets from its old end only, so a row that comes out of order can meet a few too many or too
    few; the mean is that of the load model.
    """
    total = t.totals[0]
    pairs = operator.pair_weight
    room = t.side_times.shape[1]
    for other in range(operator.side_start, operator.side_end):
        window = t.sides[other]
        # Its own window is only kept from growing while nobody asks for it.
        oldest = born_s - window.window_s - (LINGER_S if other == side else 0.0)
        while window.count > 0 and t.side_times[other, window.head] < oldest:
            window.head = window.head + 1 if window.head + 1 < room else 0
            window.count -= 1
        if other != side:
            pairs *= window.count
    own = t.sides[side]
    place = own.head + own.count
    t.side_times[side, place if place < room else place - room] = born_s
    own.count += 1
    if own.count > total.window_fullest:
        total.window_fullest = own.count
    return pairs


@inlined
def _serve(t: Tables, number: int, now_s: float) -> None:
    """Begin with the first of a node's queue, or with what the rule in force chooses."""
    total = t.totals[0]
    node = t.nodes[number]
    item = next_in_line(t, number)
    inlet = t.inlets[t.tuples[item].inlet]
    operator = t.operators[inlet.operator]
    pairs = 1.0
    if inlet.side >= 0:
        pairs = _meet(t, operator, inlet.side, t.tuples[item].born_s)
    cost_s = inlet.cost_s * pairs
    if total.exponential_cost:
        cost_s *= -np.log1p(-_uniform(operator))
    time_s = (cost_s + node.debt_s) / node.cpu
    node.debt_s = 0.0
    node.serving, node.pairs, node.cost_s, node.time_s = item, pairs, cost_s, time_s
    push(t, now_s + time_s, FINISH + KINDS * number, node.era)


@inlined
def enqueue(t: Tables, item: int, now_s: float) -> None:
    """To the end of the queue of the node where the operator stands; to its own if it is on its way."""
    number = t.inlets[t.tuples[item].inlet].operator
    operator = t.operators[number]
    if operator.away:
        park(t, operator, item)
        return
    line_up(t, item, number, operator.node)
    if t.nodes[operator.node].serving < 0:
        _serve(t, operator.node, now_s)


# ---- rows on their way -------------------------------------------------------------------------------------


@inlined
def _through_link(node: Any, size: float, now_s: float) -> float:
    """When a row that comes to a node's link now has passed it. Both directions share the link."""
    if size <= 0.0 or node.bandwidth == np.inf:
        return now_s
    at_s = max(now_s, node.link_free_s) + size / node.bandwidth
    node.link_free_s = at_s
    return at_s


@inlined
def _over_network(t: Tables, flow: Any, sender: int, target: int, now_s: float) -> float:
    """When a row sent now is at the other node's door: through our link, the shared network, the distance."""
    total = t.totals[0]
    t.nodes[sender].debt_s += flow.transfer_s / 2
    at_s = _through_link(t.nodes[sender], flow.bytes, now_s)
    if flow.bytes > 0.0 and total.shared_bandwidth < np.inf:
        at_s = max(at_s, total.shared_free_s) + flow.bytes / total.shared_bandwidth
        total.shared_free_s = at_s
    if sender < len(t.latency) and target < len(t.latency):
        at_s += t.latency[sender, target]
    return at_s


@compiled
def _deliver(t: Tables, first: int, now_s: float) -> None:
    """A copy is there: to each operator that it is for, wherever that stands by now."""
    item = first
    while item >= 0:
        following = t.tuples[item].follower
        operator = t.inlets[t.tuples[item].inlet].operator
        note(t, now_s, DELIVERED, operator, t.operators[operator].node, 0.0)
        enqueue(t, item, now_s)
        item = following


@compiled
def _land(t: Tables, first: int, target: int, now_s: float) -> None:
    """A copy is at a node's door; it still has to come through the link."""
    flow = t.flows[t.inlets[t.tuples[first].inlet].flow]
    t.nodes[target].debt_s += flow.transfer_s / 2
    through_s = _through_link(t.nodes[target], flow.bytes, now_s)
    if through_s > now_s:
        push(t, through_s, DELIVER + KINDS * np.int64(first), 0)
    else:
        _deliver(t, first, now_s)


@compiled
def _send_all(t: Tables, number: int, sender: int, now_s: float) -> None:
    """Send what was gathered by node: one copy per node that reads it, whatever the number of readers."""
    flow = t.flows[number]
    for inlet in range(flow.inlet_start, flow.inlet_end):
        target = t.operators[t.inlets[inlet].operator].node
        if target >= 0 and t.nodes[target].batch_head >= 0:
            first = t.nodes[target].batch_head
            t.nodes[target].batch_head = NOWHERE
            at_s = _over_network(t, flow, sender, target, now_s)
            if at_s > now_s:
                push(t, at_s, LAND + KINDS * np.int64(first), target)
            else:
                _land(t, first, target, now_s)


@inlined
def _emit(t: Tables, number: int, rows: int, born_s: float, work_s: float, sender: int, now_s: float) -> None:
    """Put rows out on a flow: to every operator that reads it, and to every output."""
    flow = t.flows[number]
    flow.rows += rows
    for _ in range(rows):
        travels = False
        for inlet in range(flow.inlet_start, flow.inlet_end):
            item = take(t, born_s, work_s, inlet)
            target = t.operators[t.inlets[inlet].operator].node
            if sender < 0 or target < 0 or target == sender:
                enqueue(t, item, now_s)
            else:
                travels = True
                home = t.nodes[target]
                if home.batch_head < 0:
                    home.batch_head = item
                else:
                    t.tuples[home.batch_tail].follower = item
                home.batch_tail = item
        if travels:
            _send_all(t, number, sender, now_s)
        for leaving in range(flow.exit_start, flow.exit_end):
            at_s, target = now_s, t.exits[leaving]
            if target >= 0 and sender >= 0 and target != sender:
                at_s = _over_network(t, flow, sender, target, now_s)
            note_result(t, number, sender, born_s, work_s, at_s)


# ---- what happens ------------------------------------------------------------------------------------------


@compiled
def schedule_arrival(t: Tables, number: int, now_s: float) -> None:
    """Work out when a source's next row comes, and schedule it; nothing if none comes any more.

    A time below 0 means that it is the first.
    """
    source, at_s = t.sources[number], np.inf
    if source.law == GIVEN:
        if source.given_end > source.given_start:
            at_s = source.cycle * source.cycle_s + t.given[source.given_start + source.cursor]
            source.cursor += 1
            if source.given_start + source.cursor == source.given_end:
                source.cursor = 0
                source.cycle += 1
    else:
        # Rows are due as the integral of the rate grows: by one, or by an exponential amount. That is exact
        # where the rate jumps, which drawing a gap at the rate of its beginning is not.
        due = 1.0
        if source.law == POISSON:
            due = -np.log1p(-_uniform(source))
        elif now_s < 0.0:
            due = 1.0 - _uniform(source)
        time_s = max(now_s, 0.0)
        while source.cursor < source.segment_end:
            segment = t.segments[source.cursor]
            if segment.rate > 0.0:
                if due <= (segment.until_s - time_s) * segment.rate:
                    at_s = time_s + due / segment.rate
                    break
                due -= (segment.until_s - time_s) * segment.rate
            time_s = segment.until_s
            source.cursor += 1
    if at_s < np.inf:
        push(t, at_s, ARRIVE + KINDS * np.int64(number), 0)


@inlined
def _arrive(t: Tables, number: int, now_s: float) -> None:
    source = t.sources[number]
    source.arrived += 1
    note(t, now_s, ARRIVED, number, source.node, 0.0)
    for flow in range(source.flow_start, source.flow_end):
        _emit(t, flow, _by_credit(t.flows[flow], 1.0), now_s, 0.0, source.node, now_s)
    schedule_arrival(t, number, now_s)


@inlined
def _finish(t: Tables, number: int, now_s: float) -> None:
    node = t.nodes[number]
    done = t.tuples[node.serving]
    inlet = t.inlets[done.inlet]
    operator = t.operators[inlet.operator]
    born_s, work_s = done.born_s, done.work_s + node.cost_s
    node.busy_s += node.time_s
    operator.taken += 1
    release(t, node.serving)
    note(t, now_s, FINISHED, inlet.operator, number, 0.0)
    # The node still counts as busy: what it puts out for itself goes to the end of its queue.
    if inlet.emits:
        for flow in range(operator.flow_start, operator.flow_end):
            if t.totals[0].random_yield:
                rows = _by_chance(t.flows[flow], operator, node.pairs)
            else:
                rows = _by_credit(t.flows[flow], node.pairs)
            _emit(t, flow, rows, born_s, work_s, number, now_s)
    node.serving = NOWHERE
    if any_waits(t, number):
        _serve(t, number, now_s)


@compiled
def resume(t: Tables, number: int, now_s: float) -> None:
    """An operator works again; what was parked with it waits at its node."""
    operator = t.operators[number]
    operator.away = 0
    note(t, now_s, RESUMED, number, operator.node, 0.0)
    item = operator.parked_head
    operator.parked_head = operator.parked_tail = NOWHERE
    while item >= 0:
        following = t.tuples[item].follower
        enqueue(t, item, now_s)
        item = following


@inlined
def _need(t: Tables, kind: int, index: int) -> int:
    """Most tuples that an event can bring into being."""
    total = t.totals[0]
    if kind == ARRIVE:
        return t.sources[index].fan
    if kind != FINISH or t.nodes[index].serving < 0:
        return total.widest  # readers of one row, each perhaps on a node that now begins to work
    inlet = t.inlets[t.tuples[t.nodes[index].serving].inlet]
    operator = t.operators[inlet.operator]
    if inlet.side < 0:
        return operator.fan
    need = 1
    for number in range(operator.flow_start, operator.flow_end):
        flow = t.flows[number]
        readers = flow.inlet_end - flow.inlet_start + flow.exit_end - flow.exit_start
        need += (np.int64(flow.ratio * t.nodes[index].pairs) + 2) * readers
    return need


@compiled
def advance(t: Tables, until_s: float) -> int:
    """Take all events before ``until_s``; the answer says why the loop ended. O(log events) each."""
    total = t.totals[0]
    while total.heap > 0 and t.events[0].at_s < until_s:
        now_s, extra = t.events[0].at_s, t.events[0].extra
        kind, index = t.events[0].what & (KINDS - 1), t.events[0].what // KINDS
        need = _need(t, kind, index)
        if total.free_count < need:
            return GROW_TUPLES
        if total.heap + need + 4 > len(t.events):
            return GROW_EVENTS
        if len(t.sides) > 0 and total.window_fullest + need + 4 > t.side_times.shape[1]:
            return GROW_WINDOWS
        if len(t.trace) > 0 and total.traced + 2 * need + 4 > len(t.trace):
            return DRAIN_TRACE
        total.now_s = now_s
        pop(t)
        happened = True
        if kind == FINISH:
            happened = t.nodes[index].era == extra
            if happened:
                _finish(t, index, now_s)
        elif kind == ARRIVE:
            _arrive(t, index, now_s)
        elif kind == LAND:
            _land(t, index, extra, now_s)
        elif kind == DELIVER:
            _deliver(t, index, now_s)
        else:
            happened = t.operators[index].era == extra
            if happened:
                resume(t, index, now_s)
        total.events += happened
    total.now_s = until_s
    return DONE
