"""The list of operators: each item's ``kind`` says which keys it knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from levelwind.errors import nearest
from levelwind.frontend.containers import Record
from levelwind.frontend.declared import JsonSchema
from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import BAD, Report


@dataclass(frozen=True, slots=True)
class Operators:
    """A list of records, one kind of record for each kind of operator."""

    kinds: Mapping[str, Record]

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """A tuple with the values of each operator, `BAD` for one of which nothing can be told."""
        if not isinstance(value, list):
            return report.refuse(path, "must be a list of operators", value, "start each with '- name: …'")
        kinds, items = self.kinds, []
        for index, item in enumerate(value):
            kind = item.get("kind") if isinstance(item, dict) else None
            record = kinds.get(kind) if isinstance(kind, str) else None
            where = (*path, index)
            if record is None:
                items.append(self._without_kind(item, where, report))
            else:
                items.append(record.read(item, where, report))
        return tuple(items)

    def _without_kind(self, item: Any, path: KeyPath, report: Report) -> Any:
        """Notes what is wrong with an operator whose kind is missing or not known.

        Its name is kept if it has one, so that what reads it does not look wrong as well.
        """
        if not isinstance(item, dict):
            return report.refuse(path, "an operator must be a mapping", item)
        if "kind" not in item:
            report.add(
                (*path, "kind"), "an operator must have 'kind'", hint=f"one of {', '.join(self.kinds)}"
            )
        else:
            kind = item["kind"]
            near = nearest(kind, self.kinds) if isinstance(kind, str) else None
            hint = f"did you mean {near!r}?" if near else None
            report.add((*path, "kind"), f"must be one of {', '.join(self.kinds)}", kind, hint)
        if "name" not in item:
            return report.refuse((*path, "name"), "an operator must have 'name'")
        record = next(iter(self.kinds.values()))
        name = record.keys["name"].kind.read(item["name"], (*path, "name"), report)
        return BAD if name is BAD else {"name": name}

    def schema(self) -> JsonSchema:
        """An array whose items are told apart by ``kind``."""
        return {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "kind"],
                "properties": {"kind": {"enum": list(self.kinds), "description": "what the operator does"}},
                "allOf": [
                    {
                        "if": {"properties": {"kind": {"const": kind}}},
                        "then": {"$ref": f"#/$defs/{kind}"},
                    }
                    for kind in self.kinds
                ],
            },
        }
