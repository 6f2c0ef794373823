"""No import goes round or upwards: files, folders and plugins; cimports, late imports too.

And names that say nothing of what they hold are none.
"""

import ast
import re
from pathlib import Path

import pytest

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"structsolve": ROOT / "structsolve", "structsolve.plugins": ROOT / "plugins"}
pytestmark = pytest.mark.skipif(not FOLDERS["structsolve"].exists(), reason="not in a checkout")

STATEMENT = re.compile(
    r"^([ \t]*)(?:from[ ]+(\.*[\w.]*)[ ]+c?import[ ]+(\([^)]*\)|[^\n#]*)|c?import[ ]+([\w., ]+))",
    re.M,
)

# Modules that may be imported on use: slow to import, or optional.
HEAVY = {
    "arff",
    "PIL",
    "clarabel",
    "cvxpy",
    "dask",
    "distributed",
    "gurobipy",
    "highspy",
    "joblib",
    "matplotlib",
    "networkx",
    "ortools",
    "pandas",
    "scipy",
    "sklearn",
    "tqdm",
}
# What the first lines of a file may say about all its imports from structsolve.
FOR_ALL = "are imported where"


def read(path):
    """Return source without docstrings, comments and type-checking blocks."""
    text = re.sub(r'"""[\s\S]*?"""', "", path.read_text(encoding="utf-8"))
    text = re.sub(r"(?m)^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)*", "", text)
    return re.sub(r"(?m)#.*$", "", text)


def modules():
    """Return every module's files by its dotted name."""
    files = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.p*")):
            if path.suffix in (".py", ".pyx", ".pxd"):
                name = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
                files.setdefault(name.removesuffix(".__init__"), []).append(path)
    return files


FILES = modules()


def imports(module):
    """Return a module's imports from structsolve: (module, name, whether inside a function)."""
    for path in FILES[module]:
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        for match in STATEMENT.finditer(read(path)):
            inside, base, names, plain = match.groups()
            if plain:
                for name in plain.split(","):
                    yield name.split(" as ")[0].strip(), "", bool(inside)
                continue
            if base.startswith("."):
                up = len(base) - len(base.lstrip("."))
                above = package.split(".")[: len(package.split(".")) - up + 1]
                base = ".".join([*above, *filter(None, [base.lstrip(".")])])
            for name in names.strip("() \n").split(","):
                name = name.split(" as ")[0].strip()
                if name:
                    whole = f"{base}.{name}"
                    yield (
                        (whole, "", bool(inside)) if whole in FILES else (base, name, bool(inside))
                    )


def edges():
    graph = {}
    for module in FILES:
        graph[module] = {
            base
            for base, _, _ in imports(module)
            if base in FILES and base != module and base != "structsolve"
        }
    return graph


def circles(graph):
    """Return strongly connected components of more than one node (Tarjan)."""
    number, low, stack, rounds = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                rounds.append(sorted(part))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return rounds


def test_circles_are_recognised():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_circle_of_files():
    assert circles(edges()) == []


def ranks():
    if tomllib is None:
        pytest.skip("tomllib comes with Python 3.11")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]["layers"]
    return {
        name.strip(" ()"): rank
        for rank, layer in enumerate(reversed(layers))
        for name in layer.split("|")
    }


def test_no_folder_imports_a_higher_one():
    rank = ranks()
    wrong = []
    for module, targets in edges().items():
        if module.startswith("structsolve.plugins") or module == "structsolve":
            continue
        own = module.split(".")[1]
        for target in targets:
            other = target.split(".")[1]
            if own != other and not rank[other] < rank[own]:
                wrong.append(f"{module} imports {target}")
    assert wrong == []


def test_every_folder_has_a_rank_and_says_what_it_is_for():
    rank = ranks()
    for path in sorted(FOLDERS["structsolve"].iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            assert path.name in rank
            assert '"""' in (path / "__init__.py").read_text(encoding="utf-8"), path.name
        elif path.suffix in (".py", ".pyx") and path.stem != "__init__":
            assert path.stem in rank, "the contract and its host lie here; all else in a folder"


def test_the_core_imports_no_plugin():
    wrong = [
        f"{module} imports {base}"
        for module in FILES
        if not module.startswith("structsolve.plugins")
        for base, _, _ in imports(module)
        if base.startswith("structsolve.plugins")
    ]
    assert wrong == []


def test_plugins_take_public_modules_of_each_other_alone():
    wrong = []
    for module in FILES:
        if not module.startswith("structsolve.plugins."):
            continue
        for base, name, _ in imports(module):
            if not base.startswith("structsolve.plugins."):
                continue
            private = any(part.startswith("_") for part in [*base.split("."), name])
            if base.split(".")[2] != module.split(".")[2] and private:
                wrong.append(f"{module} imports {base} {name}")
    assert wrong == []


# Rooms of plugins/mrf, each importing only those before it; then the files beside them.
ROOMS = ["tables", "messages", "cuts", "local_search", "elimination", "exact", "relaxation"]


def test_rooms_of_graphs_import_only_those_before_them():
    plugin, wrong = "structsolve.plugins.mrf", []
    assert {path.parent.name for path in (ROOT / "plugins/mrf").glob("*/*.py")} == set(ROOMS)
    rank = {f"{plugin}.{room}": number for number, room in enumerate(ROOMS)}
    for module, targets in edges().items():
        own = rank.get(".".join(module.split(".")[:4]), len(ROOMS))
        for target in targets:
            other = rank.get(".".join(target.split(".")[:4]), len(ROOMS))
            if target.startswith(f"{plugin}.") and own < other:
                wrong.append(f"{module} imports {target}")
    assert wrong == []


def is_hook(node):
    """Implementations of hooks import what they return: plugins are loaded at every start."""
    return any("hookimpl" in ast.unparse(decorator) for decorator in node.decorator_list)


def late_imports(path):
    """Return line and package of the imports inside functions; "" if the package is ours."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"(?m)^[ \t]+(?:from|import) ", text):
        return
    if path.suffix == ".py":
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, functions) or is_hook(function):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield node.lineno, node.names[0].name
                elif isinstance(node, ast.ImportFrom):
                    yield node.lineno, "." * node.level + (node.module or "")
        return
    text = re.sub(r'"""[\s\S]*?"""', lambda match: "\n" * match[0].count("\n"), text)
    for match in re.finditer(r"^[ \t]+(?:from|import)[ ]+([\w.]+)", text, re.M):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def without_reason(path):
    """Return lines of imports inside functions that are neither ours nor heavy, or unexplained."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = " ".join(" ".join(lines[:12]).split())
    for number, module in sorted(set(late_imports(path))):
        package = module.partition(".")[0]
        above = number - 1
        while above > 1 and re.match(r"\s*(from|import) ", lines[above - 1]):
            above -= 1
        # Imports below each other share the comment of the first, or the one above it.
        told = lines[above - 1].strip().startswith("#")
        told |= any("#" in line for line in lines[above:number])
        ours = package in ("", "structsolve")
        if not (told or (ours and FOR_ALL in first)) or not (ours or package in HEAVY):
            yield number


@pytest.mark.parametrize("package", FOLDERS)
def test_imports_inside_functions_have_a_reason(package):
    paths = sorted(FOLDERS[package].rglob("*.py*"))
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        if path.suffix in (".py", ".pyx")
        for number in without_reason(path)
    ]
    assert wrong == []


def test_late_imports_are_recognised(tmp_path):
    text = """import os
def run():
    import re
    import cvxpy  # heavy
    import highspy
    from .lp import base
    # Heavy: it takes a second.
    import scipy
    from structsolve.lp import decoder
    def inside():
        from structsolve.lp import base
        import scipy
"""
    for name in ("a.py", "a.pyx"):
        (tmp_path / name).write_text(text)
        assert list(without_reason(tmp_path / name)) == [3, 11, 12]
        (tmp_path / name).write_text(f"# Compiled modules {FOR_ALL} operators are made.\n{text}")
        assert list(without_reason(tmp_path / name)) == [4, 13]


EMPTY_NAME = re.compile(r"\b_*(?:found|at)_*\b")
# Where one may be stored: the word occurs in prose and in numpy's names, too.
STORED = re.compile(EMPTY_NAME.pattern + r"\s*(?:(?:[-+*/|&]|//)?=(?!=)|[],:)]| in\b)")
# A declaration or a parameter; a target of an assignment; one of a loop.
COMPILED_NAME = re.compile(
    r"\b(?:int|double|char|float|bint|object|list|dict|str|size_t|\w+_t|[A-Z]\w*)\b[ *&]*"
    r"(?:[^()=]*?,[ *]*)?_?(?:found|at)\b(?=\s*[,=)\[]|\s*$)"
    r"|^\s*(?:[\w.]+, *)*(?:\w+\.)?_?(?:found|at)\b(?:, *[\w.]+)*\s*(?:[-+*/|&]|//)?=(?!=)"
    r"|\bfor (?:\w+, *)*(?:found|at)\b(?:, *\w+)* in\b"
)


def empty_names(path):
    """Return lines of a file with a variable called ``found`` or ``at``."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        if not STORED.search(text):
            return
        for node in ast.walk(ast.parse(text)):
            name = ""
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                name = node.id
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                name = node.attr
            elif isinstance(node, (ast.arg, ast.keyword)):
                name = node.arg or ""
            if EMPTY_NAME.fullmatch(name):
                yield node.lineno
        return
    # Remove docstrings and comments, but keep their lines.
    text = re.sub(r'"""[\s\S]*?"""', lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.split("#")[0]
        if EMPTY_NAME.search(line) and COMPILED_NAME.search(line):
            yield number


def test_names_say_what_they_hold():
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("structsolve", "plugins", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.p*"))
        if path.suffix in (".py", ".pyx", ".pxd")
        for number in empty_names(path)
    ]
    assert wrong == []


def test_empty_names_are_recognised(tmp_path):
    python = "def run(at):\n    found = at\n    self._found = 1\n    np.add.at(x, 0)\n    f(at=1)\n"
    (tmp_path / "a.py").write_text(python)
    assert sorted(empty_names(tmp_path / "a.py")) == [1, 2, 3, 5]
    compiled = """cdef Py_ssize_t s, before, found = 0
cdef int run(Plan* at, int n)
    top, found = x, number
    for at in range(3):
    cdef int at_most, table_at    # at
    np.add.at(x, 0)
    raise ValueError(f"found {x}, expected y")
    cdef double* at
"""
    for name in ("a.pyx", "a.pxd"):
        (tmp_path / name).write_text(compiled)
        assert list(empty_names(tmp_path / name)) == [1, 2, 3, 4, 8]


def counted_from_the_end(text):
    """Indices like x[-1] and x[:-2] in code without wraparound: they read invalid memory."""
    wraps = re.search(r"(?m)^# cython:.*wraparound=True", text)
    code = re.sub(r'"""[\s\S]*?"""|#.*', "", text)
    return [] if wraps else re.findall(r"[\w)\]]+\[(?:[^]\[]*:)?-\d+\]", code)


def test_compiled_code_counts_no_index_from_the_end():
    for folder in FOLDERS.values():
        for path in folder.rglob("*.pyx"):
            assert not counted_from_the_end(path.read_text(encoding="utf-8")), path


def test_indices_from_the_end_are_recognised():
    assert counted_from_the_end("x = ends[-1] + f(y)[:-2]  # z[-1]") == ["ends[-1]", "y)[:-2]"]
    assert not counted_from_the_end("# cython: wraparound=True\nx = ends[-1]")
    assert not counted_from_the_end('"""\n>>> x[-1]\n"""\ny = x[n - 1], [-1], x[:n]')
