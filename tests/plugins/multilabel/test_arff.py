"""Files of ARFF in the shell: dense and sparse rows, names, hierarchies, and wrong ones."""

import json

import numpy as np
import pytest
from checks import refused
from shell import works

from structsolve.io import read_examples

ARFF = """% a comment
@relation 'animals -C 2'
@attribute barks {0,1}
@attribute meows {0,1}
@attribute size numeric
@attribute coat {short,long}
@data
"""


def arff_file(tmp_path, text, name="toy-train.arff"):
    pytest.importorskip("arff", reason="liac-arff is not installed")
    from structsolve.plugins.multilabel.arff import ArffReader

    path = tmp_path / name
    path.write_text(text)
    return str(path), ArffReader


def test_arff_dense_and_sparse(tmp_path):
    path, ArffReader = arff_file(tmp_path, ARFF + "1,0,2.5,short\n0,1,?,long\n")
    X, y = ArffReader().fit(path)
    np.testing.assert_array_equal(X, [[2.5, 1, 0], [np.nan, 0, 1]])
    assert y.tolist() == [[1, 0], [0, 1]]  # the first two, as MEKA's relation says
    path, _ = arff_file(tmp_path, ARFF + "{0 1, 2 2.5}\n{1 1, 3 long}\n")
    X, y = ArffReader().fit(path)
    assert X.toarray().tolist() == [[2.5, 1, 0], [0, 0, 1]] and y.tolist() == [[1, 0], [0, 1]]
    # An XML file beside the data names the labels.
    (tmp_path / "toy.xml").write_text(
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="meows"/></labels>'
    )
    X, y = ArffReader(rows=1).fit(path)
    assert y.tolist() == [0] and X.toarray().tolist() == [[1, 2.5, 1, 0]]
    _, y = ArffReader(target="coat", where="barks=0").fit(path)
    assert y.tolist() == ["long"]


def test_arff_sparse_rows_with_missing_words(tmp_path):
    head = "@relation t\n@attribute a {x,y}\n@attribute b numeric\n@attribute c {p,q}\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "{0 ?, 1 ?}\n{0 y, 2 q}\n")
    X, y = ArffReader().fit(path)
    np.testing.assert_array_equal(X.toarray(), [[np.nan] * 3, [0, 1, 0]])
    assert y.tolist() == ["p", "q"]


def test_arff_sparse_rows_omit_the_first_value(tmp_path):
    head = "@relation x\n@attribute a {1,0}\n@attribute class {1_1,1_2}\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "{0 0}\n{1 1_2}\n")
    X, y = ArffReader().fit(path)
    assert X.toarray().tolist() == [[0, 1], [1, 0]] and y.tolist() == ["1_1", "1_2"]
    path, _ = arff_file(tmp_path, head + "0,1_1\n1,1_2\n")
    assert ArffReader().fit(path)[0].tolist() == [[0], [1]]


@pytest.mark.parametrize("dense", [True, False])
def test_arff_attributes_and_values_in_another_order(tmp_path, dense):
    def rows(*cells):
        return [",".join(row) if dense else "{" + ", ".join(
            f"{j} {cell}" for j, cell in enumerate(row)) + "}" for row in cells]  # fmt: skip

    def written(attributes, *cells):
        head = "".join(f"@attribute {one}\n" for one in attributes)
        return arff_file(tmp_path, "\n".join([f"@relation r\n{head}@data", *rows(*cells)]) + "\n")

    kind, size, label = "kind {bird,cat,dog}", "size numeric", "class {a,b}"
    path, ArffReader = written([kind, size, label], ("cat", "2", "a"), ("dog", "3", "b"))
    reader = ArffReader()
    reader.fit(path)
    turned = ["age numeric", "class {b,a}", size, "kind {fish,dog,cat}"]
    path, _ = written(
        turned, ("9", "b", "3", "dog"), ("8", "a", "2", "cat"), ("7", "a", "1", "fish")
    )
    X, y = reader.read(path)
    X = X if dense else X.toarray()
    assert X.tolist() == [[0, 0, 1, 3], [0, 1, 0, 2], [0, 0, 0, 1]] and y.tolist() == [
        "b",
        "a",
        "a",
    ]
    for wrong, told in (([kind, label], "size"), ([size, label, "kind numeric"], "kind=bird")):
        path, _ = written(wrong, *[["cat", "a"] if wrong[0] == kind else ["1", "a", "2"]])
        refused(f"found no feature '{told}'", reader.read, path)


def test_info_of_models_of_arff_has_names_of_attributes(tmp_path, capsys):
    head = "@relation r\n@attribute size numeric\n@attribute kind {bird,cat}\n"
    head += "@attribute big {0,1}\n@attribute class {a,b}\n@data\n"
    names = {"size", "kind=bird", "kind=cat", "big"}
    for rows in ("3,bird,1,a\n1,cat,0,b\n", "{0 3, 2 1}\n{0 1, 1 cat, 3 b}\n"):
        path, _ = arff_file(tmp_path, head + rows)
        works(capsys, "fit", path, "--model", tmp_path / "m")
        tables = json.loads(works(capsys, "info", tmp_path / "m", "--top", "0", "--json"))
        text = json.dumps(tables)
        assert all(json.dumps(name) in text for name in names)


def test_options_of_a_reader_that_have_a_name_of_their_own(tmp_path, capsys):
    """The default of --label-column replaced --option label_column, silently."""
    path = tmp_path / "a.conll"
    path.write_text("# a comment of six words here\n1 He PRON\n2 ran VERB\n")
    options = ("--option", "comment=#", "--option", "label_column=0")
    works(capsys, "fit", path, "--model", tmp_path / "m", *options)
    assert set(works(capsys, "predict", tmp_path / "m", path).split()) == {"1", "2"}
    works(capsys, "fit", path, "--model", tmp_path / "m", "--comment", "#")
    assert set(works(capsys, "predict", tmp_path / "m", path).split()) == {"PRON", "VERB"}


def test_labels_that_are_one_number_but_two_texts(tmp_path, capsys):
    """Codes 01 and 1 were merged; a model of such labels reads those of other files as texts."""
    path, model = tmp_path / "a.csv", tmp_path / "m"
    path.write_text("x,class\n5,01\n-5,1\n6,01\n-6,1\n")
    assert read_examples(path)[1].tolist() == ["01", "1", "01", "1"]
    works(capsys, "fit", path, "--model", model)
    path.write_text("x,class\n5,01\n7,01\n")
    assert works(capsys, "predict", model, path) == "01\n01\n"
    assert json.loads(works(capsys, "score", model, path, "--json"))["accuracy"] == 1
    assert read_examples(path)[1].tolist() == [1, 1]
    others = {"1 2 01": ["1", "2", "01"], "1.0 1 2": [1, 1, 2], "+1 -1": [1, -1]}
    for cells, labels in others.items():
        path.write_text("x,class\n" + "".join(f"0,{cell}\n" for cell in cells.split()))
        assert read_examples(path)[1].tolist() == labels
    path, ArffReader = arff_file(
        tmp_path, "@relation r\n@attribute x numeric\n@attribute class {01,1}\n@data\n1,01\n2,1\n"
    )
    assert ArffReader().fit(path)[1].tolist() == ["01", "1"]


def test_arff_of_large_numbers(tmp_path):
    head = "@relation x\n@attribute a numeric\n@attribute class numeric\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "0,1e300\n1,2\n")
    assert ArffReader().fit(path)[1].tolist() == [1e300, 2]


def test_arff_with_a_hierarchy(tmp_path):
    head = "@relation x\n@attribute a numeric\n@attribute class hierarchical 1,1/2,1/2/3,4\n@data\n"
    path, ArffReader = arff_file(tmp_path, head + "0,1/2/3@4\n1,1\n")
    reader = ArffReader()
    _, y = reader.fit(path)
    assert reader.hierarchy == {"1": ["1/2"], "1/2": ["1/2/3"], "1/2/3": [], "4": []}
    assert y.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    path, _ = arff_file(tmp_path, head.replace("1,1/2,1/2/3,4", "root/a,a/b,root/c,c/b") + "0,b\n")
    reader = ArffReader()
    _, y = reader.fit(path)
    assert reader.hierarchy == {"a": ["b"], "b": [], "c": ["b"]} and y.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    "text, message",
    [
        (ARFF, "found no examples"),
        (ARFF + "1,0,big,short\n", "line 8"),
        (ARFF + "1,0\n", "line 8: found no ARFF"),
        (ARFF + "1,0,2,short\n" + "1" * 140_000 + ",0,2,short\n", "line 9: found no ARFF"),
        ("@relation x\n@attribute s string\n@attribute y {0,1}\n@data\na,1\n", "'s' is STRING"),
        ("\n \n", "found no examples; expected ARFF"),
    ],
)
def test_wrong_arff(tmp_path, text, message):
    path, ArffReader = arff_file(tmp_path, text)
    with pytest.raises(ValueError, match=f"toy-train.arff.*{message}"):
        ArffReader().fit(path)
