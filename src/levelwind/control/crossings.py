"""Operators between groups: on their way after their query, or left behind by a move that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from levelwind.control.instructions import Drop, Instruction, Move, Place
from levelwind.control.standing import UnderWay

# The try after which somebody is told, once.
TOLD = 2


class Crossings:
    """Moves between groups that were asked for and not reported yet, by operator.

    One whose move failed is behind: it counts as under way, so that nobody else moves it, until it is
    fetched or its query is gone.
    """

    def __init__(self) -> None:
        self.under_way: dict[str, UnderWay] = {}
        self._behind: set[str] = set()

    def begin(self, operator: str, source: str, target: str) -> None:
        """An operator sets out."""
        self.under_way[operator] = UnderWay(source=source, target=target)
        self._behind.discard(operator)

    def joined_up(
        self,
        dropped: Iterable[Instruction],
        placed: Iterable[Instruction],
        stood: Mapping[str, str],
        why: str,
    ) -> list[Instruction]:
        """What one manager dropped and another placed is a move, which begins; ``stood``: where from."""
        placed = list(placed)
        moved = {each.operator for each in placed if isinstance(each, Place) and each.operator in stood}
        found = [each for each in dropped if not (isinstance(each, Drop) and each.operator in moved)]
        for each in placed:
            if isinstance(each, Place) and each.operator in moved:
                source = stood[each.operator]
                self.begin(each.operator, source, each.node)
                each = Move(operator=each.operator, source=source, target=each.node, reason=why)
            found.append(each)
        return found

    def forget(self, operator: str) -> UnderWay | None:
        """An operator is not on its way any more; the move that it was on, if any."""
        self._behind.discard(operator)
        return self.under_way.pop(operator, None)

    def is_behind(self, operator: str) -> bool:
        """Whether an operator's move failed and it was not asked for again: no move of ours is being made."""
        return operator in self._behind

    def failed(self, operator: str) -> bool:
        """A move failed; whether it is time to tell somebody."""
        self._behind.add(operator)
        return self.under_way[operator].tries == TOLD

    def fetch(self, home: Callable[[str], str | None]) -> list[Move]:
        """Ask once more for those that are behind; ``home`` says where each is to stand, if anywhere."""
        found = []
        for operator in sorted(self._behind):
            target = home(operator)
            if target is not None:
                move = self.under_way[operator]
                again = UnderWay(source=move.source, target=target, tries=move.tries + 1)
                self.under_way[operator] = again
                self._behind.discard(operator)
                reason = "follows its query, after a move that failed"
                found.append(Move(operator=operator, source=again.source, target=target, reason=reason))
        return found

    def cut_off(self, lost: Set[str]) -> dict[str, str]:
        """Forget moves from or to lost nodes: operator, and a node that was lost."""
        ends = {operator: lost & {move.source, move.target} for operator, move in self.under_way.items()}
        found = {operator: min(gone) for operator, gone in ends.items() if gone}
        for operator in found:
            self.forget(operator)
        return found
