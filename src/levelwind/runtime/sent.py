"""What sending rows to other nodes costs, from what was measured: by the byte, at both ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# CPU seconds that a byte takes to be sent, or received, as long as nobody has sent any.
USUAL_S = 5e-10


@dataclass(frozen=True, slots=True)
class Sent:
    """What an operator put out in some time, and sent to other nodes, in bytes; CPU seconds of the latter."""

    out_bytes: int = 0
    away_bytes: int = 0
    away_s: float = 0.0

    def __add__(self, other: Sent) -> Sent:
        return Sent(
            self.out_bytes + other.out_bytes,
            self.away_bytes + other.away_bytes,
            self.away_s + other.away_s,
        )


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that nodes received in some time, and CPU seconds that it took."""

    bytes: int = 0
    cpu_s: float = 0.0

    def __add__(self, other: Received) -> Received:
        return Received(self.bytes + other.bytes, self.cpu_s + other.cpu_s)

    @property
    def byte_s(self) -> float:
        """CPU seconds per byte, the usual if there was none."""
        return self.cpu_s / self.bytes if self.bytes else USUAL_S


SILENT = Sent()


def send_byte_s(sent: Iterable[Sent]) -> list[float]:
    """CPU seconds per byte that each operator's rows take, or would, to be made ready for sending.

    As its own rows did, else as all that were sent, else as is usual. O(operators).

    Examples
    --------
    >>> send_byte_s([Sent(10, 10, 5.0), Sent(10, 5, 1.0), Sent(10)])
    [0.5, 0.2, 0.4]
    """
    known = list(sent)
    every = sum(known, SILENT)
    usual = every.away_s / every.away_bytes if every.away_bytes else USUAL_S
    return [own.away_s / own.away_bytes if own.away_bytes else usual for own in known]
