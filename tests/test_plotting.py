# Pictures: they are written, leave no global state behind, and refuse nonsense.
import subprocess
import sys

import numpy as np
import pytest

from structsolve.plotting import plot_convergence, plot_sequences

pytest.importorskip("matplotlib")
RUN = [
    {"primal": 9.0, "dual": 0.5, "seconds": 0.1},
    {"primal": 3.0, "dual": 1.5, "seconds": 0.2},
    {"primal": 3.5, "dual": 2.5, "seconds": 0.1},
]
SGD = [{"primal": 5.0, "dual": None, "seconds": 0.1}, {"primal": 4.0, "seconds": float("nan")}]


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_files(tmp_path, ending, start):
    path = tmp_path / f"a.{ending}"
    plot_convergence({"bcfw": RUN, "sgd": SGD, "one pass": RUN[:1]}, path, tol=1e-2)
    assert path.read_bytes().startswith(start)


def test_lines_are_the_history():
    figure = plot_convergence({"bcfw": RUN, "sgd": SGD})
    objective, gaps = figure.axes
    primal, dual = objective.lines[:2]
    np.testing.assert_allclose(primal.get_xdata(), [0.1, 0.3, 0.4])
    np.testing.assert_allclose(primal.get_ydata(), [9, 3, 3.5])
    np.testing.assert_allclose(dual.get_ydata(), [0.5, 1.5, 2.5])
    np.testing.assert_allclose(gaps.lines[0].get_ydata(), [8.5 / 9, 1.5 / 3, 0.5 / 3])
    assert np.isnan(gaps.lines[1].get_ydata()).all()
    assert objective.get_ylim()[1] < 9
    passes = plot_convergence({"bcfw": RUN}, x="passes").axes[0]
    assert passes.lines[0].get_xdata().tolist() == [1, 2, 3]
    names = [text.get_text() for text in objective.get_legend().get_texts()]
    assert names == ["bcfw", "sgd", "primal (upper)", "dual (lower)"]


def test_estimates_are_faint_and_do_not_count():
    guess = {"primal": 1.0, "dual": 0.8, "gap": 0.2, "certified": False, "seconds": 0.1}
    objective, gaps = plot_convergence({"a": [RUN[0], guess, RUN[1]]}, x="passes").axes
    assert objective.lines[0].get_ydata().tolist() == [9, 3]
    assert objective.lines[2].get_alpha() < 0.5
    np.testing.assert_allclose(gaps.lines[0].get_ydata(), [8.5 / 9, 1.5 / 3])
    np.testing.assert_allclose(gaps.lines[1].get_ydata()[1], 0.2)


@pytest.mark.parametrize(
    ("histories", "options", "message"),
    [
        ({}, {}, "histories: found no passes"),
        ({"a": []}, {}, "histories: found no passes"),
        (RUN, {}, "expected a dict of name to model.history_"),
        ({"a": RUN}, {"x": "hours"}, "x: found 'hours'; expected 'seconds' or 'passes'"),
    ],
)
def test_faults(histories, options, message):
    with pytest.raises(ValueError, match=message):
        plot_convergence(histories, **options)


def test_histories_without_finite_values(tmp_path):
    nothing = [{"primal": None, "dual": None, "seconds": 0.1}]
    plot_convergence({"a": nothing}, tmp_path / "a.png")
    plot_convergence({"a": [{"primal": 0.0, "dual": 0.0}]}, tmp_path / "a.png", x="passes")


def test_sequences(tmp_path):
    images = [np.zeros((3, 8, 8)), np.ones((2, 8, 8))]
    truth = [[1, 2, 3], [4, 5]]
    figure = plot_sequences(images, truth, {"m": [[1, 2, 9], [4, 5]]}, tmp_path / "a.png")
    texts = [text for text in figure.axes[0].texts if text.get_bbox_patch()]
    assert [text.get_text() for text in texts] == ["9"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="found 2, 2, 1 sequences; expected the same number"):
        plot_sequences(images, truth, {"m": [[1, 2, 9]]})
    with pytest.raises(ValueError, match="at least one"):
        plot_sequences([], [], {})


def test_no_global_state_and_lazy_import():
    code = (
        "import sys, structsolve.plotting as p; assert 'matplotlib' not in sys.modules;"
        "import matplotlib; before = matplotlib.rcParams.copy();"
        "p.plot_convergence({'a': [{'primal': 2.0, 'dual': 1.0, 'seconds': 1.0}]});"
        "assert 'matplotlib.pyplot' not in sys.modules; assert before == matplotlib.rcParams.copy()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'structsolve-learn\[plot\]'"):
        plot_convergence({"a": RUN})
