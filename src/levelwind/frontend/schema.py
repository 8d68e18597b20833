"""JSON Schema for editors, made from the declarations that the checker itself reads by."""

from __future__ import annotations

from typing import Any

from levelwind.frontend.cluster_keys import CLUSTER
from levelwind.frontend.network_keys import NETWORK, OPERATORS

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def network_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the network file.

    It holds what can be told from a value alone. What hangs together across the file (names that exist,
    columns, cycles) is for `load_network` to check.
    """
    kinds = {kind: record.schema() for kind, record in OPERATORS.kinds.items()}
    for kind, schema in kinds.items():
        schema["properties"]["kind"]["const"] = kind
    return {"$schema": _DRAFT, "title": "Levelwind network", **NETWORK.schema(), "$defs": kinds}


def cluster_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the cluster file."""
    return {"$schema": _DRAFT, "title": "Levelwind cluster", **CLUSTER.schema()}
