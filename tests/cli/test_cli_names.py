# Names of columns and labels of files decide which they are, not their places.
import json

import numpy as np
import pytest
from shell import fails, works

import structsolve
from structsolve.cli.main import main
from structsolve.plugins.dag import hierarchical_scores

FEATURES, LABELS = "abcd", "uvw"


def write_table(path, features, labels):
    """Write the same rows with columns in some order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = (X @ rng.normal(size=(4, 3)) > 0).astype(int)
    X, Y = X[:, [FEATURES.index(name) for name in features]], Y[:, list(map(LABELS.index, labels))]
    if path.suffix == ".npz":
        np.savez(path, X=X, Y=Y, label_names=[*labels])
        return X, Y
    rows = [",".join(map(str, (*x, *y))) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    if path.suffix == ".csv":
        head = [",".join((*features, *labels))]
    else:
        declared = [f"@attribute {name} numeric" for name in (*features, *labels)]
        head = ["@relation x", *declared, "@data"]
    path.write_text("\n".join([*head, *rows]) + "\n")
    return X, Y


def accuracy(capsys, *argv):
    return json.loads(works(capsys, "score", *argv, "--json"))["accuracy"]


def test_columns_of_labels_in_another_order_are_refused(tmp_path, capsys):
    """They were taken by place, silently."""
    model, train, other = tmp_path / "m", tmp_path / "train.csv", tmp_path / "other.csv"
    write_table(train, FEATURES, LABELS)
    write_table(other, FEATURES[::-1], LABELS[::-1])
    fit = "fit", train, "--structure", "multilabel", "--target", "u,v,w"
    works(capsys, *fit, "--model", model)
    expected = accuracy(capsys, model, train)
    assert accuracy(capsys, model, other, "--target", "u,v,w") == expected > 0.9
    for target, given in (("w,v,u", "w, v, u"), ("a,v,u", "a, v, u"), ("6,5,4", "w, v, u")):
        told = f"target: found the columns {given}; expected u, v, w, as in training"
        assert told in fails(capsys, "score", model, train, "--target", target)


@pytest.mark.pandas
@pytest.mark.parametrize("ending", ["csv", "arff", "npz"])
def test_names_that_models_from_python_have(tmp_path, capsys, ending):
    """They were compared with nothing: columns and labels were those at their places."""
    pd = pytest.importorskip("pandas")
    if ending == "arff":
        pytest.importorskip("arff")
    train, other, model = (tmp_path / name for name in (f"a.{ending}", f"b.{ending}", "m"))
    X, Y = write_table(train, FEATURES, LABELS)
    frames = pd.DataFrame(X, columns=[*FEATURES]), pd.DataFrame(Y, columns=[*LABELS])
    structsolve.StructuredSVM("multilabel").fit(*frames).save(model)
    write_table(other, FEATURES if ending == "npz" else FEATURES[::-1], LABELS[::-1])
    targets = () if ending == "npz" else ("--target", "u,v,w")
    expected = accuracy(capsys, model, train, *targets)
    if ending == "npz":
        told = "label_names are not those of training, in order: number 0 is 'w', expected 'u'"
        assert told in fails(capsys, "score", model, other)
    else:
        assert accuracy(capsys, model, other, *targets) == expected > 0.9


def test_label_names_of_archives(tmp_path, capsys):
    train, other, model = (tmp_path / name for name in ("train.npz", "other.npz", "m"))
    write_table(train, FEATURES, LABELS)
    write_table(other, FEATURES, LABELS[::-1])
    works(capsys, "fit", train, "--structure", "multilabel", "--model", model)
    assert accuracy(capsys, model, train) > 0.9
    told = "other.npz: label_names are not those of training, in order: number 0 is 'w'"
    assert told in fails(capsys, "score", model, other)


def test_attributes_that_are_not_those_of_training(tmp_path, capsys):
    """The option was ignored, silently."""
    pytest.importorskip("arff")
    train, model, one = tmp_path / "train.arff", tmp_path / "m", tmp_path / "one"
    write_table(train, FEATURES, LABELS)
    works(capsys, "fit", train, "--structure", "multilabel", "--target", "u,v", "--model", model)
    told = "target: found the attributes u, w; expected u, v, as in training"
    assert told in fails(capsys, "score", model, train, "--target", "u,w")
    assert accuracy(capsys, model, train, "--target", "v,u") > 0.9
    fit = "fit", train, "--structure", "multiclass"
    works(capsys, *fit, "--target", "u", "--model", one)
    assert "found no feature 'v'" in fails(capsys, "score", one, train, "--target", "v")


@pytest.mark.pandas
def test_tables_of_levels(tmp_path, capsys):
    """An empty cell was refused, scores compared letters, and columns that fit had a warning."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    paths = np.array([["a", "b"], ["a", ""], ["c", "d"]], dtype=object)[rng.integers(3, size=40)]
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["v", "w"])
    Y = pd.DataFrame(paths, columns=["first", "second"])
    model, table = tmp_path / "m", tmp_path / "a.csv"
    pd.concat([X[["w"]], Y, X[["v"]]], axis=1).to_csv(table, index=False)
    fitted = structsolve.HierarchicalSVM(alpha=0.01).fit(X, Y)
    fitted.save(model)
    target = "--target", "first,second"
    assert main([*map(str, ("predict", model, table, *target))]) == 0
    told = capsys.readouterr()
    lines = ["\t".join(path) for path in fitted.predict(X).to_numpy().tolist()]
    assert told.out.split("\n") == [*lines, ""] and not told.err
    report = json.loads(works(capsys, "score", model, table, *target, "--json"))
    expected = hierarchical_scores(Y, fitted.predict(X))
    assert {name: report[name] for name in expected} == json.loads(json.dumps(expected))
    assert report["right_paths"] == fitted.score(X, Y, metric="accuracy")
    told = fails(capsys, "score", model, table, "--target", "second,first")
    assert "found the columns second, first; expected first, second, as in training" in told
    structsolve.HierarchicalSVM(alpha=0.01).fit(X, paths).save(model)  # without names of levels
    assert json.loads(works(capsys, "score", model, table, *target, "--json")) == report
