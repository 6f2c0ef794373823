"""The C API number: bumped with every change of operators.pxd, carried by every compiled module."""

import hashlib
import importlib.machinery
import sys
from pathlib import Path

import pytest

import structsolve
from structsolve import abi, operators

# SHA-256 of operators.pxd and part_layout.pxd (line ends as \n) under each number in use.
HASHES = {
    "1": "63fcbff807e79c408d82557b8c97672074dccd8544895c2a5718d9c30bfebb6e",
    "2": "6f1f0119de432ccd79a28a466cb4cce4f752103c80e1f9109319732fcb49b51b",
    "3": "0aac2a4a8d18c6ced06588b62279f20147b832b8a0968c0dd3fe9e45ec91eb8c",
    "4": "1dda76db8f9fb00628e6934c471101d86eb6a01c569686df6e8a4842751e01a9",
    "5": "dc0fef220901bc543ec800e264e736cc00dce6ab52cd8bbd0e71017617b9ebe0",
}
PXD = Path(structsolve.__file__).with_name("operators.pxd")
LAYOUT = PXD.with_name("part_layout.pxd")


def test_the_number_changes_with_the_file():
    text = PXD.read_text(encoding="utf-8")
    both = text + LAYOUT.read_text(encoding="utf-8")
    digest = hashlib.sha256(both.encode()).hexdigest()
    number = text.split("#define STRUCTSOLVE_ABI_NUMBER ")[1].split('"')[1]
    assert HASHES.get(number) == digest, (
        "operators.pxd and part_layout.pxd are a C ABI: plugins compiled against another text may "
        f"crash. Raise STRUCTSOLVE_ABI_NUMBER (now {number!r}) unless no version with that "
        "number was ever released, rebuild, and then record the new number here with the hash "
        "that this test finds once the number is raised"
        f" (now {digest!r})."
    )


def test_the_binary_was_built_from_this_file():
    text = PXD.read_text(encoding="utf-8")
    assert f'STRUCTSOLVE_ABI_NUMBER "{operators.ABI}"' in text, "rebuild: the binary is stale"
    assert abi.ours() == operators.ABI == abi.number_in_file(operators.__file__)


def test_every_module_over_the_c_api_carries_the_number():
    root = Path(structsolve.__file__).parent
    for path in root.rglob("*.pyx"):
        if ".operators cimport" in path.read_text(encoding="utf-8"):
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


def test_builds_for_other_interpreters_do_not_count(package):
    binary(package / "old.cpython-27-pdp11.so", "0")
    assert abi.stale_modules("an_outside_package") == []


def test_a_module_of_one_file(tmp_path, monkeypatch):
    binary(tmp_path / f"lonely{SUFFIX}", "0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(abi.stale_modules("lonely")) == 1


def test_objects_are_looked_at_too(tmp_path, monkeypatch):
    from types import ModuleType

    module = ModuleType("a_stale_module")
    module.__file__ = str(binary(tmp_path / f"a_stale_module{SUFFIX}", "0"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    cls = type("Old", (), {"__module__": module.__name__})
    derived = type("Derived", (cls,), {"__module__": __name__})
    assert "C API 0" in abi.stale_object(derived())
    assert abi.stale_object(object()) is None
