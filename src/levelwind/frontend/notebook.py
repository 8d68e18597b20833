"""Reading networks as a notebook wants it: a network comes back, the rest is Python warnings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from levelwind.frontend.network import Loaded, load_network, parse_network
from levelwind.model import Cluster, Network


class InputWarning(UserWarning):
    """Something in an input that is allowed but worth knowing, such as a cost that is assumed."""


def load(path: str | os.PathLike[str], *, cluster: Cluster | None = None) -> Network:
    """Read and check a network file; every problem of it is in the one `InputError`.

    With a ``cluster``, the nodes that the network names are checked too.
    """
    return _with_warnings(load_network(path, cluster=cluster))


def parse(source: str | Mapping[str, Any], *, cluster: Cluster | None = None) -> Network:
    """A network from YAML or JSON text, or from a plain mapping of the same shape."""
    return _with_warnings(parse_network(source, cluster=cluster))


def _with_warnings(loaded: Loaded) -> Network:
    for text in loaded.warnings:
        warnings.warn(text, InputWarning, stacklevel=3)
    return loaded.network
