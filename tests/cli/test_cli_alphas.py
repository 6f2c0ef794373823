"""Alphas chosen by cross-validation in the shell, and options that it refuses before it reads."""

import re

import numpy as np
import pytest
from data import flat
from sklearn.datasets import dump_svmlight_file

import structsolve
from structsolve import ExtremeSVM, StructuredSVM
from structsolve.cli.main import main


@pytest.mark.parametrize(
    ("given", "scored"),
    [(["path"], []), (["0.1", "0.01"], []), (["0.1", "0.01"], ["--scoring", "f1_macro"])],
)
def test_the_shell(given, scored, tmp_path, capsys):
    X, y = flat(40)
    data, model = tmp_path / "train.svm", tmp_path / "model"
    dump_svmlight_file(X, np.array(list(map(ord, y))), str(data), zero_based=False)
    options = ["--cv", "2", "--tol", "0.1", "--max-iter", "10", "--scale-features", *scored]
    assert main(["fit", str(data), "--model", str(model), "--alphas", *given, *options]) == 0
    loaded = structsolve.load(model)
    assert type(loaded) is StructuredSVM and loaded.scale_features is True
    assert loaded.alpha in (0.1, 0.01) or given == ["path"]
    told = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in told if line.startswith("alpha ")]
    chosen = next(line for line in told if line.startswith("chosen "))
    scoring = scored[1] if scored else "1 - mean loss (hamming)"
    assert f"alpha {loaded.alpha:.4g} of {len(rows)} tried, by {scoring}: " in chosen
    assert all(row[2] == "folds" and len(row) == 7 and row[5] == "mean" for row in rows)
    means = {row[1]: float(row[6]) for row in rows}
    assert means[f"{loaded.alpha:.4g}"] == max(means.values())


def test_folds_that_were_spared_are_told(capsys, tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 30)), rng.integers(3, size=120)
    X[np.arange(120), y] += 2.0
    data, model = tmp_path / "rows.svm", tmp_path / "m.ssm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    assert main(["fit", str(data), "--model", str(model), "--alphas", "path", "-v"]) == 0
    told, log = capsys.readouterr()
    rows = [line for line in told.splitlines() if line.startswith("alpha ")]
    behind = [line for line in rows if line.endswith("  behind")]
    assert 0 < len(behind) < len(rows) and "nan" not in told
    assert all(len(re.findall(r"\d\.\d{4}", line.partition("folds")[2])) == 3 for line in behind)
    steps = [int(number) for number in re.findall(r"alpha path pass (\d+)/15", log)]
    assert steps and max(steps) <= len(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alphas", "0.1", "--validation", "other.svm"], "--alphas and --validation"),
        (["--alphas", "0.1", "--validation-split", "test"], "--alphas and --validation"),
        (["--alphas", "0.1", "--scoring", "micro-f2"], "did you mean 'micro-f1'"),
        (["--scoring", "micro-f1"], "--scoring chooses among --alphas"),
        (["--alphas", "0.1", "--cv", "1"], "cv is 1, expected"),
        (["--alphas", "0.1", "-1"], "alphas is"),
        (["--alphas", "auto"], "--alphas: found 'auto', expected a number or path"),
        (["--estimator", "risk", "--alphas", "0.1", "--scoring", "micro-f1"], "risk has none"),
        (["--estimator", "risk", "--validation", "other.svm"], "trains without"),
        (["--validation-split", "test"], "--validation-split: svmlight data have no named parts"),
        (["--solver", "lbfgs"], "needs a smooth surrogate, and 'margin' is not smooth"),
        (["--surrogate", "probloss"], "which 'probloss' is not"),
        (["--kernel", "rbf", "--solver", "sgd"], "which a kernel model does not have"),
        (["--kernel", "rbf", "--scale-features"], "no weights to fold factors into"),
        (["--cache-size", "10"], "--cache-size is for kernels"),
        (["--oracle", "cvxpy:NOPE"], "cvxpy"),
        (["--random-state", "-1"], "random_state is -1"),
        (["--window", "3"], "--window is for conll data; found svmlight"),
        (["--window", "2"], "--window is for conll data; found svmlight"),  # the default
        (["--estimator", "ExtremeSVM", "--kernel-param", "gamma=1"], "has no such parameter"),
        (["--estimator", "ExtremeSVM", "--cache-size", "200"], "--cache-size: --estimator Extreme"),
        (["--estimator", "ExtremeSVM", "--no-intercept"], "--no-intercept: --estimator ExtremeSVM"),
        (["--format", "conllu", "--option", "structure=chain"], "give --structure NAME"),
        (["--structure", "dependency", "--option", "structure=chain"], "--structure and --option"),
        (
            ["--format", "conll", "--label-column", "-1", "--option", "label_column=0"],
            "--label-column and --option label_column: expected one of them",
        ),
        (["--rows", "9", "--option", "rows=8"], "--rows and --option rows: expected one of them"),
        (["--rows", "9", "--validation", "other.svm"], "--rows selects examples of the data, not"),
        (["--option", "rows=9", "--validation", "other.svm"], "--rows selects examples"),
        (["--format", "npz", "--where", "f=0", "--validation-split", "a"], "--where selects exa"),
        (["--estimator", "StructuredSVM:structure=chain"], "give --structure NAME"),
        (
            ["--estimator", "StructuredSVM:alpha=1", "--alpha", "1"],
            "--alpha and --estimator Struct",
        ),
        (
            ["--estimator", "StructuredSVM:max_iter=3", "--max-iter", "100"],
            "--max-iter and --estimator StructuredSVM:max_iter=3: expected one of them",
        ),
        (
            ["--estimator", "StructuredSVM:fit_intercept=true", "--no-intercept"],
            "--no-intercept and --estimator StructuredSVM:fit_intercept=true: expected one of",
        ),
        (["--comment", "#"], "--comment is for conll data"),
        (["--label-column", "1"], "--label-column is for conll data"),
        (["--format", "conll", "--zero-based"], "--zero-based is for svmlight data; found conll"),
        (["--format", "conll", "--missing", "mean"], "--missing is for data with numbers"),
        (["--history", "same.csv", "--checkpoint", "same.csv"], "found the file of --history"),
    ],
)
def test_the_shell_refuses_before_it_reads(options, message, tmp_path, capsys):
    # There are no such files: the errors concern the options.
    data, model = str(tmp_path / "none.svm"), str(tmp_path / "model")
    assert main(["fit", data, "--model", model, *options]) != 0
    assert message in capsys.readouterr().err


def test_options_at_the_defaults_of_the_shell_hold_for_estimators_with_others(tmp_path):
    data, model = tmp_path / "a.svm", tmp_path / "m"
    data.write_text("0 1:1\n1 2:1\n")
    fit = ("fit", data, "--model", model, "--estimator", "ExtremeSVM")
    own = ExtremeSVM().get_params()
    for options in ({}, {"max_iter": 100}, {"surrogate": "margin"}):
        flags = [f"--{name}={value}".replace("_", "-") for name, value in options.items()]
        assert main([*map(str, fit), *flags]) == 0
        params = structsolve.load(model).get_params()
        assert {name: params[name] for name in ("max_iter", "surrogate")} == {
            "max_iter": own["max_iter"], "surrogate": own["surrogate"], **options
        }  # fmt: skip
