# The shell with plugins: formats that they read, options of structures, plugins left out.
import json
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
from shell import TableReader, fails, shell

import structsolve
from structsolve import registry
from structsolve.cli import outside
from structsolve.cli.main import main
from structsolve.registry.plugin import Plugin


def test_a_plugin_brings_a_format(table, tmp_path, capsys):
    model = tmp_path / "m.structsolve"
    chain = "chain:start_end=false,transitions=true"
    fit = ("fit", table, "--model", model, "--alpha", "0.01", "--structure", chain)
    status, out, _ = shell(capsys, *fit)
    assert status == 0 and "read      2 sequences, 5 rows, 2 features" in out
    loaded = structsolve.load(model)
    assert loaded.space_.structure.start_end is False
    assert loaded.metadata_["shell"]["reader"] == {"names": ["down", "up"]}
    # Another order of names, without labels.
    new = tmp_path / "new.table.txt"
    new.write_text(json.dumps({"x": [{"down": 1.0}, {"up": 1.0}]}))
    assert shell(capsys, "predict", model, new) == (0, "b\na\n", "")
    status, out, _ = shell(capsys, "score", model, table)
    assert status == 0 and "accuracy 1.0000 of 5 labels" in out
    new.write_text("{}")
    status, _, err = shell(capsys, "predict", model, new)
    assert status == 2 and "new.table.txt, line 1: found no x; expected features" in err


def test_formats_that_nobody_reads(table, tmp_path, capsys):
    fit = ("fit", table, "--model", tmp_path / "m.structsolve", "--format")
    status, _, err = shell(capsys, *fit, "tabel")
    assert status == 2
    known = "svmlight, npz, or a plugin's"
    assert f"--format: {known}; unknown read" in err
    ours = (
        "'arff', 'brackets', 'conll', 'conllu', 'crfsuite', 'csv', 'extreme', 'fasta', "
        "'ndjson', 'npz', 'pictures'"
    )
    assert f"known: [{ours}, 'table']" in err
    registry.default().unregister(registry.default().plugins[-1].module)
    status, _, err = shell(capsys, *fit, "table")
    assert status == 2
    assert f"unknown reader 'table'; known: [{ours}]" in err


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda self, path: 3, r"the reader of 'table' returned 3, expected (X, y)"),
        (lambda self, path: 1 / 0, "failed in structsolve_readers: ZeroDivisionError"),
    ],
)
def test_readers_that_answer_something_else(table, tmp_path, capsys, monkeypatch, change, message):
    monkeypatch.setattr(TableReader, "fit", change)
    status, _, err = shell(capsys, "fit", table, "--model", tmp_path / "m.structsolve")
    assert status == 2 and message in err


def test_what_readers_learn_is_json(table, tmp_path, capsys, monkeypatch):
    def fit(self, path):
        self.names = {1, 2}
        return [[1.0]], [0]

    monkeypatch.setattr(TableReader, "fit", fit)
    status, _, err = shell(capsys, "fit", table, "--model", tmp_path / "m.structsolve")
    assert status == 2 and "the reader of 'table' has parameters {'names': {1, 2}}" in err


def test_plugins_are_left_out(install, monkeypatch, capsys):
    install("gone", "raise SystemExit('imported')")
    monkeypatch.setattr(registry, "_registry", None)
    status, out, _ = shell(capsys, "--without-plugin", "gone", "plugins")
    line = next(line for line in out.splitlines() if line.startswith("gone"))
    assert status == 0 and line.split() == ["gone", "structsolve-gone", "1.0", "off", "nothing"]
    status, _, err = shell(capsys, "--without-plugin", "other", "plugins")
    assert status == 2 and "no plugin is called 'other'" in err


def test_files_of_structures_with_options(tmp_path, capsys):
    (tmp_path / "h.txt").write_text("1 11\n1 12\n")
    (tmp_path / "t.svm").write_text("11 1:1\n12 1:-1\n")
    fit = ("fit", tmp_path / "t.svm", "--model", tmp_path / "m.structsolve")
    status, _, err = shell(capsys, *fit, "--structure", "dag:close=true")
    assert status == 2 and "structure dag:close=true needs --hierarchy FILE" in err
    hierarchy = ("--hierarchy", tmp_path / "h.txt")
    status, _, err = shell(capsys, *fit, *hierarchy, "--structure", "dag:oracle=auto,colour=red")
    assert status == 2 and "colour" in err


def test_faults_of_a_plugin_are_told_with_its_name(tmp_path, capsys, monkeypatch, install):
    code = """
from structsolve import Named, hookimpl
from structsolve.plugins.chain import ChainStructure

class Broken(ChainStructure):
    name = "broken"

    def make_space(self, *given, **more):
        return [] + 1

@hookimpl
def structsolve_structures():
    return [Named("broken", Broken)]
"""
    install("a_broken_one", code, "broken-plugin")
    monkeypatch.setattr(registry, "_registry", None)
    (tmp_path / "x.conll").write_text("a X\nb Y\n")
    given = ("fit", tmp_path / "x.conll", "--structure", "broken", "--model", tmp_path / "m")
    status, _, error = shell(capsys, *given)
    assert status == 2
    assert "(broken-plugin 1.0) raised TypeError: can only concatenate list" in error


def test_commands_and_options_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry, "_registry", None)
    status, _, err = shell(capsys, "--without-plugin", "structsolve-learn:prune", "prune", "m")
    assert status == 2 and "prune is a command of structsolve-learn, which is switched off" in err
    status, out, _ = shell(capsys, "--without-plugin=prune", "--help")
    assert status == 0 and "prune" not in out and "decode" in out
    status, _, err = shell(capsys, "prune", "m")
    assert status == 2 and "switched off" not in err
    assert shell(capsys, "plugins", "--without-plugin", "prune")[0] == 0  # no plugin, but a command
    fit = ("fit", tmp_path / "x.svm", "--model", tmp_path / "m", "--n-hidden", 2)
    status, _, err = shell(capsys, *fit, "--without-plugin", "latent")
    assert status == 2 and "unrecognized arguments: --n-hidden" in err
    status, _, err = shell(capsys, *fit)
    assert status == 2 and "unrecognized" not in err
    status, _, err = shell(capsys, "plugins", "--without-plugin")
    assert status == 2 and "argument --without-plugin: expected one argument" in err


def test_a_command_of_one_word_needs_no_options():
    """The README's first command."""
    from structsolve.cli.main import _parsed

    for given in (["demo"], ["demo", "-v"], ["-v", "demo"]):
        assert _parsed(given).run.__name__ == "demo", given


def add_late(parser):
    """Return no function."""
    parser.add_argument("model")


COMMANDS = """
def leave(parser): raise SystemExit("imported")
def taken(parser):
    parser.add_argument("--run")
    return print
def odd_help(parser):
    parser.add_argument("--x", help="50% off")
    return print
def bent(parser):
    def run(args): raise SystemExit("no data today")
    return run
def broken(parser):
    def run(args): return {}["x"]
    return run
"""


@pytest.fixture
def outsider(monkeypatch):
    """Entry points of a package, beside ours: a module, and commands."""
    given = outside.entries
    module = ModuleType("mine")
    module.ABOUT, module.OWN, module.check = "mine", ("mine",), lambda *_: None
    module.make_model, module.add_late = lambda *_: None, add_late
    exec(COMMANDS, vars(module))
    monkeypatch.setitem(sys.modules, "mine", module)

    def entries(group):
        if group in (outside.FIT, outside.FORMATS, outside.SCORE):
            yield Plugin("mine", "their-lab", "1.0"), EntryPoint("mine", "mine", group)
        if group == outside.GROUP:
            for name in ("lost", "add_late", "leave", "bent", "taken", "odd_help", "broken"):
                yield Plugin(name, "their-lab", "1.0"), EntryPoint(name, f"mine:{name}", group)
        yield from given(group)

    monkeypatch.setattr(outside, "entries", entries)
    caches = (outside._commands, outside._modules)
    for cache in caches:
        cache.cache_clear()
    yield module
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("option", ["--alpha", "--window", "--other"])
def test_options_that_clash_leave_the_others(capsys, tmp_path, outsider, option):
    outsider.add_options = lambda group: group.add_argument(option)
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n2 1:-1\n")
    assert main(["fit", str(path), "--model", str(tmp_path / "m"), "--alpha", "0.1"]) == 0
    told = capsys.readouterr().err
    assert "plugin 'mine' (their-lab 1.0) was not loaded: " in told
    assert ("OWN has 'mine', which is no option" if option == "--other" else "conflicting") in told


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lost", "AttributeError"),
        ("add_late", "returned None, expected what"),
        ("leave", "SystemExit: imported"),
        ("taken", "--run: the shell has its own 'run'"),
        ("odd_help", "format"),
    ],
)
def test_commands_that_fail_say_why(capsys, outsider, name, reason):
    outsider.add_options = lambda group: group.add_argument("--mine")
    line = fails(capsys, name, "m.structsolve", "--more")
    assert f"plugin {name!r} (their-lab 1.0) was not loaded: " in line and reason in line


def test_commands_that_fail_leave_the_list_of_commands(capsys, outsider):
    status, out, _ = shell(capsys, "--help")
    assert status == 0 and "leave" in out and "Find the best labels" in out


def test_what_a_running_command_raises_is_told(capsys, outsider):
    assert fails(capsys, "bent") == "structsolve: error: no data today"
    line = fails(capsys, "broken")
    assert line.startswith("structsolve: error: their-lab 1.0 raised KeyError: 'x'")


@pytest.mark.parametrize("fault", ["exit", "help", "run"])
def test_options_that_end_the_shell_are_left_out(capsys, outsider, fault):
    def add(group):
        if fault == "exit":
            raise SystemExit(0)
        group.add_argument("--mine", help="50% off" if fault == "help" else "")
        if fault == "run":
            group.add_argument("--run")

    outsider.add_options = add
    status, out, err = shell(capsys, "fit", "--help")
    assert status == 0 and "--alpha" in out and "--mine" not in out
    assert "plugin 'mine' (their-lab 1.0) was not loaded: " in err


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("figures", {"half": 0.5}, "{'half': 0.5}, expected (a dict of entries, a list of lines)"),
        ("figures", ({}, "half"), "({}, 'half'), expected (a dict of entries, a list of lines)"),
        (
            "figures",
            ([], ["half"]),
            "([], ['half']), expected (a dict of entries, a list of lines)",
        ),
        ("report", [0.5], "[0.5], expected a dict, or None"),
    ],
)
def test_scores_that_answer_something_else_name_their_plugin(
    capsys, tmp_path, outsider, name, answer, told
):
    outsider.add_options = lambda group: group.add_argument("--mine")
    path, model = tmp_path / "a.svm", tmp_path / "m"
    path.write_text("1 1:1\n2 1:-1\n")
    assert shell(capsys, "fit", path, "--model", model)[0] == 0
    setattr(outsider, name, lambda *_: answer)
    line = fails(capsys, "score", model, path)
    assert f"plugin 'mine' (their-lab 1.0): {name}() of its scores returned {told}" in line
    setattr(outsider, name, lambda *_: ({"half": 0.5}, ["half a point"]))
    if name == "figures":
        status, out, _ = shell(capsys, "score", model, path)
        assert status == 0 and out.endswith("half a point\n")
