"""Imports point down the list of packages in DESIGN.md, and `__init__` files hold no logic."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "levelwind"
# Each imports only what stands before it; `planning` is a module, the one door to all planners, `sharing` one
# that plans what equal operators save, `plugins` one that planners and policies share.
ORDER = [
    "errors", "plugins", "model", "frontend", "rewrite", "diffusion", "loads", "space", "placement",
    "planning", "sharing", "balance", "control", "sim", "operators", "runtime", "spark", "testing",
    "reproduce", "bench", "dashboard", "cli",
]  # fmt: skip
FILES = sorted(ROOT.rglob("*.py"))


def package_of(path):
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported(tree):
    """Every module that a file imports, inside functions too; (module, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            if node.module == "levelwind":
                yield from ((f"levelwind.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno


def label(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [p for p in FILES if package_of(p) != "__init__"], ids=label)
def test_imports_point_down(path):
    own = package_of(path)
    if own == "__main__":
        own = ORDER[-1]
    assert own in ORDER, f"{own} has no place in the order of DESIGN.md"
    wrong = []
    for module, line in imported(ast.parse(path.read_text())):
        parts = module.split(".")
        if parts[0] == "levelwind" and len(parts) > 1:
            other = parts[1]
            if other not in ORDER:
                continue  # a name of the top-level package: checked by its own file's imports
            if ORDER.index(other) > ORDER.index(own):
                wrong.append(f"line {line}: {own} imports {module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [p for p in FILES if package_of(p) != "spark"], ids=label)
def test_only_spark_imports_pyspark(path):
    modules = {module.split(".")[0] for module, _ in imported(ast.parse(path.read_text()))}
    assert not modules & {"pyspark", "py4j"}


def test_hypothesis_is_imported_by_the_strategies_alone():
    users = {
        label(path)
        for path in FILES
        if any(module.split(".")[0] == "hypothesis" for module, _ in imported(ast.parse(path.read_text())))
    }
    assert users <= {"testing/strategies.py"}


def is_plain(node, *, top):
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # the docstring
    names = {t.id for t in node.targets if isinstance(t, ast.Name)} if isinstance(node, ast.Assign) else set()
    if names and names <= ({"__all__", "__version__", "_LAZY"} if top else {"__all__"}):
        return True
    if not top:
        return False
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id.startswith("_")  # the table of lazy names
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    checking = (
        isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    return checking or (bool(names) and all(name.startswith("_") for name in names))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=label)
def test_init_files_hold_no_logic(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "an __init__ file says what the package is"
    top = path.parent == ROOT
    strange = [
        f"line {node.lineno}: {type(node).__name__}" for node in tree.body if not is_plain(node, top=top)
    ]
    assert not strange, "\n".join(strange)
