"""Imports point down, Spark stays in its package, and ``__init__.py`` files hold no logic."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import levelwind

ROOT = Path(levelwind.__file__).parent
# DESIGN.md, "The shape": each imports only what stands before it.
ORDER = (
    "errors",
    "model",
    "frontend",
    "rewrite",
    "load",
    "space",
    "placement",
    "planning",
    "balance",
    "diffusion",
    "control",
    "sim",
    "operators",
    "runtime",
    "spark",
    "reproduce",
    "bench",
    "dashboard",
    "testing",
    "cli",
)
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def part_of(module: str) -> str | None:
    """The package (or top module) of ``levelwind`` that a dotted name belongs to; None if it is another's."""
    names = module.split(".")
    return names[1] if names[0] == "levelwind" and len(names) > 1 else None


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            if node.module == "levelwind":
                yield from ((node.lineno, f"levelwind.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def parsed(file: Path) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"), filename=str(file))


def test_every_file_has_a_place_in_the_order() -> None:
    parts = {file.parts[0].removesuffix(".py") for file in FILES} - {"__init__", "__main__"}
    assert parts <= set(ORDER)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_down(file: Path) -> None:
    own = file.parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return  # the front door may open onto everything
    wrong = [
        f"line {line}: {name}"
        for line, name in imported(parsed(file))
        if (part := part_of(name)) is not None
        and part != own
        and (part not in ORDER or ORDER.index(part) > ORDER.index(own))
    ]
    assert not wrong


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_bare_package_is_not_imported_from_inside(file: Path) -> None:
    # `import levelwind` inside the package would hide a direction from the test above.
    assert not [line for line, name in imported(parsed(file)) if name == "levelwind"]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_only_the_spark_package_imports_pyspark(file: Path) -> None:
    used = [line for line, name in imported(parsed(file)) if name.split(".")[0] == "pyspark"]
    assert not used or file.parts[0] == "spark"


def test_only_strategies_import_hypothesis() -> None:
    users = {
        str(file)
        for file in FILES
        for _, name in imported(parsed(file))
        if name.split(".")[0] in ("hypothesis", "pytest", "scipy")
    }
    assert users <= {"testing/strategies.py"}


@pytest.mark.parametrize("file", [file for file in FILES if file.name == "__init__.py"], ids=str)
def test_init_files_hold_no_logic(file: Path) -> None:
    top = file == Path("__init__.py")
    logic = [
        f"line {node.lineno}: {type(node).__name__}"
        for i, node in enumerate(parsed(file).body)
        if not _is_docstring(node, i)
        and not isinstance(node, ast.Import | ast.ImportFrom)
        and not _assigns(node, {"__all__", "__version__", "_LAZY"} if top else {"__all__"})
        and not (top and (_is_type_checking(node) or _is_lazy(node)))
    ]
    assert not logic


def _is_docstring(node: ast.stmt, position: int) -> bool:
    return position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _assigns(node: ast.stmt, names: set[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return all(isinstance(target, ast.Name) and target.id in names for target in targets)


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_lazy(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")


def test_the_order_is_that_of_the_checks() -> None:
    # The checks themselves: a wrong import is seen, in whatever form it is written.
    for text in ("import levelwind.cli", "from levelwind import cli", "from levelwind.cli.main import main"):
        assert [part_of(name) for _, name in imported(ast.parse(text))] == ["cli"]
    with pytest.raises(AssertionError):
        list(imported(ast.parse("from . import cli")))
