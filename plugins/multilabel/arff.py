# ARFF: Weka's tables, dense and sparse, with label sets (Mulan, MEKA) and hierarchies (Clus).
from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from structsolve.io._text import (
    PathLike,
    bad_line,
    no_examples,
    number_of,
    open_binary,
    reads_file,
    text_lines,
)
from structsolve.io.reader import Reader
from structsolve.io.select import choose, parse_rows, take
from structsolve.utils.params import parameters

_CLASS = re.compile(r"^(\s*@attribute\s+\S+\s+)hierarchical\s+(.*)$", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?\d+)")
# Parts of a data set that share a file of labels.
_PART = re.compile(r"[-_.](train|test|valid|dev)$", re.IGNORECASE)


@parameters
class ArffReader(Reader):
    """Reads ARFF files by liac-arff: dense or sparse rows, nominal attributes, missing values.

    Labels are the first of these that exists: ``target``; an attribute ``hierarchical`` (Clus),
    whose values ``a@b`` are label sets, closed under the declared hierarchy; the attributes named
    by the XML file beside the data (Mulan: ``x.xml`` with ``x-train.arff``); the first N attributes
    by ``-C N`` in the relation (MEKA; negative: the last); the last attribute.  Nominal features
    become one column of 0 and 1 for each value, or one column if the values are 0 and 1.  Missing
    values are NaN.

    Parameters
    ----------
    target : str, optional
        Name of the attribute of labels, several between commas, or the XML file that names them.
    where : str, optional
        ``NAME=VALUE`` or ``NAME!=VALUE``, of an attribute.
    rows : str or int, optional
        ``N`` or ``A:B``, of the examples that are left.
    hierarchy : dict, optional
        Children by node; :meth:`fit` finds it.
    labels : list of str, optional
        Names of the attributes of labels in training; :meth:`fit` finds them.
    feature_names : list of str, optional
        Names of the columns in training, or ``name=value``; :meth:`fit` finds them, and
        :meth:`read` puts those of other files in their order.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.arff"
    >>> _ = path.write_text(
    ...     "@relation toy\\n@attribute size numeric\\n@attribute kind {bird,cat}\\n"
    ...     "@data\\n1.5,cat\\n?,bird\\n"
    ... )
    >>> X, y = ArffReader().fit(str(path))  # doctest: +SKIP
    >>> X.tolist(), y.tolist()  # doctest: +SKIP
    ([[1.5], [nan]], ['cat', 'bird'])
    """

    endings = (".arff",)
    brings = ("hierarchy",)

    target: str | None = None
    where: str | None = None
    rows: str | int | None = None
    hierarchy: dict[str, list[str]] | None = None
    labels: list[str] | None = None
    feature_names: list[str] | None = None

    @classmethod
    def sniff(cls, path: str, head: bytes) -> bool:
        """Return whether the first line that is no comment declares a relation.

        See :meth:`Reader.sniff`. ``head``: how the file begins.
        """
        lines = (line.strip() for line in head.split(b"\n"))
        first = next((line for line in lines if line and not line.startswith(b"%")), b"")
        return first.lower().startswith(b"@relation")

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the hierarchy and the names of labels.

        See :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        ImportError
            Without liac-arff.
        """
        return _read(path, self, True, _parser())

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        ImportError
            Without liac-arff.
        """
        return _read(path, self, False, _parser())


def _parser() -> Any:
    """The package liac-arff."""
    try:
        import arff  # optional: an extra
    except ImportError as error:
        raise ImportError(
            "ARFF files need liac-arff: pip install liac-arff, or structsolve-learn[arff]"
        ) from error
    return arff


@reads_file
def _read(path: str, reader: ArffReader, fit: bool, arff: Any) -> tuple[Any, Any]:
    count = parse_rows(reader.rows).stop if reader.where is None else None
    relation, attributes, rows, tree = _decoded(path, count, arff)
    if not rows:
        raise no_examples(path, "rows behind @data")
    names = [name for name, _ in attributes]
    if fit or reader.labels is None:
        chosen = [tree[0]] if tree and reader.target is None else None
        reader.labels = chosen or _label_names(path, reader.target, relation, names)
        reader.hierarchy = tree[1] if tree else None
    elif not fit and reader.target is not None and not _is_xml(reader.target):
        reader.labels = _named_labels(path, reader.target.split(","), reader.labels)
    there = [name for name in reader.labels if name in names]
    if there != reader.labels and there:
        missing = next(name for name in reader.labels if name not in names)
        raise ValueError(f"{path}: found no attribute {missing!r} of labels; expected it")
    places = {name: j for j, name in enumerate(names)}
    X, columns_of = _features(path, attributes, rows, {places[name] for name in there})
    if fit:
        reader.feature_names = columns_of
    elif reader.feature_names not in (None, columns_of):
        X = _in_order(path, X, columns_of, reader.feature_names)
    if not there:
        y = None
    elif reader.hierarchy is not None and there == [tree[0] if tree else None]:
        given = [_cell(row, places[there[0]], attributes) for row in rows]
        y = _closed(path, given, reader.hierarchy)
    else:
        y = _labels(path, attributes, rows, [places[name] for name in there])
    columns = {}
    if reader.where is not None:
        name = reader.where.partition("=")[0].removesuffix("!").strip()
        if name in places:
            column = [_cell(row, places[name], attributes) for row in rows]
            columns[name] = np.array([str(cell) for cell in column])
    kept = choose(path, reader.where, reader.rows, len(rows), columns)
    return take(X, kept), None if y is None else take(y, kept)


def _decoded(path: PathLike, count: int | None, arff: Any) -> tuple[str, list[Any], list[Any], Any]:
    """The relation, attributes, rows (lists, or dicts where sparse), and the hierarchy."""
    tree: list[Any] = []
    is_sparse = _is_sparse(path)

    current = 0

    def lines() -> Iterator[str]:
        nonlocal current
        for number, line in text_lines(path):
            current = number
            match = None if tree else _CLASS.match(line)
            if match:
                name = match[1].split()[1].strip("'\"")
                tree.append((name, _children(path, number, match[2])))
                line = f"{match[1]}string"
            yield line

    kind = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
    try:
        decoded = arff.load(lines(), return_type=kind)
        rows = list(islice(decoded["data"], count))
    except (arff.ArffException, csv.Error) as error:
        text = re.sub(r",? (in|at) line -?\d+", "", str(error)).rstrip(".")
        if not any(line.strip() for _, line in text_lines(path)):
            raise no_examples(path, "ARFF") from None
        raise bad_line(path, current, f"no ARFF ({text})", "ARFF") from error
    return decoded["relation"], decoded["attributes"], rows, tree[0] if tree else None


def _is_sparse(path: PathLike) -> bool:
    """Whether the first row is in braces."""
    inside = False
    for _, line in text_lines(path):
        text = line.strip()
        if inside and text and not text.startswith("%"):
            return text.startswith("{")
        inside = inside or text.lower().startswith("@data")
    return False


def _children(path: PathLike, number: int, declared: str) -> dict[str, list[str]]:
    """Children by node, of paths ``1/2/3``, or of edges ``root/a,a/b`` in a graph."""
    words = [word.strip() for word in declared.split(",") if word.strip()]
    if not words:
        raise bad_line(path, number, "no classes", "hierarchical 1,1/2,...")
    children: dict[str, list[str]] = {}
    if any(word.startswith("root/") for word in words):  # graph edges
        for word in words:
            parent, slash, child = word.partition("/")
            if not slash:
                raise bad_line(path, number, repr(word), "parent/child")
            children.setdefault(child, [])
            if parent != "root":
                children.setdefault(parent, []).append(child)
        return children
    for word in words:  # a node is named by its path
        parts = word.split("/")
        for i in range(len(parts)):
            node, parent = "/".join(parts[: i + 1]), "/".join(parts[:i])
            if node not in children:
                children[node] = []
                if parent:
                    children[parent].append(node)
    return children


def _closed(path: PathLike, given: list[Any], children: dict[str, list[str]]) -> np.ndarray:
    """Indicators of label sets, closed under ancestors; a column for each node."""
    place = {node: j for j, node in enumerate(children)}
    parents: list[list[int]] = [[] for _ in place]
    for node, below in children.items():
        for child in below:
            parents[place[child]].append(place[node])
    y = np.zeros((len(given), len(place)), np.int8)
    for i, cell in enumerate(given):
        names = [name.strip() for name in str(cell).split("@")]
        unknown = [name for name in names if name not in place]
        if unknown:
            raise ValueError(
                f"{path}, example {i}: found the class {unknown[0]!r}; expected one of the "
                f"{len(place)} that the attribute declares"
            )
        stack = [place[name] for name in names]
        while stack:
            j = stack.pop()
            if not y[i, j]:
                y[i, j] = 1
                stack += parents[j]
    return y


def _label_names(path: str, target: str | None, relation: str, names: list[str]) -> list[str]:
    """Names of the attributes that hold labels."""
    if target is None:
        target = _xml_beside(path)
    if target is not None and _is_xml(target):
        try:
            with open_binary(target) as handle:
                root = ElementTree.parse(handle).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(
                f"{target}: found no XML ({error}); expected names of labels"
            ) from None
        named = {element.get("name") for element in root.iter() if element.tag.endswith("label")}
        wrong = sorted(str(name) for name in named - {*names})
        if wrong or not named:
            raise ValueError(
                f"{target}: found {f'the label {wrong[0]!r}' if wrong else 'no labels'}; expected "
                f"names of attributes of {path}"
            )
        return [name for name in names if name in named]
    if target is not None:
        chosen = target.split(",")
        for name in chosen:
            if name not in names:
                raise ValueError(f"{path}: found no attribute {name!r} (target)")
        return chosen
    meka = _MEKA.search(relation or "")
    if meka:
        number = int(meka[1])
        return names[:number] if number >= 0 else names[number:]
    return names[-1:]


def _is_xml(target: str) -> bool:
    return target.lower().removesuffix(".gz").endswith(".xml")


def _named_labels(path: str, chosen: list[str], trained: list[str]) -> list[str]:
    """The attribute that takes the place of that of training, or those of training."""
    if len(chosen) == len(trained) == 1:
        return chosen
    if sorted(chosen) != sorted(trained):
        raise ValueError(
            f"{path}: target: found the attributes {', '.join(chosen)}; expected "
            f"{', '.join(trained)}, as in training"
        )
    return trained


def _xml_beside(path: str) -> str | None:
    """The XML file of a Mulan data set, in the folder of its parts."""
    stem = re.sub(r"\.arff(\.gz)?$", "", path, flags=re.IGNORECASE)
    for one in (stem, _PART.sub("", stem)):
        for ending in (".xml", ".xml.gz"):
            if os.path.isfile(one + ending):
                return one + ending
    return None


def _cell(row: Any, column: int, attributes: list[Any]) -> Any:
    """A value; sparse rows omit 0 and the first nominal value."""
    if not isinstance(row, dict):
        return row[column]
    values = attributes[column][1]
    return row.get(column, values[0] if isinstance(values, list) else 0)


def _features(
    path: PathLike, attributes: list[Any], rows: list[Any], others: set[int]
) -> tuple[Any, list[str]]:
    """Columns of numbers, NaN if missing, and their names; a CSR matrix for sparse rows."""
    blocks = []
    called: list[str] = []
    starts: dict[int, tuple[int, list[str] | None]] = {}
    width = 0
    for j, (name, kind) in enumerate(attributes):
        if j in others:
            continue
        values = kind if isinstance(kind, list) else None
        if values is None and str(kind).upper() not in ("NUMERIC", "REAL", "INTEGER"):
            raise ValueError(
                f"{path}: the attribute {name!r} is {kind}; expected numbers or {{a,b,...}}"
            )
        plain = values is not None and {*values} <= {"0", "1"}
        if plain and kind[0] != "0" and isinstance(rows[0], dict):
            plain = False  # rows omit the first value, which has to be the 0 of a matrix
        starts[j] = (width, None if plain else values)
        called += [name] if plain or values is None else [f"{name}={value}" for value in values]
        width = len(called)
    if not starts:
        raise ValueError(f"{path}: found no features beside the labels; expected some")
    if isinstance(rows[0], dict):
        data: list[float] = []
        indices: list[int] = []
        indptr = [0]
        for row in rows:
            for j, value in sorted(row.items()):
                if j in starts:
                    start, values = starts[j]
                    size = len(values) if values and value is None else 1
                    start += values.index(value) if values and value is not None else 0
                    indices += range(start, start + size)
                    data += [np.nan if value is None else 1.0 if values else float(value)] * size
            indptr.append(len(data))
        X = sparse.csr_matrix((data, indices, indptr), shape=(len(rows), width))
        if any(values for _, values in starts.values()):
            return _with_first_values(X, rows, starts), called
        return X, called
    for j, (_, values) in starts.items():
        cells = [row[j] for row in rows]
        if values is None:
            blocks.append(np.array([np.nan if c is None else float(c) for c in cells])[:, None])
        else:
            known = [[np.nan if c is None else c == value for value in values] for c in cells]
            blocks.append(np.array(known, dtype=np.float64))
    return np.concatenate(blocks, axis=1), called


def _in_order(path: PathLike, X: Any, names: list[str], trained: list[str] | None) -> Any:
    """Columns in the order of training; 0 for nominal values that this file does not declare."""
    place = {name: j for j, name in enumerate(names)}
    declared = {name.rpartition("=")[0] for name in names}
    index = []
    for name in trained or ():
        attribute = name.rpartition("=")[0]
        if name not in place and (not attribute or attribute not in declared):
            raise ValueError(
                f"{path}: found no feature {name!r}; expected the attributes of training, and "
                "nominal ones with values where they had some"
            )
        index.append(place.get(name, len(names)))
    none = np.zeros((X.shape[0], 1))
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(none)], format="csr")[:, index]
    return np.hstack([X, none])[:, index]


def _with_first_values(X: Any, rows: list[Any], starts: dict[int, Any]) -> Any:
    """Sparse rows omit nominal attributes of the first value, whose indicator is 1."""
    X = X.tolil()
    for i, row in enumerate(rows):
        for j, (start, values) in starts.items():
            if values and j not in row:
                X[i, start] = 1.0
    return X.tocsr()


def _labels(
    path: PathLike, attributes: list[Any], rows: list[Any], places: list[int]
) -> np.ndarray:
    cells = [[_cell(row, j, attributes) for j in places] for row in rows]
    for i, row in enumerate(cells):
        if None in row:
            raise ValueError(f"{path}, example {i}: found a missing label; expected one")
    y = np.array(cells)
    if len(places) == 1:
        declared = attributes[places[0]][1]
        declared = declared if isinstance(declared, list) else []
        with contextlib.suppress(ValueError):  # words stay words, and 01 and 1 differ
            if len({*map(number_of, declared)}) == len(declared):
                y = np.array([[number_of(str(cell)) for cell in row] for row in cells])
        whole = y.dtype.kind == "f" and (y == np.rint(y)).all() and (np.abs(y) < 2**53).all()
        return (y.astype(np.int64) if whole else y)[:, 0]
    try:
        return y.astype(np.float64).astype(np.int64)
    except ValueError:
        raise ValueError(
            f"{path}: found labels that are no numbers in several attributes"
        ) from None
