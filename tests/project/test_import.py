"""Importing structsolve is fast: heavy packages are loaded on first use."""

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from programs import Programs, in_fork

import structsolve
from structsolve import registry

HEAVY = set(
    ["sklearn", "scipy", "pandas", "matplotlib", "cvxpy", "highspy", "networkx", "joblib", "torch"]
)


MODULES = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"


def loaded_after(code, tmp_path):
    program = f"{code}\n{MODULES}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize(
    "code",
    [
        "import structsolve",
        "import structsolve; structsolve.__version__, dir(structsolve)",
        "from structsolve import Named, hookimpl",
        "from structsolve.cli.main import make_parser; make_parser().format_help()",
    ],
)
def test_nothing_heavy_is_imported(code, tmp_path):
    assert not loaded_after(code, tmp_path) & HEAVY


def test_a_name_is_listed_once_before_and_after_its_use():
    assert structsolve.StructuredSVM is not None
    listed = dir(structsolve)
    assert "StructuredSVM" in listed and listed == sorted(structsolve.__all__)  # and no helper's


def test_training_imports_neither_plots_nor_modelling_languages(tmp_path):
    code = (
        "from structsolve import StructuredSVM\n"
        "StructuredSVM('chain').fit([[[0.0], [1.0]]], [[0, 1]]).predict([[[1.0]]])"
    )
    heavy = {"matplotlib", "cvxpy", "highspy", "pandas", "torch"}
    # scikit-learn 1.9 imports pandas itself where it is installed.
    programs = Programs(sys.executable, tmp_path)  # it is imported there
    before, after = ({*json.loads(programs.run(f"{c}\n{MODULES}"))} for c in ("", code))
    assert "sklearn" in before and not heavy & (after - before)


def test_a_source_folder_that_was_not_built_says_so(tmp_path):
    import structsolve

    source = Path(structsolve.__file__).parent
    shutil.copytree(
        source, tmp_path / "structsolve", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c")
    )
    program = "from structsolve import StructuredSVM"
    _, _, error = in_fork(program, folder=tmp_path)
    assert "is a source folder that was not built" in error
    assert "pip install -e" in error


def test_public_names_can_be_imported():
    import structsolve

    for name in structsolve.__all__:
        assert getattr(structsolve, name) is not None
    classes = registry.default().names("estimators")  # of other packages, too
    shipped = {n for n in classes if getattr(structsolve, n).__module__.startswith("structsolve.")}
    assert "HiddenMarkovModel" in shipped and shipped <= {*structsolve.__all__}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        structsolve.nonsense  # noqa: B018


def test_one_version():
    citation = Path(__file__).resolve().parents[2] / "CITATION.cff"
    if not citation.exists():
        pytest.skip("not in a checkout")
    assert metadata.version("structsolve-learn") == structsolve.__version__
    assert f"\nversion: {structsolve.__version__}\n" in citation.read_text(encoding="utf-8")
