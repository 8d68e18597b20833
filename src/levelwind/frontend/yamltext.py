"""YAML text to nodes that know their line, and nodes to plain values.

PyYAML's own constructor is not used: it follows YAML 1.1, where a stream called ``no`` or ``on`` becomes
a boolean and ``1e-6`` a string, and it drops a key that stands twice. Scalars are read by the core schema
of YAML 1.2. Composing is left to libyaml where PyYAML has it, which is some ten times as fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

PLAIN = "plain"
QUOTED = "quoted"
COLLECTION = "collection"
_YAML_TAG = "tag:yaml.org,2002:"
_MAX_DEPTH = 500

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
# A number starts with one of these; most scalars are names and are done after one look.
_NUMBER_STARTS = frozenset("+-.0123456789")


class TooDeepError(ValueError):
    """The text nests deeper than any file of ours does; libyaml would crash on such a text."""


class _NoResolver:
    """Keeps PyYAML from resolving tags: only how a scalar was written is noted."""

    def resolve(self, kind: type[Node], _value: str | None, implicit: Any) -> str:
        if kind is ScalarNode:
            return PLAIN if implicit[0] else QUOTED
        return COLLECTION

    def descend_resolver(self, *_: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def check_resolver_prefix(self, *_: object) -> bool:
        return False


def _loader() -> Callable[[str], Any]:
    """The loader class: libyaml's parser if PyYAML was built with it, else the one in Python."""
    try:
        from yaml._yaml import CParser
    except ImportError:
        return _PurePython

    class _LibYaml(_NoResolver, CParser):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)

    return _LibYaml


class _PurePython(_NoResolver, yaml.SafeLoader):
    """The slow way, the same answers."""


_LOADER = _loader()


def compose(text: str) -> Node | None:
    """The root node of the only document in the text; None if there is none.

    Raises
    ------
    yaml.YAMLError
        If the text is not YAML.
    TooDeepError
        If it nests deeper than 500 levels.
    """
    if _too_deep(text):
        raise TooDeepError
    loader = _LOADER(text)
    try:
        node: Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return node


def _too_deep(text: str) -> bool:
    """Whether brackets nest too deep, or a line starts with hundreds of indents and dashes."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        if depth > _MAX_DEPTH:
            return True
    return re.search(rf"^[ \-?:]{{{2 * _MAX_DEPTH}}}", text, re.MULTILINE) is not None


def scalar(text: str) -> Any:
    """The value of a plain scalar by YAML 1.2's core schema.

    Examples
    --------
    >>> scalar("1e-6"), scalar("no"), scalar("true"), scalar("010")
    (1e-06, 'no', True, 10)
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INT.fullmatch(text):
        try:
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        except ValueError:  # more digits than Python turns into an int
            return float(text)
    return float(text) if _FLOAT.fullmatch(text) else text


Complain = Callable[[Node, str, str | None], None]


class Constructor:
    """Builds plain dictionaries, lists and scalars from nodes.

    Every node is built once, so that a text whose aliases multiply (a billion laughs) stays small.
    Keys are always text: a stream may be called ``1``, ``null`` or ``true``.

    Parameters
    ----------
    complain
        Called with the node, the rule and the value for what YAML allows and we do not.
    """

    def __init__(self, complain: Complain) -> None:
        self._complain = complain
        self._built: dict[int, Any] = {}
        self._open: set[int] = set()

    def build(self, node: Node) -> Any:
        """The value of a node."""
        if type(node) is ScalarNode:
            tag = node.tag
            if tag == PLAIN:
                return scalar(node.value)
            return node.value if tag == QUOTED else self._tagged(node)
        key = id(node)
        if key in self._built:
            return self._built[key]
        if key in self._open:
            self._complain(node, "an alias must not contain itself", None)
            return None
        self._open.add(key)
        value = self._mapping(node) if isinstance(node, MappingNode) else self._sequence(node)
        self._open.discard(key)
        self._built[key] = value
        return value

    def _tagged(self, node: Node) -> Any:
        """A scalar with a tag of its own, such as ``!!str 12``."""
        kind = node.tag.removeprefix(_YAML_TAG)
        value = node.value if kind in ("str", "!") else scalar(node.value)
        expected = {"int": int, "float": int | float, "bool": bool, "null": type(None)}.get(kind)
        if kind in ("str", "!") or (expected is not None and isinstance(value, expected)):
            return float(value) if kind == "float" else value
        self._complain(node, "this YAML tag cannot be read", f"{node.tag} {node.value}")
        return None

    def _sequence(self, node: Node) -> list[Any]:
        if node.tag not in (COLLECTION, f"{_YAML_TAG}seq"):
            self._complain(node, "this YAML tag cannot be read", node.tag)
        return [self.build(item) for item in node.value]

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        if node.tag not in (COLLECTION, f"{_YAML_TAG}map"):
            self._complain(node, "this YAML tag cannot be read", node.tag)
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, item in node.value:
            if type(key) is not ScalarNode:
                self._complain(key, "a key must be text", None)
            elif key.value == "<<" and key.tag == PLAIN:
                merged = {**self._merge(item), **merged}
            elif key.value in values:
                self._complain(key, "a key must stand only once", key.value)
            else:
                values[key.value] = self.build(item)
        return {**merged, **values} if merged else values

    def _merge(self, node: Node) -> dict[str, Any]:
        """What ``<<: *base`` or ``<<: [*one, *two]`` brings in; the first named wins."""
        merged: dict[str, Any] = {}
        for source in node.value if isinstance(node, SequenceNode) else [node]:
            value = self.build(source)
            if isinstance(value, dict):
                merged = {**value, **merged}
            else:
                self._complain(source, "only a mapping can be merged with <<", None)
        return merged
