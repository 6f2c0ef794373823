"""The documentation: all code runs, and every hook, option and public name is documented."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from doc_code import (
    ANIMALS,
    COINS,
    COSTS,
    LEAVES,
    NEW,
    OPTIONS,
    ROADS,
    ROOT,
    TABLE,
    TRAIN,
    directives,
    in_this_process,
    is_installed,
    run_session,
)
from programs import Programs
from python_contract import is_protocol

import structsolve
import structsolve.plugins
import structsolve.registry
from structsolve import hookspecs

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.rst"), *DOCS.glob("theory/*.rst")])
SESSIONS = [page for page in PAGES if page.stem != "tutorial"]  # see tests/project/test_tutorial.py
RING = DOCS / "examples" / "ring_native"

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="installed without the checkout")


def test_files_that_are_cited_are_in_the_repository():
    there = {path.name for path in [*ROOT.glob("*.md"), *ROOT.glob("*/*.md")]}
    for folder in ("structsolve", "plugins", "docs", "benchmarks", "tests"):
        for suffix in ("py", "pyx", "pxd", "h", "rst", "md"):
            for path in (ROOT / folder).rglob(f"*.{suffix}"):
                for name in re.findall(r"\b[A-Z]{3,}\.md\b", path.read_text(encoding="utf-8")):
                    assert name in there, f"{path.relative_to(ROOT)} cites {name}"


# -- code ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder from which docs/examples can be imported."""
    monkeypatch.chdir(tmp_path)
    for package in (RING / "ring_native", RING.parent / "segments", RING.parent / "grid_paths"):
        monkeypatch.syspath_prepend(str(package))
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_sessions_of_python(page, folder):
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_compiles(page):
    for line, _, code in directives(page, "python"):
        compile("\n" * (line - 1) + code, str(page), "exec")


def test_first_example_of_the_index(folder):
    _, _, code = next(directives(DOCS / "index.rst", "python"))
    exec(code, {})


def test_sessions_of_the_shell(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page, files = DOCS / "cli.rst", (TRAIN, NEW, TABLE, ANIMALS, LEAVES, ROADS, COINS, COSTS)
    for (_, name, text), content in zip(directives(page, "text"), files, strict=True):
        assert text == content, name
        (folder / name).write_text(text)
    for _, _, code in directives(page, "python"):  # writes the file of a pipeline
        exec(code, {})
    for line, _, session in directives(page, "console"):
        # The README's first command and tests/cli/test_cli.py start the program itself.
        run_session(session, folder, f"{page.name}, line {line}", in_this_process)


def test_example_of_matching(capsys):
    runpy.run_path(str(DOCS / "examples" / "matching.py"))
    ours, evenly = map(float, re.findall(r"0\.\d+|1\.0+", capsys.readouterr().out))
    assert ours > evenly + 0.1


def test_example_of_words_in_the_middle(capsys):
    runpy.run_path(str(DOCS / "examples" / "middle_word.py"))
    first, fifth, often = map(float, re.findall(r"0\.\d{3}", capsys.readouterr().out)[:3])
    assert often + 0.01 < first < fifth


@pytest.mark.slow
def test_compiled_example_passes_the_check(tmp_path):
    """The package of docs/structures.rst: built, found by its entry point, and correct."""
    pytest.importorskip("Cython")
    source = tmp_path / "source"
    for path in RING.rglob("*"):
        if path.suffix in (".py", ".pyx", ".toml"):
            target = source / path.relative_to(RING)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    install += ["--no-build-isolation", "--target", str(tmp_path / "site"), str(source)]
    program = (
        "from structsolve.testing import check_structure\n"
        "from structsolve import list_plugins\n"
        "assert next(p for p in list_plugins() if p['name'] == 'ring')['gives_parts']\n"
        "check_structure('ring')\n"
    )
    # Compilation takes longest, and nothing here is about speed.
    flags = "" if os.name == "nt" else "-O0"
    environment = os.environ | {"CFLAGS": flags}
    done = subprocess.run(install, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    Programs(sys.executable, tmp_path, PYTHONPATH=str(tmp_path / "site")).run(program)


# -- completeness ----------------------------------------------------------------------------------


def hooks():
    return {
        name: f"{name}({', '.join(inspect.signature(hook).parameters)})"
        for name, hook in vars(hookspecs).items()
        if name.startswith("structsolve_") and callable(hook)
    }


def headings(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    marks = zip(lines, lines[1:])
    return {a for a, b in marks if a and b and set(b) <= set("=-^") and len(b) == len(a)}


def test_every_hook_has_a_section_with_its_signature():
    signatures = {heading for heading in headings(DOCS / "hooks.rst") if "(" in heading}
    assert signatures == set(hooks().values())


@pytest.mark.parametrize("name", hooks())
def test_hook_specifications_hold_an_example(name):
    text = getattr(hookspecs, name).__doc__
    assert "Example" in text and "@hookimpl" in text and f"def {name}(" in text


def test_every_option_of_the_shell_is_described():
    from structsolve.cli.main import make_parser

    page = (DOCS / "cli.rst").read_text(encoding="utf-8")
    commands = next(a for a in make_parser()._actions if getattr(a, "choices", None)).choices
    assert {"demo", "fit", "predict", "score", "plugins", "bench"} <= headings(DOCS / "cli.rst")
    for command, parser in commands.items():
        for action in parser._actions:
            option = action.option_strings[-1] if action.option_strings else None
            if option and option not in ("--help", "--verbose"):
                assert re.search(rf"{option}\b", page), f"{command} {option}"


def documented():
    """Return the fully qualified names with an entry in the reference."""
    names = []
    for page in [DOCS / "api.rst", *sorted((DOCS / "api").glob("*.rst"))]:
        module = "structsolve"
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"\.\. auto(?:class|exception|function|data):: (\S+)", line):
                own = match[1].startswith("structsolve.")
                names.append(match[1] if own else f"{module}.{match[1]}")
    return list(filter(is_installed, names))


def resolve(name):
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        return importlib.import_module(name)


def public_modules():
    """Return every module that users may import from: none of `utils`, none with an underscore."""
    yield structsolve
    for package in (structsolve, structsolve.plugins):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            words = module.name.split(".")[1:]
            private = words[0] == "utils" or any(word.startswith("_") for word in words)
            if not private and is_installed(module.name):
                yield importlib.import_module(module.name)


def named_on(page):
    """Return names that a page imports from structsolve, or writes in full."""
    text = page.read_text(encoding="utf-8").replace("\n... ", "\n")
    for module, names in re.findall(r"from (structsolve[\w.]*) import (\([^)]*\)|.*)", text):
        for name in re.findall(r"\w+", re.sub("#.*| as .*", "", names)):
            yield f"{module}.{name}"
    for name in re.findall(r"`~?(structsolve\.[\w.]+\w)(?:\(|`)", text):
        if not name.split(".")[-2][:1].isupper():  # no method or attribute
            yield name


def public_names():
    """Return all public names, by the rules that make a name public."""
    for module in public_modules():
        home = module.__name__
        yield from (f"{home}.{name}" for name in getattr(module, "__all__", ()))
        if home.startswith("structsolve.io."):
            yield from (
                f"{home}.{name}" for name in vars(module) if re.match("(read|write)_", name)
            )
        if home == "structsolve.operators":
            own = (v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == home)
            yield from (f"{home}.{thing.__name__}" for thing in own)
    known = structsolve.registry.default()
    for kind in structsolve.registry.LISTS:
        for factory in (known.find(kind, name).factory for name in known.names(kind)):
            if inspect.isclass(factory) and factory.__module__.startswith("structsolve."):
                yield f"{factory.__module__}.{factory.__qualname__}"
    for page in [*PAGES, ROOT / "README.md"]:
        yield from filter(is_installed, named_on(page))


def test_every_public_name_is_in_the_reference():
    names = documented()
    assert len(set(names)) == len(names)
    listed, missing = [resolve(name) for name in names], []
    for name in sorted(set(public_names()) - {"structsolve.__version__"}):
        thing = resolve(name)
        if not inspect.ismodule(thing) and not any(thing is other for other in listed):
            missing.append(name)
    assert missing == []


# Errors of numpydoc.validate to check: a one-line summary, and parameters that match the
# signature in its order, each with a type.
WANTED = {"GL08", "SS01", "PR01", "PR02", "PR03", "PR04", "PR05"}


@pytest.mark.parametrize("name", documented() if DOCS.exists() else [])
def test_docstrings_are_complete(name, monkeypatch):
    numpydoc = pytest.importorskip("numpydoc.validate")
    validate, thing = numpydoc.validate, resolve(name)
    # Lines and comments that exempt from checks, from tokens of whole files: nobody asks for them.
    monkeypatch.setattr(numpydoc.Validator, "source_file_def_line", None)
    monkeypatch.setattr(numpydoc, "extract_ignore_validation_comments", lambda file: {}, False)
    if name == "structsolve.hookimpl" or isinstance(thing, (tuple, dict, str)):  # constants
        return
    assert problems(validate, thing, name) == []
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            public = not member.startswith("_") and callable(value)
            if public and value.__doc__ and "Parameters\n" in value.__doc__:
                assert problems(validate, value, f"{name}.{member}") == []


def problems(validate, thing, name):
    """Return numpydoc's relevant errors; a docstring without parameters may be one line."""
    home = f"{thing.__module__}.{thing.__qualname__}"
    exempt = set()
    if not inspect.isclass(thing):
        exempt |= set() if "Parameters\n" in (thing.__doc__ or "") else {"PR01"}
    elif is_protocol(thing) or issubclass(thing, structsolve.Space):
        exempt.add("PR01")  # made by nobody; made by make_space, not by users
    elif not inspect.isfunction(thing.__init__) and thing.__text_signature__ is None:
        exempt.add("PR02")  # compiled: the signature is not known
    errors = validate(home)["errors"]
    return [f"{name}: {code} {text}" for code, text in errors if code in WANTED - exempt]


@pytest.mark.parametrize("path", sorted(Path(structsolve.__file__).parent.rglob("*.py")), ids=str)
def test_first_lines_say_what_a_file_is_for(path):
    first = path.read_text(encoding="utf-8").lstrip()
    assert first.startswith(('"""', 'r"""', "# ")) or not first, f"{path}: no first words"


@pytest.mark.parametrize("page", sorted(DOCS.glob("theory/*.rst")), ids=lambda page: page.stem)
def test_every_theory_page_has_its_figure(page):
    figure = DOCS / "pictures" / f"theory_{page.stem}.png"
    assert f"../pictures/{figure.name}" in page.read_text("utf-8") and figure.is_file()
    drawn = runpy.run_path(str(DOCS / "pictures" / "theory.py"))["FIGURES"]
    assert page.stem in [draw.__name__ for draw in drawn]
