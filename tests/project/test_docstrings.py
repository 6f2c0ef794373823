"""Every public function and method says what it takes and gives back.

Public is what neither begins with an underscore nor lies in a module that does; implementations of
hooks are described by their specification.  A method that a base class of ours documents may have
one line of its own, or none.  Compiled classes are held to the same by test_docs.py, as far as
the reference lists them.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ROOT / "structsolve", ROOT / "plugins"
pytestmark = pytest.mark.skipif(not FOLDERS[0].exists(), reason="not in a checkout")

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPILED_CLASS = re.compile(r"^(?:cdef )?class (\w+)(?:\((\w+)[^)]*\))?:", re.M)
COMPILED_METHOD = re.compile(
    r'^ +(?:def|cpdef [\w ]*?) ?(\w+)\([^\n]*(?:\n[^\n]*)*?:\n +r?"""', re.M
)


def sources(suffix):
    """Return the paths of the public modules."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob(f"*{suffix}")):
            words = path.relative_to(ROOT).with_suffix("").parts
            if not any(word.startswith("_") and word != "__init__" for word in words):
                yield path


def classes(tree):
    """Return the classes of a module, with nested ones, without visiting expressions."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node
        if isinstance(getattr(node, "body", None), list):
            yield from classes(node)


@cache  # not at import: every process imports this, few read all sources
def documented_methods():
    """Return by class name: its bases, and the methods that it documents itself."""
    known = {}

    def add(name, bases, methods):
        known.setdefault(name, (set(), set()))
        known[name][0].update(bases)
        known[name][1].update(methods)

    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            for node in classes(ast.parse(path.read_text(encoding="utf-8"))):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                own = {f.name for f in node.body if is_function(f) and ast.get_docstring(f)}
                add(node.name, bases, own)
        for path in folder.rglob("*.pyx"):
            pieces = COMPILED_CLASS.split(path.read_text(encoding="utf-8"))
            for name, base, body in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
                add(name, [base] if base else [], COMPILED_METHOD.findall(body))
    return known


def is_function(node):
    return isinstance(node, FUNCTIONS)


def inherited(known, bases, method):
    """Return whether one of these classes, or a base class, documents a method."""
    return any(
        method in known[base][1] or inherited(known, known[base][0], method)
        for base in bases
        if base in known
    )


def own_statements(function):
    """Return the nodes of a function, without those of inner functions."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            yield node
            yield from own_statements(node)


def missing_in(function, decorators):
    """Return what is missing in the docstring of a function."""
    text = ast.get_docstring(function)
    if not text:
        return ["a docstring"]
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [a.arg for a in (given.vararg, given.kwarg) if a]
    lacks = [
        f"parameter {name}"
        for name in names
        if name not in ("self", "cls") and not name.startswith("_")
        if not re.search(rf"^(\*{{0,2}}\w+, )*\*{{0,2}}{name}(, \*{{0,2}}\w+)*( :|$)", text, re.M)
    ]
    gives = any(
        isinstance(node, (ast.Return, ast.Yield)) and node.value is not None
        for node in own_statements(function)
    )
    is_property = any(name.endswith("property") for name in decorators)
    if gives and not is_property and not re.search(r"^(Returns|Yields)\n-", text, re.M):
        lacks.append("Returns")
    return lacks


def faults(tree, known):
    """Return line, name and fault of every public function, class and method of a module."""

    def visit(node, prefix, bases):
        for child in node.body:
            if not isinstance(child, (*FUNCTIONS, ast.ClassDef)) or child.name.startswith("_"):
                continue
            name = prefix + child.name
            if isinstance(child, ast.ClassDef):
                if not ast.get_docstring(child):
                    yield child.lineno, name, "a docstring"
                yield from visit(child, f"{name}.", known[child.name][0])
                continue
            decorators = [
                ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in child.decorator_list
            ]
            skipped = ("hookimpl", "overload", ".setter", ".deleter")
            if any(word.endswith(skipped) for word in decorators):
                continue
            if not inherited(known, bases, child.name):
                yield from ((child.lineno, name, lack) for lack in missing_in(child, decorators))

    yield from visit(tree, "", [])


@pytest.mark.parametrize(
    "path", list(sources(".py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_docstrings_name_all_parameters(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lacking = [
        f"line {line}: {name}: {lack}" for line, name, lack in faults(tree, documented_methods())
    ]
    assert lacking == []


BAD = '''
class Base:
    """A class."""

    def run(self, x):
        """Run.

        Parameters
        ----------
        x, unknown : int
        """

class Derived(Base):
    def run(self, x):
        return x

    def stop(self, *rest):
        """Stop."""
        return 1

    @property
    def size(self):
        """A number."""
        return 1

    @hookimpl(trylast=True)
    def hook(self, x): return x

def outer(a, _b):
    """Do.

    Parameters
    ----------
    a : int
    """
    def inner(): return 1
    _hidden(a)

def bare(a): pass
'''


def test_faults_are_recognised():
    tree = ast.parse(BAD)
    known = {"Base": ([], {"run"}), "Derived": (["Base"], {"stop", "size"})}
    assert [(name, lack) for _, name, lack in faults(tree, known)] == [
        ("Derived", "a docstring"),
        ("Derived.stop", "parameter rest"),
        ("Derived.stop", "Returns"),
        ("bare", "a docstring"),
    ]


def test_bases_are_looked_up_in_compiled_classes():
    known = documented_methods()
    assert inherited(known, ["StructuredSVM"], "predict")
    assert known["Oracle"][0] == {"Operator"} and not inherited(known, ["Oracle"], "nonsense")
