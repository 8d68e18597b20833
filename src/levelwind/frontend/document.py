"""A file (or text, or mapping) as plain values, with the line of every key at hand.

Lines are looked up only for what turns out to be wrong: the checks work on plain dictionaries and lists,
and a file without mistakes pays nothing for its line numbers.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

from levelwind.errors import InputError, Problem
from levelwind.frontend.yamltext import PLAIN, Constructor, TooDeepError, compose

KeyPath = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    """What was read: ``value`` in plain types, ``problems`` of the text itself, the place it came from.

    ``base`` is the directory that relative paths in the document start from; None leaves them alone.
    """

    value: Any
    file: str | None = None
    base: Path | None = None
    problems: list[Problem] = field(default_factory=list)
    root: Node | None = None
    _children: dict[int, dict[str, tuple[Node, Node]]] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of its nearest parent that is written down; None if there are no lines."""
        if self.root is None:
            return None
        node: Node = self.root
        line: int = node.start_mark.line
        for part in path:
            if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line
            elif isinstance(node, MappingNode) and part in (children := self._children_of(node)):
                key, node = children[str(part)]
                line = key.start_mark.line
            else:
                break
        return line + 1

    def _children_of(self, node: MappingNode) -> dict[str, tuple[Node, Node]]:
        """Key → (key node, value node), merged keys included."""
        found = self._children.get(id(node))
        if found is None:
            found = self._children[id(node)] = {}
            merged: list[MappingNode] = []
            for key, item in node.value:
                if key.value == "<<" and key.tag == PLAIN:
                    sources = item.value if isinstance(item, SequenceNode) else [item]
                    merged += [source for source in sources if isinstance(source, MappingNode)]
                elif isinstance(key.value, str):
                    found.setdefault(key.value, (key, item))
            for source in merged:  # a key of its own goes before a merged one
                for name, pair in self._children_of(source).items():
                    found.setdefault(name, pair)
        return found

    def at(self, path: KeyPath) -> Any:
        """The value as it stands in the document; the path must exist."""
        value = self.value
        for part in path:
            value = value[part]
        return value


def read_document(path: str | os.PathLike[str], *, what: str) -> Document:
    """The document in a file.

    Parameters
    ----------
    path
        The file; one that ends in ``.json`` is held to the rules of JSON.
    what
        Words for messages, such as ``a network file``.

    Raises
    ------
    InputError
        If the file cannot be read or is neither YAML nor JSON: one problem, since nothing else can be told.
    """
    file = os.fspath(path)
    text = read_text(file, what=what)
    document = parse_document(text, file=file, is_json=file.lower().endswith(".json"), what=what)
    document.base = Path(file).resolve().parent
    return document


def read_text(file: str, *, what: str) -> str:
    """The text of a file in UTF-8; every way to fail gives one problem."""
    try:
        raw = Path(file).read_bytes()
    except FileNotFoundError:
        raise _failure(
            file, f"{what} must exist", hint="check the path; one that a file names starts from that file"
        ) from None
    except IsADirectoryError:
        raise _failure(file, f"{what} must be a file, not a directory") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _failure(file, f"{what} must be readable", value=reason) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        hint = "save it again with the encoding UTF-8"
        raise _failure(file, f"{what} must be UTF-8 text", line=line, hint=hint) from None


def parse_document(text: str, *, file: str | None = None, is_json: bool = False, what: str) -> Document:
    """The document in a text of YAML, or of JSON, whose positions the YAML reader finds as well."""
    if "\0" in text:
        raise _failure(file, f"{what} must be text", value="a NUL character")
    fallback = _parse_json(text, file) if is_json else None
    with collector_paused():
        try:
            root = compose(text)
        except (yaml.YAMLError, UnicodeError) as error:
            if is_json:  # JSON that YAML cannot read: the values are right, their lines unknown
                return Document(value=fallback, file=file)
            raise _syntax_failure(error, text, file) from None
        except TooDeepError:
            raise _failure(file, f"{what} must not nest this deep") from None
        if root is None:
            raise _failure(file, f"{what} must not be empty", line=1 if file else None)
        document = Document(value=None, file=file, root=root)
        paths: dict[int, KeyPath] = {}

        def complain(node: Node, rule: str, value: str | None) -> None:
            if not paths:  # only now: a file without mistakes need not pay for it
                paths.update(_key_paths(root))
            line, key = node.start_mark.line + 1, key_text(paths.get(id(node), ()))
            document.problems.append(Problem(rule=rule, key=key, file=file, line=line, value=value))

        document.value = Constructor(complain).build(root)
    if document.value is None and not document.problems:
        raise _failure(file, f"{what} must not be empty", line=1 if file else None)
    return document


def mapping_document(mapping: Mapping[str, Any]) -> Document:
    """The document in a mapping built in Python: no file, no lines."""
    try:
        return Document(value=_plain(mapping))
    except RecursionError:
        raise _failure(None, "the mapping must not contain itself") from None


def _plain(value: Any) -> Any:
    """Dictionaries, lists and scalars in place of other mappings, tuples, arrays and paths."""
    if isinstance(value, Mapping):
        return {_key_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # NumPy's scalars and arrays; asked for by name, so that NumPy need not be imported
    return value.tolist() if hasattr(value, "tolist") else value


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return key
    raise _failure(None, "a key must be text", value=repr(key))


def _parse_json(text: str, file: str | None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise _failure(file, "the file must not be empty", line=1) from None
        rule = f"must be JSON: {error.msg[0].lower()}{error.msg[1:]}"
        raise _failure(file, rule, line=error.lineno, value=_excerpt(text, error.lineno)) from None
    except RecursionError:
        raise _failure(file, "the file must not nest this deep") from None
    except ValueError as error:  # an integer with thousands of digits
        raise _failure(file, f"must be JSON: {error}") from None


def _syntax_failure(error: Exception, text: str, file: str | None) -> InputError:
    """One problem from what the YAML reader said, with the line and the text on it."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else None
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    hint = None
    if mark is not None and "\t" in _line(text, mark.line + 1):
        hint = "indent with spaces, not tabs"
    elif "expected a single document" in str(error):
        said, hint = "a second document follows", "keep one document per file"
    shown = _excerpt(text, line) if line is not None else None
    return _failure(file, f"must be YAML: {said}", line=line, value=shown, hint=hint)


def _key_paths(root: Node) -> dict[int, KeyPath]:
    """The path of every node, by the node's identity; a node that aliases share has the path of one."""
    found: dict[int, KeyPath] = {}
    stack: list[tuple[Node, KeyPath]] = [(root, ())]
    while stack:
        node, path = stack.pop()
        if id(node) in found:
            continue
        found[id(node)] = path
        if isinstance(node, SequenceNode):
            stack += [(item, (*path, index)) for index, item in enumerate(node.value)]
        elif isinstance(node, MappingNode):
            for key, item in node.value:
                name = key.value if isinstance(key.value, str) else "?"
                stack += [(item, (*path, name)), (key, (*path, name))]
    return found


def key_text(path: KeyPath) -> str:
    """A path as people write it.

    Examples
    --------
    >>> key_text(("operators", 3, "window", "size"))
    'operators[3].window.size'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _excerpt(text: str, number: int) -> str | None:
    shown = _line(text, number).strip()
    return (shown if len(shown) <= 60 else f"{shown[:57]}…") or None


def _failure(
    file: str | None, rule: str, *, line: int | None = None, value: str | None = None, hint: str | None = None
) -> InputError:
    return InputError([Problem(rule=rule, file=file, line=line, value=value, hint=hint)])


@contextmanager
def collector_paused() -> Iterator[None]:
    """Holds back Python's cycle collector, which would walk the growing tree again and again.

    On a file of 10,000 operators this is four fifths of the time that composing takes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
