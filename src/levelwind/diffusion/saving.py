"""A router as bytes, and back: what a checkpoint holds of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from levelwind.diffusion.aligned import Reign
from levelwind.diffusion.coordinated import CoordinatedEra
from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import Array, JoinShape, Measured
from levelwind.diffusion.profiling import Profile
from levelwind.diffusion.router import Router
from levelwind.diffusion.tuning import SegmentTuner

_REIGN, _ERA = "reign", "era"
_REIGN_ARRAYS = ("floors", "edges", "hosts")
_ERA_ARRAYS = ("floors", "ceilings", "edges", "stored", "probed")
_HOST_ARRAYS = ("speed", "weights", "usage", "planned_s", "kept", "active")
_PLAIN = (
    "method",
    "master",
    "segment_us",
    "slot_us",
    "next_number",
    "floors",
    "latest_us",
    "counted",
    "counted_s",
    "counted_batches",
    "thought_us",
    "advised",
    "reasons",
    "decisions",
)


def save(router: Router) -> bytes:
    """All that a router remembers. O(what is laid and not settled)."""
    hosts = router.hosts
    content = {
        **{name: getattr(router, name) for name in _PLAIN},
        "measured": [router.measured.rates, router.measured.selectivity],
        "profile": asdict(router.profile),
        "hosts": {
            **_arrays(hosts, _HOST_ARRAYS),
            "memory_s": hosts.memory_s,
            "faded_at_us": hosts.faded_at_us,
        },
        "eras": [_era(era) for era in router.eras],
    }
    return msgspec.msgpack.encode(content)


def restore(shape: JoinShape, saved: bytes) -> Router:
    """The router that was saved; ``shape`` is that of the join, which is not part of it."""
    content: dict[str, Any] = msgspec.msgpack.decode(saved)
    hosts = content["hosts"]
    rates, selectivity = content["measured"]
    arrays = {name: _array(hosts[name]) for name in _HOST_ARRAYS if name in hosts}
    # A checkpoint may be older than the count of kept rows.
    arrays.setdefault("kept", np.zeros_like(arrays["planned_s"]))
    return Router(
        shape=shape,
        hosts=Hosts(
            **arrays,
            memory_s=hosts["memory_s"],
            faded_at_us=hosts["faded_at_us"],
        ),
        measured=Measured.of(rates, selectivity),
        profile=_profile(content.get("profile")),
        **{name: content[name] for name in _PLAIN if name in content},
        eras=[_restored_era(each) for each in content["eras"]],
    )


def _profile(saved: dict[str, Any] | None) -> Profile:
    """A checkpoint may be older than the search for segment lengths."""
    if saved is None:
        return Profile()
    return Profile(**{**saved, "tuner": SegmentTuner(**saved["tuner"])})


def _era(era: Reign | CoordinatedEra) -> dict[str, Any]:
    if isinstance(era, Reign):
        plain = {"kind": _REIGN, "number": era.number, "master": era.master}
        return {**plain, **_arrays(era, _REIGN_ARRAYS)}
    plain = {"kind": _ERA, "number": era.number, "begin_us": era.begin_us, "first": era.first}
    return {**plain, **_arrays(era, _ERA_ARRAYS)}


def _restored_era(saved: dict[str, Any]) -> Reign | CoordinatedEra:
    number = saved["number"]
    if saved["kind"] == _REIGN:
        arrays = {name: _array(saved[name]) for name in _REIGN_ARRAYS}
        return Reign(number=number, master=saved["master"], **arrays)
    arrays = {name: _array(saved[name]) for name in _ERA_ARRAYS}
    return CoordinatedEra(number=number, begin_us=saved["begin_us"], first=saved["first"], **arrays)


def _arrays(owner: object, names: tuple[str, ...]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    found = {name: np.ascontiguousarray(getattr(owner, name)) for name in names}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in found.items()}


def _array(saved: Any) -> Array:
    dtype, shape, content = saved
    return np.frombuffer(content, dtype=np.dtype(dtype)).reshape(shape).copy()
