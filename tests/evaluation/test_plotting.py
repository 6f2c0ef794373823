# Pictures: they are written, leave no global state behind, and refuse nonsense.
import sys

import numpy as np
import pytest
from checks import refused
from programs import in_fork

from structsolve.evaluation.plotting import (
    plot_convergence,
    plot_label_plane,
    plot_sequences,
    upper_hull,
)

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
    one, other = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    plot_convergence({"bcfw": RUN, "sgd": SGD, "one pass": RUN[:1]}, one, tol=1e-2)
    plot_label_plane(POINTS, PATH, product, file=other)
    assert one.read_bytes().startswith(start) and other.read_bytes().startswith(start)


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
    assert objective.get_title(loc="right") == "first passes lie above, up to 9"
    passes = plot_convergence({"bcfw": RUN}, x="passes").axes[0]
    assert passes.lines[0].get_xdata().tolist() == [1, 2, 3]
    names = [text.get_text() for text in objective.get_legend().get_texts()]
    assert names == ["bcfw", "sgd", "primal (upper)", "dual (lower)"]


def test_estimates_are_faint_and_do_not_count():
    guess = {"primal": 1.0, "dual": 0.8, "gap": 0.2, "certified": False, "seconds": 0.1}
    objective, gaps = plot_convergence({"a": [RUN[0], guess, RUN[1]]}, x="passes").axes
    assert objective.lines[0].get_ydata().tolist() == [9, 3]
    assert objective.lines[2].get_alpha() < 0.5
    legend = objective.get_legend()
    alphas = {t.get_text(): h.get_alpha() for t, h in zip(legend.get_texts(), legend.get_lines())}
    assert alphas["estimates, not proved"] < 0.5
    np.testing.assert_allclose(gaps.lines[0].get_ydata(), [8.5 / 9, 1.5 / 3])
    np.testing.assert_allclose(gaps.lines[1].get_ydata()[1], 0.2)


@pytest.mark.parametrize(
    ("histories", "options", "message"),
    [
        ({}, {}, "histories: found no passes"),
        ({"a": []}, {}, "histories: found no passes"),
        (RUN, {}, "expected a dict of name to model.history_"),
        ({"a": RUN}, {"x": "hours"}, r"x is 'hours', expected one of \['seconds', 'passes'\]"),
    ],
)
def test_faults(histories, options, message):
    refused(message, plot_convergence, histories, **options)


def test_histories_without_finite_values(tmp_path):
    nothing = [{"primal": None, "dual": None, "seconds": 0.1}]
    plot_convergence({"a": nothing}, tmp_path / "a.png")
    plot_convergence({"a": [{"primal": 0.0, "dual": 0.0}]}, tmp_path / "a.png", x="passes")


def test_models_stand_for_their_histories():
    class Model:
        def __init__(self, solver, history):
            self.solver, self.history_ = solver, history

    class Solver:
        name = "bcfw"

    def names(runs):
        legend = plot_convergence(runs, x="passes").axes[0].get_legend()
        return [text.get_text() for text in legend.get_texts()][:-2]

    models = [Model("bcfw", RUN), Model("sgd", SGD), Model(Solver(), RUN[:1])]
    assert names(models) == ["bcfw", "sgd", "bcfw #2"]
    assert names({"one": models[0], "two": RUN}) == ["one", "two"]
    refused("or a list of fitted models", plot_convergence, [*models, Model("none", [])])


POINTS = np.array([[1.0, 0], [3, 1], [2, 2], [0, 1], [-1, 3], [2.9, 1]])
PATH = [
    {"lam": 1.0, "h": 2.0, "g": 2.0, "value": 4.0},
    {"lam": 3.0, "h": -1.0, "g": 3.0, "value": -3.0},
    {"lam": 1.5, "h": 2.0, "g": 2.0, "value": 4.0},
]


def product(h, g):
    return h * g


class TestLabelPlane:
    def texts(self, figure):
        return [text.get_text() for text in figure.axes[0].texts]

    def names(self, figure):
        return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]

    def test_points_hull_path_and_best(self):
        figure = plot_label_plane(POINTS, PATH)
        axes = figure.axes[0]
        assert self.names(figure) == ["labels", "upper hull", "asked", "best"]
        np.testing.assert_array_equal(axes.collections[0].get_offsets(), POINTS)
        hull, path = axes.lines
        assert hull.get_xydata().tolist() == [[1, 0], [3, 1], [2, 2], [-1, 3]]
        assert path.get_xydata().tolist() == [[2, 2], [-1, 3], [2, 2]]
        assert self.texts(figure) == ["1, 3", "2"]
        assert axes.collections[-1].get_offsets().tolist() == [[2, 2]]
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        assert left < -1 and right > 3 and bottom < 0 and top > 3

    def test_only_a_path_or_only_points(self):
        figure = plot_label_plane(path=[{"h": 1.0, "g": 1.0}, {"h": 2, "g": 0.0}], psi=product)
        assert self.names(figure) == ["asked", "best"]
        assert figure.axes[0].collections[-1].get_offsets().tolist() == [[1, 1]]
        assert self.names(plot_label_plane(POINTS)) == ["labels", "upper hull"]
        assert self.names(plot_label_plane(path=[{"h": 1.0, "g": 1.0}])) == ["asked"]
        one = plot_label_plane([[1.0, 0.0]], psi=lambda h, g: 0 * h)
        assert self.names(one) == ["labels", "upper hull"]

    def test_given_axes_and_many_calls(self):
        from matplotlib.figure import Figure

        figure = Figure()
        left, right = figure.subplots(1, 2)
        with np.errstate(all="raise"):
            assert plot_label_plane(POINTS, 9 * PATH[:1], np.hypot, ax=right) is figure
        assert not left.has_data() and right.has_data()
        assert "1, 2, ..., 9" in [text.get_text() for text in right.texts]

    def test_psi_that_is_nowhere_finite(self):
        with np.errstate(invalid="ignore"):
            figure = plot_label_plane(POINTS, PATH, lambda h, g: np.log(-1 - h**2 - g**2))
        assert "best" in self.names(figure)

    @pytest.mark.parametrize(
        ("points", "path", "message"),
        [
            (None, [], "neither points nor a path"),
            ([], [], r"points: found an array of shape \(0,\)"),
            ([1.0, 2.0], [], r"shape \(2,\), expected finite numbers of shape \(n_labels, 2\)"),
            ([[1.0, np.nan]], [], "expected finite numbers"),
            (POINTS, [{"h": 1.0}], "path: found KeyError 'g'; expected a list of dicts"),
            (POINTS, [3.0], "path: found TypeError"),
            (POINTS, [{"h": 1.0, "g": np.inf}], "path: found NaN or infinity"),
        ],
    )
    def test_faults(self, points, path, message):
        refused(message, plot_label_plane, points, path)

    def test_hull_is_that_of_the_reference(self):
        from reference.searches import upper_hull as reference

        rng = np.random.default_rng(0)
        for _ in range(200):
            points = rng.integers(0, 5, (rng.integers(1, 12), 2)).astype(float)
            rows = reference(points[:, 0], points[:, 1])
            np.testing.assert_array_equal(upper_hull(points), points[rows])


def test_sequences(tmp_path):
    images = [np.zeros((3, 8, 8)), np.ones((2, 8, 8))]
    truth = [[1, 2, 3], [4, 5]]
    figure = plot_sequences(images, truth, {"m": [[1, 2, 9], [4, 5]]}, tmp_path / "a.png")
    texts = [text for text in figure.axes[0].texts if text.get_bbox_patch()]
    assert [text.get_text() for text in texts] == ["9"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="found 2, 2, 1 sequences; expected the same number"):
        plot_sequences(images, truth, {"m": [[1, 2, 9]]})
    refused("at least one", plot_sequences, [], [], {})


def test_no_global_state_and_lazy_import():
    code = (
        "import sys, structsolve.evaluation.plotting as p; assert 'matplotlib' not in sys.modules;"
        "import matplotlib; before = matplotlib.rcParams.copy();"
        "p.plot_convergence({'a': [{'primal': 2.0, 'dual': 1.0, 'seconds': 1.0}]});"
        "assert 'matplotlib.pyplot' not in sys.modules; assert before == matplotlib.rcParams.copy()"
    )
    status, _, error = in_fork(code)
    assert status == 0, error


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'structsolve-learn\[plot\]'"):
        plot_convergence({"a": RUN})
