"""The feasible set: how many of the rate points that an ideal plan could bear does this plan bear?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.directions import directions

EXACT_UP_TO = 3
SHIFTS = 16
# Two-sided 95% quantile of Student's t with SHIFTS − 1 degrees of freedom.
T_QUANTILE = 2.131
RELATIVE_ERROR = 0.004
CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A feasible set's size as a share of the ideal one's, and half the width of its 95% interval."""

    ratio: float
    error: float


def feasible_volume(
    weights: Floats,
    lower: Floats,
    *,
    constant: Floats | float = 0.0,
    seed: int = 0,
    relative_error: float = RELATIVE_ERROR,
) -> Volume:
    """Size of {x ≥ lower : weights·x + constant ≤ 1} as a share of the ideal set {x ≥ lower : Σx ≤ 1}.

    Exact for up to three variables. Above that the set is integrated along rays from the lower bound
    point: with directions u uniform on the simplex the ratio is the mean of (reach along u / ideal reach)^d,
    where every ray counts, not only those that hit. Lattices grow from 2^10 to 2^16 points (times 16 shifts)
    until the error is below ``relative_error``.

    Cost O(planes × variables) per ray; the exact ways are O(planes²) at worst.

    Examples
    --------
    A single node with everything on it bears the ideal set; half the capacity in one corner does not:

    >>> import numpy as np
    >>> feasible_volume(np.array([[1.0, 1.0]]), np.zeros(2)).ratio
    1.0
    >>> feasible_volume(np.array([[2.0, 0.0], [0.0, 2.0]]), np.zeros(2)).ratio
    0.5
    """
    d = weights.shape[1]
    slack, ideal = 1.0 - constant - weights @ lower, 1.0 - lower.sum()
    if d == 0:
        return Volume(ratio=float((slack >= 0).all()), error=0.0)
    if ideal <= 0 or (slack <= 0).any():
        return Volume(ratio=0.0, error=0.0)
    # Seen from the lower bound, in units of the ideal reach, plane i is (w_i·ideal / slack_i)·y = 1.
    seen = weights * (ideal / slack)[:, None]
    seen = seen[(seen > 0).any(axis=1)]
    if d <= EXACT_UP_TO:
        return Volume(ratio=min(1.0, _exact(seen)), error=0.0)
    for points in (1024, 4096, 16384, 65536):
        means = np.array([reach_power(seen, rays).mean() for rays in directions(d, points, SHIFTS, seed)])
        ratio = float(means.mean())
        error = float(means.std(ddof=1) / np.sqrt(SHIFTS)) * T_QUANTILE
        if error <= relative_error * ratio:
            break
    return Volume(ratio=min(1.0, ratio), error=error)


def reach_power(seen: Floats, rays: Floats) -> Floats:
    """(1 / largest plane value)^d for each ray, without holding planes × rays in memory at once."""
    step = max(1, CHUNK // max(1, len(seen)))
    parts = [(rays[i : i + step] @ seen.T).max(axis=1) for i in range(0, len(rays), step)]
    # No plan bears more than the ideal one: some plane is at least 1 along every ray, but for rounding.
    reach: Floats = np.maximum(np.concatenate(parts), 1.0) ** -float(rays.shape[1])
    return reach


def _exact(seen: Floats) -> float:
    d = seen.shape[1]
    if d == 1:
        return float(1.0 / seen.max())
    corners = np.eye(d)
    return sum(_cone(seen, i, corners) for i in range(len(seen)))


def _cone(seen: Floats, i: int, corners: Floats) -> float:
    """Share of the ideal set between the origin and plane i, where no other plane comes first.

    The directions that meet plane i first form a polygon on the simplex (a segment for two variables):
    start from all of it and cut, worst offender first, by every plane that is nearer at some corner.
    """
    own = seen[i]
    while len(corners) >= seen.shape[1]:
        values = seen @ corners.T
        excess = values - values[i]
        rounding = 1e-13 * values[i].max()
        worst = int(np.argmax(excess.max(axis=1)))
        if excess[worst].max() <= rounding:
            # Planes that are equal here but for rounding have one cone, and the first of them takes it.
            if (np.abs(excess[:i]) <= rounding).all(axis=1).any():
                return 0.0
            break
        corners = _cut(corners, -excess[worst])
    else:
        return 0.0
    points = corners / (corners @ own)[:, None]
    if seen.shape[1] == 2:
        return abs(float(points[0, 0] * points[1, 1] - points[0, 1] * points[1, 0]))
    a, b, c = points[0], points[1:-1], points[2:]
    # The simplex's volume is 1/d! and so is the factor of the determinant: they cancel.
    return float(np.abs(np.cross(b, c) @ a).sum())


def _cut(corners: Floats, inside: Floats) -> Floats:
    """The part of a convex polygon (or segment) where a linear function with these corner values is ≥ 0."""
    kept: list[Floats] = []
    count = len(corners)
    closing = count if count > 2 else 1
    for a in range(count):
        if inside[a] >= 0:
            kept.append(corners[a])
        if a < closing:
            b = (a + 1) % count
            if inside[a] * inside[b] < 0:
                share = inside[a] / (inside[a] - inside[b])
                kept.append(corners[a] + share * (corners[b] - corners[a]))
    return np.array(kept).reshape(-1, corners.shape[1])
