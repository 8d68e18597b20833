"""The event kernel: one compiled loop over arrivals, completions, deliveries and ends of moves.

Nothing here allocates. Before an event is taken the loop makes sure that there is room for all it can cause;
if not, it returns and the caller doubles what was too small. So memory follows the longest queues, not time.

No function here owns memory, so none counts references (``_nrt=False``): handing all tables from function to
function would otherwise cost fifty times as much as the simulation itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from levelwind.sim.tables import NOWHERE, Floats, Law, Rule, Tables, TraceKind

# The cache does not see changes in functions of other files: keep every compiled function in this one.
compiled = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(forceinline=True, nogil=True, error_model="numpy", _nrt=False)

DONE, GROW_TUPLES, GROW_EVENTS, GROW_WINDOWS, DRAIN_TRACE = 0, 1, 2, 3, 4
ARRIVE, FINISH, LAND, DELIVER, RESUME = 0, 1, 2, 3, 4
KINDS = 8
# A result's latency falls into one of 128 bins per doubling: a percentile is within 0.4% of the true one.
BINS_PER_OCTAVE, OCTAVES, LEAST_LATENCY_S = 128, 64, 1e-9
BINS = BINS_PER_OCTAVE * OCTAVES
# The sides of a join may be delayed that much more or less than each other before it misses pairs.
LINGER_S = 60.0

POISSON, GIVEN = int(Law.POISSON), int(Law.GIVEN)
TURN, RANK = int(Rule.TURN), int(Rule.RANK)
# Known when the kernel is compiled, so that first come, first served pays nothing for the other rules: there
# is a kernel for each number of dimensions of `Tables.queues`.
ONE_PER_NODE = 1
ARRIVED, FINISHED, RESULT = int(TraceKind.ARRIVED), int(TraceKind.FINISHED), int(TraceKind.RESULT)
DELIVERED, SUSPENDED = int(TraceKind.DELIVERED), int(TraceKind.SUSPENDED)
RESUMED, LOST = int(TraceKind.RESUMED), int(TraceKind.LOST)
DROPPED = int(TraceKind.DROPPED)


# ---- tuples, events, chance, trace -------------------------------------------------------------------------


@inlined
def _take(t: Tables, born_s: float, work_s: float, inlet: int) -> Any:
    """A tuple from the free list; the loop has made sure that there is one."""
    total = t.totals[0]
    item = total.free
    one = t.tuples[item]
    total.free = one.follower
    total.free_count -= 1
    one.born_s, one.work_s, one.inlet, one.follower = born_s, work_s, inlet, NOWHERE
    return item


@inlined
def _release(t: Tables, item: int) -> None:
    total = t.totals[0]
    t.tuples[item].follower = total.free
    total.free = item
    total.free_count += 1


@inlined
def _write(event: Any, at_s: float, number: int, what: int, extra: int) -> None:
    event.at_s, event.number, event.what, event.extra = at_s, number, what, extra


@inlined
def _copy(source: Any, target: Any) -> None:
    _write(target, source.at_s, source.number, source.what, source.extra)


@inlined
def _push(t: Tables, at_s: float, what: int, extra: int) -> None:
    total = t.totals[0]
    number = total.sequence
    total.sequence = number + 1
    place = total.heap
    total.heap = place + 1
    # The new event has the largest number so far: at equal times it stays behind.
    while place > 0:
        above = (place - 1) >> 1
        if t.events[above].at_s <= at_s:
            break
        _copy(t.events[above], t.events[place])
        place = above
    _write(t.events[place], at_s, number, what, extra)


@inlined
def _sift_down(t: Tables, place: int) -> None:
    total = t.totals[0]
    size = total.heap
    moved = t.events[place]
    at_s, number, what, extra = moved.at_s, moved.number, moved.what, moved.extra
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        one = t.events[below]
        if below + 1 < size:
            other = t.events[below + 1]
            if other.at_s < one.at_s or (other.at_s == one.at_s and other.number < one.number):
                below += 1
                one = other
        if one.at_s > at_s or (one.at_s == at_s and one.number > number):
            break
        _copy(one, t.events[place])
        place = below
    _write(t.events[place], at_s, number, what, extra)


@inlined
def _pop(t: Tables) -> None:
    total = t.totals[0]
    last = total.heap - 1
    total.heap = last
    if last > 0:
        _copy(t.events[last], t.events[0])
        _sift_down(t, 0)


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
def _note(t: Tables, at_s: float, kind: int, what: int, node: int, latency_s: float) -> None:
    """Add a record to the hash of the trace, and to the trace itself if it is kept."""
    total = t.totals[0]
    # FNV-1a by words of 64 bits: an order-sensitive fingerprint, not a defence against anybody.
    prime = np.uint64(0x100000001B3)
    word = np.uint64(total.hash)
    word = (word ^ np.uint64(np.float64(at_s).view(np.int64))) * prime
    word = (word ^ np.uint64(np.int64(kind) + 8 * (np.int64(node) + 1) + (np.int64(what) << 32))) * prime
    word = (word ^ np.uint64(np.float64(latency_s).view(np.int64))) * prime
    total.hash = np.int64(word ^ (word >> np.uint64(29)))
    if len(t.trace) > 0:
        row = t.trace[total.traced]
        row.at_s, row.latency_s, row.kind, row.what, row.node = at_s, latency_s, kind, what, node
        total.traced += 1


# ---- queues per operator -----------------------------------------------------------------------------------


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
    if t.queues.ndim == ONE_PER_NODE:
        item = node.head
        node.head = t.tuples[item].follower
    else:
        item = _next_waiting(t, number)
    node.queue_length -= 1
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
    _push(t, now_s + time_s, FINISH + KINDS * number, node.era)


@inlined
def _park(t: Tables, operator: Any, item: int) -> None:
    t.tuples[item].follower = NOWHERE
    if operator.parked_head < 0:
        operator.parked_head = item
    else:
        t.tuples[operator.parked_tail].follower = item
    operator.parked_tail = item


@inlined
def _enqueue(t: Tables, item: int, now_s: float) -> None:
    """To the end of the queue of the node where the operator stands; to its own if it is on its way."""
    operator = t.operators[t.inlets[t.tuples[item].inlet].operator]
    if operator.away:
        _park(t, operator, item)
        return
    node = t.nodes[operator.node]
    if t.queues.ndim == ONE_PER_NODE:
        t.tuples[item].follower = NOWHERE
        if node.head < 0:
            node.head = item
        else:
            t.tuples[node.tail].follower = item
        node.tail = item
    else:
        _wait(t, item, t.inlets[t.tuples[item].inlet].operator, operator.node, False)
    node.queue_length += 1
    if node.serving < 0:
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
        _note(t, now_s, DELIVERED, operator, t.operators[operator].node, 0.0)
        _enqueue(t, item, now_s)
        item = following


@compiled
def _land(t: Tables, first: int, target: int, now_s: float) -> None:
    """A copy is at a node's door; it still has to come through the link."""
    flow = t.flows[t.inlets[t.tuples[first].inlet].flow]
    t.nodes[target].debt_s += flow.transfer_s / 2
    through_s = _through_link(t.nodes[target], flow.bytes, now_s)
    if through_s > now_s:
        _push(t, through_s, DELIVER + KINDS * np.int64(first), 0)
    else:
        _deliver(t, first, now_s)


@inlined
def _result(t: Tables, flow: int, node: int, born_s: float, work_s: float, at_s: float) -> None:
    total = t.totals[0]
    latency_s = at_s - born_s
    _note(t, at_s, RESULT, flow, node, latency_s)
    if at_s < total.record_from_s:
        return
    total.results += 1
    total.latency_sum_s += latency_s
    total.work_sum_s += work_s
    octaves = np.log2(max(latency_s / LEAST_LATENCY_S, 1.0))
    t.histogram[min(BINS - 1, int(octaves * BINS_PER_OCTAVE))] += 1


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
                _push(t, at_s, LAND + KINDS * np.int64(first), target)
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
            item = _take(t, born_s, work_s, inlet)
            target = t.operators[t.inlets[inlet].operator].node
            if sender < 0 or target < 0 or target == sender:
                _enqueue(t, item, now_s)
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
            _result(t, number, sender, born_s, work_s, at_s)


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
        _push(t, at_s, ARRIVE + KINDS * np.int64(number), 0)


@inlined
def _arrive(t: Tables, number: int, now_s: float) -> None:
    source = t.sources[number]
    source.arrived += 1
    _note(t, now_s, ARRIVED, number, source.node, 0.0)
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
    _release(t, node.serving)
    _note(t, now_s, FINISHED, inlet.operator, number, 0.0)
    # The node still counts as busy: what it puts out for itself goes to the end of its queue.
    if inlet.emits:
        for flow in range(operator.flow_start, operator.flow_end):
            if t.totals[0].random_yield:
                rows = _by_chance(t.flows[flow], operator, node.pairs)
            else:
                rows = _by_credit(t.flows[flow], node.pairs)
            _emit(t, flow, rows, born_s, work_s, number, now_s)
    node.serving = NOWHERE
    if node.head >= 0 if t.queues.ndim == ONE_PER_NODE else node.queue_length > 0:
        _serve(t, number, now_s)


@compiled
def _resume(t: Tables, number: int, now_s: float) -> None:
    operator = t.operators[number]
    operator.away = 0
    _note(t, now_s, RESUMED, number, operator.node, 0.0)
    item = operator.parked_head
    operator.parked_head = operator.parked_tail = NOWHERE
    while item >= 0:
        following = t.tuples[item].follower
        _enqueue(t, item, now_s)
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
        _pop(t)
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
                _resume(t, index, now_s)
        total.events += happened
    total.now_s = until_s
    return DONE


# ---- what is asked for from outside ------------------------------------------------------------------------


@compiled
def _park_all(t: Tables, number: int) -> None:
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
                _park(t, operator, item)
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
            _park(t, operator, item)
        else:
            before = item
        item = following


@compiled
def start_move(t: Tables, number: int, node: int, until_s: float) -> None:
    """Suspend an operator; its waiting tuples go with it. O(queue of its node)."""
    total, operator = t.totals[0], t.operators[number]
    _note(t, total.now_s, SUSPENDED, number, operator.node, 0.0)
    if not operator.away:
        _park_all(t, number)
    operator.away = 1
    operator.node = node
    operator.era += 1
    _push(t, until_s, RESUME + KINDS * np.int64(number), operator.era)


@compiled
def lose_node(t: Tables, number: int) -> None:
    """Take a node away. What waited there waits with its operator; what was in service is done again."""
    total, node = t.totals[0], t.nodes[number]
    _note(t, total.now_s, LOST, number, number, 0.0)
    item = node.serving
    left = np.int32(NOWHERE)
    if item >= 0:
        node.serving = NOWHERE
        served = t.inlets[t.tuples[item].inlet].operator
        if t.queues.ndim == ONE_PER_NODE:
            t.tuples[item].follower = node.head
            if node.head < 0:
                node.tail = item
            node.head = item
            node.queue_length += 1
        elif t.operators[served].node == number and not t.operators[served].away:
            _wait(t, item, served, number, True)
            node.queue_length += 1
        else:
            left = item
    node.era += 1
    for one in range(len(t.operators)):
        operator = t.operators[one]
        if operator.node == number:
            if not operator.away:
                _park_all(t, one)
            operator.away = 1
            operator.node = NOWHERE
            operator.era += 1
    # What is left was in service for an operator that has moved away meanwhile: it follows.
    item = node.head
    node.head = node.tail = NOWHERE
    node.queue_length = 0
    while item >= 0:
        following = t.tuples[item].follower
        _enqueue(t, item, total.now_s)
        item = following
    if left >= 0:
        _enqueue(t, left, total.now_s)


@compiled
def drop(t: Tables, number: int) -> None:
    """Take an operator away, with what waits for it and its windows. O(queue of its node).

    A row in service is worked off; rows on the network stay with it, and go when this is called again.
    """
    total, operator = t.totals[0], t.operators[number]
    if operator.node >= 0:
        _note(t, total.now_s, DROPPED, number, operator.node, 0.0)
    if not operator.away:
        _park_all(t, number)
    item = operator.parked_head
    operator.parked_head = operator.parked_tail = NOWHERE
    while item >= 0:
        following = t.tuples[item].follower
        _release(t, item)
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
    _resume(t, number, t.totals[0].now_s)


@compiled
def count_held(t: Tables, held: Floats) -> None:
    """Add up what each operator keeps: rows that wait for it, on its way too, and rows in its windows.

    Rows count with their bytes, with 1 where nobody states any. O(rows that wait + windows).
    """
    for number in range(len(t.nodes)):
        _count_chain(t, t.nodes[number].head, held)
        if t.nodes[number].serving >= 0:
            inlet = t.inlets[t.tuples[t.nodes[number].serving].inlet]
            size = t.flows[inlet.flow].bytes
            held[inlet.operator] += size if size > 0.0 else 1.0
    for number in range(len(t.operators)):
        operator = t.operators[number]
        _count_chain(t, operator.parked_head, held)
        if len(t.waits) > 0:
            _count_chain(t, t.waits[number].head, held)
        for side in range(operator.side_start, operator.side_end):
            held[number] += t.sides[side].count


@compiled
def _count_chain(t: Tables, first: int, held: Floats) -> None:
    item = first
    while item >= 0:
        inlet = t.inlets[t.tuples[item].inlet]
        size = t.flows[inlet.flow].bytes
        held[inlet.operator] += size if size > 0.0 else 1.0
        item = t.tuples[item].follower


@compiled
def clear(t: Tables) -> None:
    """Empty all queues, links and windows, and forget all events but arrivals. O(tuples + events)."""
    total = t.totals[0]
    total.dropped += len(t.tuples) - total.free_count
    for item in range(len(t.tuples)):
        t.tuples[item].follower = item + 1
    t.tuples[len(t.tuples) - 1].follower = NOWHERE
    total.free, total.free_count, total.shared_free_s = 0, len(t.tuples), 0.0
    for number in range(len(t.nodes)):
        node = t.nodes[number]
        node.head = node.tail = node.serving = NOWHERE
        node.queue_length = 0
        node.debt_s = node.link_free_s = 0.0
        node.era += 1
    for number in range(len(t.operators)):
        operator = t.operators[number]
        operator.parked_head = operator.parked_tail = NOWHERE
        operator.era += 1
    for side in range(len(t.sides)):
        t.sides[side].count = 0
    for number in range(len(t.waits)):
        wait = t.waits[number]
        wait.head = wait.tail = wait.before = wait.after = NOWHERE
        wait.waiting = 0
    for number in range(len(t.ready)):
        t.ready[number].head = t.ready[number].tail = NOWHERE
    kept = 0
    for i in range(total.heap):
        if t.events[i].what & (KINDS - 1) == ARRIVE:
            _copy(t.events[i], t.events[kept])
            kept += 1
    total.heap = kept
    for i in range(kept - 1, -1, -1):
        _sift_down(t, i)
