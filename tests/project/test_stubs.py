"""Every public compiled module has a stub, which names what Python sees of it and no more.

What the names are, `mypy.stubtest` looks at in `.ci/run`: it takes as long as mypy itself.
"""

import ast
import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "structsolve").exists(), reason="not in a checkout")


def public(suffix):
    """Return paths without suffix of the files without a leading underscore in any part."""
    return sorted(
        path.with_suffix("")
        for folder in ("structsolve", "plugins")
        for path in (ROOT / folder).rglob(f"*{suffix}")
        if not any(part.startswith("_") for part in path.relative_to(ROOT).parts)
    )


def members(nodes):
    """Return public names that statements of a stub define."""
    names = {n.name for n in nodes if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    return {name for name in names if not name.startswith("_")}


def test_every_public_compiled_module_has_one():
    assert public(".pyi") == public(".pyx")


@pytest.mark.parametrize("path", public(".pyi"), ids=lambda path: path.name)
def test_they_name_the_classes_methods_and_functions(path):
    parts = path.relative_to(ROOT).parts
    package = ["structsolve", "plugins"] if parts[0] == "plugins" else ["structsolve"]
    module = importlib.import_module(".".join([*package, *parts[1:]]))
    body = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8")).body
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        # Cython says that our namedtuples were made elsewhere.
        and (
            value.__module__ == module.__name__
            or (hasattr(value, "_fields") and not value.__module__.startswith("structsolve"))
        )
    }
    assert members(body) == set(own)
    for node in body:
        if isinstance(node, ast.ClassDef) and not hasattr(own[node.name], "_fields"):
            expected = {name for name in vars(own[node.name]) if not name.startswith("_")}
            given = members(node.body) | {
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign)
            }
            assert given == expected, node.name


@pytest.mark.parametrize(
    ("phrase", "annotation"),
    [
        ("int, default=-1", "int"),
        ("ndarray of float64 of shape (sum(k), n), optional", "NDArray[np.float64] | None"),
        ("ndarray of float32 or float64 of shape (m,)", "NDArray[np.floating]"),
        ("array of int of shape (m,), or of shape (m, 2)", "ArrayLike"),
        ("dict of str to ndarray", "dict[str, NDArray[Any]]"),
        (
            "list of tuple of (int, ndarray of int32 or None)",
            "list[tuple[int,NDArray[np.int32]|None]]",
        ),
        ("Oracle, Parts or None", "Oracle | Parts | None"),
        ('{"a", "b"}, optional', "str | None"),
        ("what users give", "Any"),
        ("ndarray, or what users give", "Any"),
    ],
)
def test_types_of_docstrings(phrase, annotation):
    typed = runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["typed"]
    assert typed(phrase) == annotation


def test_a_type_that_nothing_defines_is_refused(tmp_path):
    path = tmp_path / "rows.pyx"
    path.write_text(
        'def f(x):\n    """F.\n\n    Parameters\n    ----------\n    x : Widget\n    """\n'
    )
    write_stubs = runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["write_stubs"]
    with pytest.raises(ValueError, match="rows.pyx: found the type Widget, expected a class"):
        write_stubs({"rows": tmp_path})
    path.write_text(path.read_text().replace("Widget", "ndarray of float64"))
    (tmp_path / "gone.pyi").write_text("")
    write_stubs = runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["write_stubs"]
    write_stubs({"rows": tmp_path})
    assert "def f(x: NDArray[np.float64]) -> None: ..." in path.with_suffix(".pyi").read_text()
    assert not (tmp_path / "gone.pyi").exists()
