# Hierarchies and networks from files: JSON, GML, GraphML, or lines of names.
from __future__ import annotations

import json
import os
from typing import Any

from structsolve.io._text import PathLike, bad_line, number_of, reads_file, text_lines

ENDINGS = (".json", ".gml", ".graphml")


@reads_file
def read_hierarchy(path: PathLike) -> dict[Any, list[Any]]:
    """Read a hierarchy of labels.

    A file that ends in ``.json`` holds ``{"node": ["child", ...]}``, or pairs ``["node", "child"]``
    in a list; ``.gml`` and ``.graphml`` a directed graph of networkx, whose edges lead to children.
    Any other file has a line for each edge: parent and child, separated by a tab or blanks, or
    several children separated by tabs; a single name is a node without edges, and text after ``#``
    is skipped.  If all names are integers, they become numbers.

    Parameters
    ----------
    path : path-like
        Lines and JSON may be gzip files.

    Returns
    -------
    dict
        Children by node, in the order of the file.

    Raises
    ------
    ValueError
        For malformed files; it names the line or the edge.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "animals.txt"
    >>> _ = path.write_text("bird owl\\nbird duck\\ncat   # no bird\\n")
    >>> read_hierarchy(path)
    {'bird': ['owl', 'duck'], 'cat': [], 'owl': [], 'duck': []}
    """
    ending = _ending(path)
    if ending == ".json":
        children = _of_json(path)
    elif ending:
        graph = _of_networkx(path, ending)
        children = {str(v): [str(w) for w in graph.successors(v)] for v in graph}
    else:
        children = _of_lines(path)
    for below in list(children.values()):
        for child in below:
            children.setdefault(child, [])
    if not children:
        raise ValueError(f"{path}: found no nodes; expected a line 'parent child' for each edge")
    try:
        numbers = {name: number_of(name, int) for name in children}
    except ValueError:
        return children
    if len(set(numbers.values())) < len(numbers):  # "1" and "01"
        return children
    return {numbers[v]: [numbers[w] for w in below] for v, below in children.items()}


@reads_file
def read_network(path: PathLike) -> Any:
    """Read a network of flows as a networkx.DiGraph.

    A file that ends in ``.json`` holds ``{"demand": {"s": -1, "t": 1}, "arcs": [["s", "t", 2]]}``,
    in which capacities may be missing; ``.gml`` and ``.graphml`` a directed graph with
    node attributes ``demand`` and arc attributes ``capacity``.

    Parameters
    ----------
    path : path-like
        Its ending determines the format.

    Returns
    -------
    networkx.DiGraph
        Nodes with ``demand``, arcs with ``capacity``, if the file has them.

    Raises
    ------
    ValueError
        For other endings and malformed files; it names the arc.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "network.json"
    >>> _ = path.write_text('{"demand": {"s": -1, "t": 1}, "arcs": [["s", "t"]]}')
    >>> read_network(path).nodes(data="demand")
    NodeDataView({'s': -1, 't': 1}, data='demand')
    """
    ending = _ending(path)
    if not ending:
        raise ValueError(f"{path}: found no known ending; expected one of {', '.join(ENDINGS)}")
    if ending != ".json":
        return _of_networkx(path, ending)
    import networkx as nx  # heavy

    given = _json(path)
    if not isinstance(given, dict) or not isinstance(given.get("arcs"), list):
        raise ValueError(
            f"{path}: found no list 'arcs'; expected "
            '{"demand": {node: number}, "arcs": [[from, to], [from, to, capacity]]}'
        )
    graph = nx.DiGraph()
    demand = given.get("demand", {})
    if not isinstance(demand, dict):
        raise ValueError(f"{path}: demand is {demand!r}; expected numbers by the names of nodes")
    for node, value in demand.items():
        graph.add_node(node, demand=value)
    for number, arc in enumerate(given["arcs"]):
        if not isinstance(arc, list) or len(arc) not in (2, 3):
            raise ValueError(
                f"{path}, arc {number}: found {arc!r}; expected [from, to] or [from, to, capacity]"
            )
        ends = [_name(end, path) for end in arc[:2]]
        if graph.has_edge(*ends):
            raise ValueError(f"{path}, arc {number}: found {arc!r} again; expected it once")
        graph.add_edge(*ends, **({"capacity": arc[2]} if len(arc) == 3 else {}))
    return graph


def _ending(path: PathLike) -> str:
    name = os.fspath(path).lower()
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def _json(path: PathLike) -> Any:
    text = "\n".join(line for _, line in text_lines(path))

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{path}: found the name {twice!r} twice; expected it once")
        return content

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise bad_line(path, error.lineno, f"no JSON ({error.msg})", "JSON") from error


def _name(value: Any, path: PathLike) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"{path}: found the node {value!r}; expected a name or a whole number")
    return str(value)


def _of_json(path: PathLike) -> dict[str, list[str]]:
    given = _json(path)
    if isinstance(given, dict):
        for node, below in given.items():
            if not isinstance(below, list):
                raise ValueError(
                    f"{path}: found {below!r} below {node!r}; expected a list of children"
                )
        return {node: [_name(child, path) for child in below] for node, below in given.items()}
    if not isinstance(given, list):
        raise ValueError(f"{path}: found {type(given).__name__}; expected children by node")
    children: dict[str, list[str]] = {}
    for number, pair in enumerate(given):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{path}, edge {number}: found {pair!r}; expected [parent, child]")
        children.setdefault(_name(pair[0], path), []).append(_name(pair[1], path))
    return children


def _of_networkx(path: PathLike, ending: str) -> Any:
    import networkx as nx  # heavy

    try:
        graph = nx.read_gml(path) if ending == ".gml" else nx.read_graphml(path)
    except OSError:
        raise
    except Exception as error:  # its parsers raise any exception
        raise ValueError(f"{path}: found no {ending[1:]} ({error}); expected a graph") from error
    if not graph.is_directed() or graph.is_multigraph():
        raise ValueError(f"{path}: found {type(graph).__name__}; expected a directed graph")
    return graph


def _of_lines(path: PathLike) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for number, line in text_lines(path):
        text = line.split("#", 1)[0].strip()
        names = [name.strip() for name in text.split("\t")] if "\t" in text else text.split()
        if not text:
            continue
        if not all(names) or (len(names) > 2 and "\t" not in text):
            raise bad_line(path, number, f"{len(names)} names", "a parent and a child, or one node")
        children.setdefault(names[0], []).extend(names[1:])
    return children
