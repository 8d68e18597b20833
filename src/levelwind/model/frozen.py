"""A mapping that cannot be changed once made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class FrozenMapping(dict[str, Any]):
    """A read-only dictionary: as fast to read as any, and it can be sent to another process."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        message = "this mapping is read-only; make a changed copy with dict(mapping)"
        raise TypeError(message)

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        return FrozenMapping, (dict(self),)


def frozen_mapping(items: Mapping[str, Any] | None = None) -> FrozenMapping:
    """A read-only copy of a mapping, its order kept."""
    return items if isinstance(items, FrozenMapping) else FrozenMapping(items or {})
