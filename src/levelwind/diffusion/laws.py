"""What spreading a join costs: the paper's equations, and the laws that what is sent really follows.

All figures are per second of a stationary stream. "Extra" means beyond one copy of each row.

References
----------
[1] Gu, Yu, Wang, ICDE 2007: equations 2 (aligned) and 4 (coordinated).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from levelwind.diffusion.coordinated import Path, new_era
from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import FIRST, MICROSECONDS, Floats, JoinShape, Measured


def aligned_printed(shape: JoinShape, measured: Measured, master: int, segment_s: float) -> float:
    """[1]'s equation 2: extra copies per second, Σ r_i · (W_i + W_M) / T. Right only below its cap."""
    return sum(rate * _overlap_s(shape, i, master) / segment_s for i, rate in _slaves(measured, master))


def aligned_extra(shape: JoinShape, measured: Measured, master: int, segment_s: float) -> float:
    """Extra copies per second: Σ r_i · min((W_i + W_M) / T, m − 1), for segments without gaps between them.

    A host gets one copy however many of its segments ask for a row, so no row has more than m copies.
    """
    copies = aligned_copies(shape, master, segment_s)
    return sum(rate * (copies[i] - 1) for i, rate in _slaves(measured, master))


def aligned_copies(shape: JoinShape, master: int, segment_s: float) -> tuple[float, ...]:
    """Copies of each row, by stream: one of the master's, 1 + min((W_i + W_M) / T, m − 1) of another's."""
    most = shape.instances - 1
    return tuple(
        1.0 if i == master else 1.0 + min(_overlap_s(shape, i, master) / segment_s, most)
        for i in range(shape.streams)
    )


def aligned_extra_with_gaps(shape: JoinShape, measured: Measured, master: int, segment_s: float) -> float:
    """The same for segments that begin with a row of the master, as in [1]: gaps of 1/r_M between them."""
    gap = 1 / measured.rates[master]
    most = shape.instances - 1
    return sum(
        rate * min((_overlap_s(shape, i, master) - gap) / (segment_s + gap), most)
        for i, rate in _slaves(measured, master)
    )


def _slaves(measured: Measured, master: int) -> list[tuple[int, float]]:
    return [(i, rate) for i, rate in enumerate(measured.rates) if i != master]


def _overlap_s(shape: JoinShape, i: int, master: int) -> float:
    return (shape.windows_us[i] + shape.windows_us[master]) / MICROSECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What coordinated routing sends beyond one copy of each row, per second.

    Parameters
    ----------
    copies
        Rows, to be kept or to begin their path.
    partial
        Partial groups, from one host to another.
    printed
        [1]'s equation 4 for copies that begin a path and partial groups, which counts hosts of a hop only if
        they were not hosts of the hop before.
    entering
        Per stream and hop: rows or partial groups per second that look for partners, summed over hosts.
    """

    copies: float
    partial: float
    printed: float
    entering: Floats


def coordinated_extra(measured: Measured, partners: Floats, paths: Sequence[Path], stored: Floats) -> Traffic:
    """Traffic by the paths that were laid, by equation 4 put right.

    What was made on host a goes to all hosts of the next hop but a: |V_k| − [a ∈ V_k], weighted with how many
    of the slots before were answered on a.

    Parameters
    ----------
    partners
        σ · r · W; see `Measured.met`.
    paths
        Of consecutive slots.
    stored
        For each stream, copies of each of its rows, whether kept or to begin a path.
    """
    n = len(measured.rates)
    of_stream: list[list[tuple[float, float, Floats]]] = [[] for _ in range(n)]
    for path in paths:
        of_stream[path.stream].append(_along(path, partners))
    partial = printed = 0.0
    entering = np.zeros((n, n - 1))
    for i, found in enumerate(of_stream):
        if found:
            partial += measured.rates[i] * float(np.mean([own for own, _, _ in found]))
            printed += measured.rates[i] * float(np.mean([theirs for _, theirs, _ in found]))
            entering[i] = measured.rates[i] * np.mean([enter for _, _, enter in found], axis=0)
    copies = float(np.dot(measured.rates, np.asarray(stored) - 1))
    return Traffic(copies=copies, partial=partial, printed=printed, entering=entering)


def _along(path: Path, partners: Floats) -> tuple[float, float, Floats]:
    """Partial groups sent for each row by the law and by equation 3, and lookups at each hop."""
    hops = len(path.order)
    hosts = [set(path.hosts(hop).tolist()) for hop in range(hops)]
    ours, printed, made, bound = 0.0, float(len(hosts[0]) - 1), 1.0, [path.stream]
    entering = np.zeros(hops)
    entering[0] = len(hosts[0])
    for hop in range(1, hops):
        k = int(path.order[hop - 1])
        made *= float(partners[bound, k].min())
        bound.append(k)
        answered = path.serve[hop - 1][path.serve[hop - 1] >= 0]
        stay = float(np.isin(answered, list(hosts[hop])).mean()) if len(answered) else 0.0
        ours += made * (len(hosts[hop]) - stay)
        printed += made * len(hosts[hop] - hosts[hop - 1])
        entering[hop] = made * len(hosts[hop])
    return ours, printed, entering


def rehearse(
    shape: JoinShape, measured: Measured, slot_us: int, *, slots: int = 120, hosts: Hosts | None = None
) -> tuple[list[Path], Floats, Hosts]:
    """Paths and copies per row of coordinated routing at stationary rates, without a single row.

    Its choices depend on loads alone, so that a rehearsal tells what it would send. Slots of the first
    longest window are left out.
    """
    hosts = hosts or Hosts.equal(shape.instances)
    era = new_era(0, shape, [FIRST] * shape.streams, 0, 0)
    warm = -(-shape.longest_us // slot_us) + 5
    paths = era.lay(shape, hosts, measured, slot_us, (warm + slots) * slot_us)
    stored = (era.stored | era.probed)[warm:].sum(axis=2).mean(axis=0)
    return [path for path in paths if path.slot >= warm], stored, hosts
