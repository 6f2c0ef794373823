"""The C interface: public files carry its number, and additions break no binary."""

import importlib.machinery
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import c_interface
import pytest
from c_interface import MARK, broken, number_of, public, recorded
from checks import refused

import structsolve
from structsolve import abi, operators
from structsolve.search.hull import ConvexHull
from structsolve.search.psi import GeneralizedPsi
from structsolve.surrogates import BiCriteria, Slack
from structsolve.surrogates.base import Surrogate

ROOT = Path(structsolve.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def files():
    return public()


def test_the_number_changes_with_the_declarations(files):
    number = number_of(files)
    changed = {name for name, text in files.items() if recorded().get(number, {}).get(name) != text}
    assert not changed, (
        f"{sorted(changed)} are not what number {number} of the C interface stands for: plugins "
        "compiled against other declarations may crash. Raise STRUCTSOLVE_ABI_NUMBER in "
        "abi_number.pxd, the minor for pure additions, and run "
        "`python tests/shared/c_interface.py`; or run it with "
        "--unreleased, where no version with this major was ever released."
    )


def test_a_minor_only_adds():
    newest, *earlier = recorded().items()
    for number, held in earlier:
        if number.split(".")[0] == newest[0].split(".")[0]:
            assert broken(held, newest[1]) == [], f"{newest[0]} breaks {number}: raise the major"


def test_the_binary_was_built_from_these_files(files):
    assert number_of(files) == operators.ABI, "rebuild: the binary is stale"
    assert abi.ours() == operators.ABI == abi.number_in_file(operators.__file__)


# A file, a text in it ("": its end), and its replacement.
ADDITIONS = {
    "a new function": ("algorithms/minimum_cut.pxd", "", "cdef int more() nogil\n"),
    "a new class": ("operators.pxd", "", "cdef class Newer(Operator):\n    cdef int x\n"),
    "a method in a slot": ("operators.pxd", "cdef void _slot0(self)", "cdef int ask(self, int i)"),
    "a pointer in room": (
        "part_layout.pxd",
        "Py_ssize_t _room0,",
        "const int* x\n    cdef Py_ssize_t",
    ),
    "a flag": ("search/psi.pxd", "bint _flag0,", "readonly bint x\n    cdef bint"),
    "a vector loop": ("simd/loops.h", "} ss_loop_table", "void *more;\n} ss_loop_table"),
    "a method of what is made here": ("potentials/linear.pxd", "", "    cdef int x(self)\n"),
    "a field of what is made here": ("search/view.pxd", "", "    int x\n"),
    "another body": ("utils/alignment.pxd", "% 64", "% 128"),
}
# The same, and the expected message.
BREAKS = {
    "a method between others": (
        "operators.pxd",
        "    cdef int pool",
        "    cdef int x(self)\n    cdef int pool",
        "pool",
    ),
    "a method at the end": ("surrogates/base.pxd", "", "    cdef int x(self)\n", "take a _slot"),
    "another argument": ("search/psi.pxd", "double h, double g", "double h", "value"),
    "another type": ("operators.pxd", "bint gibbs", "int gibbs", "gibbs"),
    "a field between others": (
        "operators.pxd",
        "bint gibbs",
        "bint x\n    cdef bint gibbs",
        "exact",
    ),
    "a field too many": (
        "search/base.pxd",
        "Py_ssize_t _room0",
        "Py_ssize_t x, _room0",
        "_flag or _room",
    ),
    "a flag in room": (
        "operators.pxd",
        "Py_ssize_t _room0,",
        "bint x\n    cdef Py_ssize_t",
        "_room0",
    ),
    "a slot less": ("operators.pxd", "    cdef void _slot7(self) noexcept nogil\n", "", "_slot7"),
    "another base": ("operators.pxd", "KBest(Operator)", "KBest(Oracle)", "class KBest"),
    "fields of a struct": ("operators.pxd", "double h0, g0", "double g0, h0", "h0"),
    "a larger struct": ("surrogates/base.pxd", "int calls", "int calls, x", "has grown"),
    "another constant": ("search/view.pxd", "SLOTS = 40", "SLOTS = 41", "SLOTS"),
    "another function": ("lp/cones.pxd", "cdef bint in_cone", "cdef int in_cone", "in_cone"),
    "other vector loops": ("simd/loops.h", "const char *name;", "", "name"),
}


def edited(files, name, old, new):
    text = files[name].replace(old, new, 1) if old else files[name] + new
    assert text != files[name]
    return {**files, name: text}


@pytest.mark.parametrize("edit", ADDITIONS)
def test_additions_break_nothing(files, edit):
    assert broken(files, edited(files, *ADDITIONS[edit])) == []


@pytest.mark.parametrize("edit", BREAKS)
def test_other_edits_are_told(files, edit):
    *change, told = BREAKS[edit]
    assert told in "\n".join(broken(files, edited(files, *change)))


def test_a_file_less_is_told(files):
    assert broken(files, {k: v for k, v in files.items() if k != "search/psi.pxd"})


def test_a_record_keeps_what_the_next_number_changes(tmp_path, files):
    old = {**files, c_interface.NUMBER: files[c_interface.NUMBER].replace(number_of(files), "7.0")}
    new = {**old, "new.pxd": "cdef int f()\n"}
    new[c_interface.NUMBER] = old[c_interface.NUMBER].replace("7.0", "7.1")
    for each in (old, new, new):
        c_interface.record(each, tmp_path)
    assert [*c_interface.read(tmp_path / "7.0.txt")] == [c_interface.NUMBER]
    held = recorded(tmp_path)
    assert list(held) == ["7.1", "7.0"] and held["7.1"] == new
    assert {name: held["7.0"][name] for name in old} == old
    c_interface.record({**new, "new.pxd": "cdef int g()\n"}, tmp_path, keep=False)
    assert "new.pxd" not in c_interface.read(tmp_path / "7.0.txt")


def cimported(path):
    """Return modules of structsolve that a source cimports, by path."""
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    names = re.findall(r"^\s*(?:from structsolve\.([\w.]+) )?cimport", text, re.M)
    return {f"{name.replace('.', '/')}.pxd" for name in names if name}


def test_plugins_need_nothing_but_the_public_files(files):
    """Shipped plugins and examples are compiled like those of outsiders."""
    folders = [ROOT / "plugins", CHECKOUT / "plugins"]
    folders += [CHECKOUT / "docs" / "examples", CHECKOUT / "tests" / "third_party"]
    sources = [
        path for folder in folders for path in folder.rglob("*.p[xy][dx]") if folder.exists()
    ]
    assert len(sources) > 50
    for path in sources:
        needed = {name for name in cimported(path) if not name.startswith("plugins/")}
        assert needed <= set(files) | {"simd/loops.pxd"}, (path, needed - set(files))


def test_the_docs_list_the_public_files(files):
    page = CHECKOUT / "docs" / "c_interface.rst"
    if not page.exists():
        pytest.skip("no docs beside the tests")
    text = page.read_text(encoding="utf-8")
    listed = set(re.findall(r"``structsolve/([\w/]+\.pxd)``", text))
    assert listed == {name for name in files if name.endswith(".pxd")}
    for name in listed:
        for head, lines in c_interface.declarations(files[name]).items():
            if head.startswith("cdef extern"):
                continue
            kind = re.match(r"cdef (?:class|struct) (\w+)", head)
            declared = lines if head.startswith("cdef class") else [head]
            names = {call for line in declared for call in re.findall(r"^.*?(\w+)\(", line)}
            for what in names | ({kind[1]} if kind else set()):
                known = what.startswith("_") or re.search(rf"``{what}(\(\w*\))?``", text)
                assert known, (name, what)


def test_no_public_file_needs_a_private_one(files):
    for name, text in files.items():
        if not name.endswith(".pxd"):
            continue
        here = Path(name).parent.as_posix()
        for base, names in re.findall(r"^from ([\w.]+) cimport (.*)$", text, re.M):
            if base.startswith("structsolve."):
                module = base.removeprefix("structsolve.")
            elif base.startswith(".."):
                module = base[2:]
            elif base.startswith("."):
                module = f"{here}.{base[1:]}"
            else:
                continue
            assert f"{module.replace('.', '/')}.pxd" in files, (name, base, names)


def test_every_module_over_a_public_file_carries_the_number(files):
    for path in ROOT.rglob("*.pyx"):
        text = path.read_text(encoding="utf-8") + (
            path.with_suffix(".pxd").read_text(encoding="utf-8")
            if path.with_suffix(".pxd").exists()
            else ""
        )
        if re.search(r"^(from|cimport) structsolve\.|^from \.", text, re.M) is None:
            continue
        if cimported(path) & set(files) or MARK in text:
            binaries = [
                binary
                for suffix in importlib.machinery.EXTENSION_SUFFIXES
                if (binary := path.with_suffix(suffix)).exists()
            ]
            assert binaries, f"{path.name} was not built"
            assert abi.number_in_file(str(binaries[0])) == operators.ABI, path.name


SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


def binary(path, number):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + bytes(999) + f"structsolve-c-abi={number};".encode() + bytes(9))
    return path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on sys.path that must not be imported."""
    folder = tmp_path / "an_outside_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_numbers_in_files(tmp_path):
    assert abi.number_in_file(str(binary(tmp_path / "a.so", "12"))) == "12"
    (tmp_path / "plain.so").write_bytes(b"nothing of that kind")
    (tmp_path / "empty.so").touch()
    assert abi.number_in_file(str(tmp_path / "plain.so")) is None
    assert abi.number_in_file(str(tmp_path / "empty.so")) is None


def test_packages_are_looked_at_on_disk(package, tmp_path):
    assert abi.stale_modules("an_outside_package.plugin") == []
    binary(package / f"fresh{SUFFIX}", operators.ABI)
    assert abi.stale_modules("an_outside_package.plugin") == []
    binary(package / "deep" / f"old{SUFFIX}", "0")
    (complaint,) = abi.stale_modules("an_outside_package.plugin")
    assert complaint == (
        f"old{SUFFIX} was compiled against structsolve C API 0, this structsolve provides "
        f"{operators.ABI}; rebuild or upgrade the plugin"
    )
    assert "an_outside_package" not in sys.modules
    beside = binary(tmp_path / f"_beside{SUFFIX}", "0")
    assert len(abi.stale_modules("an_outside_package", [beside])) == 2
    assert abi.stale_modules("no_such_package_anywhere") == []


@pytest.mark.parametrize("major, minor, newer", [
    (0, 1, True), (1, 0, True), (1, -9, True), (-1, 9, False),
])  # fmt: skip
def test_the_older_one_is_to_be_upgraded(package, major, minor, newer):
    ours = [int(part) for part in operators.ABI.split(".")]
    number = f"{ours[0] + major}.{max(ours[1] + minor, 0)}"
    binary(package / f"other{SUFFIX}", number)
    (complaint,) = abi.stale_modules("an_outside_package.plugin")
    expected = "upgrade structsolve" if newer else "rebuild or upgrade the plugin"
    assert complaint.endswith(f"provides {operators.ABI}; {expected}")


def test_builds_for_other_interpreters_do_not_count(package):
    binary(package / "old.cpython-27-pdp11.so", "0")
    assert abi.stale_modules("an_outside_package") == []


def test_a_module_of_one_file(tmp_path, monkeypatch):
    binary(tmp_path / f"lonely{SUFFIX}", "0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(abi.stale_modules("lonely")) == 1


@pytest.fixture
def stale(tmp_path, monkeypatch):
    """Create a subclass that seems to be compiled against another number."""
    module = ModuleType("a_stale_module")
    module.__file__ = str(binary(tmp_path / f"a_stale_module{SUFFIX}", "0.0"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return lambda *bases: type("Old", bases, {"__module__": module.__name__})


def test_objects_are_looked_at_too(stale):
    derived = type("Derived", (stale(),), {"__module__": __name__})
    assert "C API 0.0" in abi.stale_object(derived())
    assert abi.stale_object(object()) is None


def test_stale_objects_are_refused_wherever_they_come_in(stale):
    old_loss = SimpleNamespace(bind=lambda space: stale(operators.Loss))
    old_margin = SimpleNamespace(bind=lambda task: stale(Surrogate)(task.layout))
    for params in (
        {"surrogate": BiCriteria(stale(GeneralizedPsi)(1, 1))},
        {"surrogate": Slack(search=stale(ConvexHull)())},
        {"surrogate": old_margin},
        {"loss": old_loss},
    ):
        model = structsolve.StructuredSVM("multiclass", **params)
        refused(
            r"a_stale_module.Old: a_stale_module.* was compiled against structsolve C API 0.0",
            model.fit,
            [[0.0], [1.0]],
            [0, 1],
            error=ImportError,
        )
