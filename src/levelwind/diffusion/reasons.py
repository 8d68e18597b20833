"""Why a join is spread the way it is, as plain data and in a sentence: for statuses, logs and tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from levelwind.diffusion import laws
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured

if TYPE_CHECKING:
    from levelwind.diffusion.auto import Advice

WAYS = {"atr": "aligned routing", "ctr": "coordinated routing"}


def reasons_of(
    advice: Advice, shape: JoinShape, measured: Measured, names: Sequence[str], *, asked: str = "auto"
) -> dict[str, Any]:
    """What was chosen and all it was chosen by.

    Overheads are rows and partial groups sent per second beyond one copy of each row: by the laws that what
    is sent really follows, and by the paper's equations 2 and 4.

    Parameters
    ----------
    names
        Of the streams.
    asked
        The method that the file names.
    """
    aligned = {
        "copies": laws.aligned_extra(shape, measured, advice.master, advice.segment_s),
        "printed": laws.aligned_printed(shape, measured, advice.master, advice.segment_s),
    }
    overheads = {"atr": aligned if advice.aligned is not None else None, "ctr": None}
    traffic = advice.traffic
    if traffic is not None:
        overheads["ctr"] = {
            "copies": traffic.copies,
            "partial_groups": traffic.partial,
            "printed": traffic.printed,
        }
    found: dict[str, Any] = {
        "asked": asked,
        "method": advice.method,
        "master": names[advice.master] if advice.method == "atr" else None,
        "segment_s": advice.segment_s if advice.method == "atr" else None,
        "instances": shape.instances,
        "rates": dict(zip(names, measured.rates, strict=True)),
        "windows_s": {
            name: window / MICROSECONDS for name, window in zip(names, shape.windows_us, strict=True)
        },
        "selectivities": {
            f"{names[i]}, {names[k]}": measured.selectivity[i][k]
            for i, k in combinations(range(shape.streams), 2)
        },
        "partners": _partners(shape, measured),
        "busiest": {"atr": advice.aligned, "ctr": advice.coordinated},
        "overheads": {way: each for way, each in overheads.items() if each is not None},
    }
    return {**found, "reason": sentence(found)}


def tried(found: dict[str, Any], segment_us: int, *, settled: bool) -> dict[str, Any]:
    """The same with another segment length, which was not reckoned but tried."""
    how = "found by trying" if settled else "on trial"
    new = {**found, "segment_s": segment_us / MICROSECONDS, "tried": how}
    return {**new, "reason": sentence(new)}


def _partners(shape: JoinShape, measured: Measured) -> float:
    """X = σ · r · W, the mean over pairs of streams."""
    partners = measured.partners(shape.windows_us)
    return float(np.mean(partners[~np.eye(shape.streams, dtype=np.bool_)]))


def sentence(found: dict[str, Any]) -> str:
    """All of it in words."""
    method = found["method"]
    way = WAYS[method]
    if method == "atr":
        way += f", segments of {found['segment_s']:.3g} s of {found['master']}"
        way += f" ({found['tried']})" if "tried" in found else ""
    if found["asked"] != "auto":
        way += ", as asked for"
    busiest = {each: work for each, work in found["busiest"].items() if work is not None}
    work = f"the busiest of {found['instances']} hosts would work {busiest[method]:.3g}"
    other = next((each for each in busiest if each != method), None)
    if other is not None:
        work += f", by {WAYS[other]} {busiest[other]:.3g}"
    rates = ", ".join(f"{name} {rate:.3g}/s" for name, rate in found["rates"].items())
    windows = ", ".join(f"{name} {size:.3g} s" for name, size in found["windows_s"].items())
    chances = ", ".join(f"{pair} {chance:.3g}" for pair, chance in found["selectivities"].items())
    sent = ", ".join(
        f"{WAYS[each]} {own['copies'] + own.get('partial_groups', 0.0):.3g}/s (printed {own['printed']:.3g})"
        for each, own in found["overheads"].items()
    )
    return (
        f"{way}: {work}; rates {rates}; windows {windows}; selectivities {chances}, "
        f"so that a row has {found['partners']:.3g} partners in a window; overheads: {sent}"
    )
