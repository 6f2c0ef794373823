"""Parameters and structures as JSON-able values and arrays, for files without pickle."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Container, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import registry
from ..lp.base import Backend, of_a_place
from ..potentials.mercer import Kernel
from ..solvers import LinearConstraint, SuperModular, WeightBounds
from ..utils.arrays import part_of
from ..utils.params import Params, check_types
from ..utils.suggest import a_type

_KINDS = ("structures", "surrogates", "solvers", "losses", "lp_backends", "rival_indexes")
#: Kinds of objects that parameters name.
KIND_OF = {
    "structure": "structures",
    "surrogate": "surrogates",
    "solver": "solvers",
    "loss": "losses",
    "oracle": "lp_backends",
}
_CONSTRAINTS = {kind.__name__: kind for kind in (LinearConstraint, SuperModular, WeightBounds)}
#: Parameters that a loaded model does not need and a file must not set.
TRANSIENT = ("callbacks", "checkpoint", "verbose", "n_jobs")
#: Contents of arrays of model files, by their name: the first pattern that fits.  Plugins choose
#: the names of arrays of spaces, and of the data that labels keep per data set.
ARRAY_TYPES: tuple[tuple[str, str], ...] = (
    ("coef_.*|fitted_.*", "float64"),
    ("kernel_(support|n_nodes)", "integers"),
    ("kernel_(duals|gamma|rest_.*|vectors|vectors_data)", "floating-point numbers"),
    (".*_data", "numbers"),
    (".*_(indices|indptr|shape)", "integers"),
    ("feature_names_in_?", "text"),
    ("space_.*|classes", "numbers, text, dates"),
)
_TYPES: dict[str, tuple[type[np.generic], ...]] = {
    "float64": (np.float64,),
    "floating-point numbers": (np.floating,),
    "int32": (np.int32,),
    "integers": (np.integer,),
    "numbers": (np.integer, np.floating, np.bool_),
    "text": (np.character,),
    "dates": (np.datetime64, np.timedelta64),
}


def plain(value: Any, name: str) -> Any:
    """Return a parameter as JSON-able values.

    Parameters
    ----------
    value : object
    name : str
        Name of the parameter, for the message.

    Returns
    -------
    None, bool, int, float, str, list or dict

    Raises
    ------
    ValueError
        If only pickle could save it.
    """
    if type(value) in _CONSTRAINTS.values():
        params = {k: plain(v, k) for k, v in value.get_params(False).items()}
        return {"__constraint__": type(value).__name__, "params": params}
    if isinstance(value, Params):
        for kind in _KINDS:
            known = registry.default().name_of(kind, value)
            if known is not None:
                # A structure may have parameters that JSON cannot represent.
                saved = getattr(value, "saved_params", None) or partial(value.get_params, False)
                params = {k: plain(v, k) for k, v in saved().items()}
                form = {"__kind__": kind, "name": known, "params": params}
                source = registry.default().source_of(kind, value)
                return {**form, "from": source} if source else form
    if hasattr(value, "adj") and hasattr(value, "is_multigraph"):  # a networkx graph
        if value.is_multigraph():
            raise ValueError(f"parameter {name!r} is a multigraph, which cannot be saved")
        nodes = [[plain(v, name), plain(dict(d), name)] for v, d in value.nodes(data=True)]
        edges = [[plain(e[:2], name), plain(dict(e[2]), name)] for e in value.edges(data=True)]
        return {"__graph__": value.is_directed(), "nodes": nodes, "edges": edges}
    if hasattr(value, "tolist"):  # arrays, their numbers, and columns of data frames
        return value.tolist()
    if isinstance(value, dict):
        return {"__items__": [[plain(k, name), plain(v, name)] for k, v in value.items()]}
    if isinstance(value, (list, tuple, range)):
        return [plain(v, name) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    raise ValueError(
        f"parameter {name!r} is {value!r}, which cannot be saved without pickle; save coef_ "
        "instead, or use an object that a plugin registers by name"
    )


def revive(value: Any, kind: str | None = None) -> Any:
    """Return the object that :func:`plain` wrote.

    Parameters
    ----------
    value : JSON-able
        Objects are stored by name; installed plugins make them.
    kind : str, optional
        Required kind of an object, such as "structures"; by default any kind that files hold.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If no plugin has an object of a name, or it is of another kind.
    """
    if isinstance(value, list):
        return [revive(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "__items__" in value:
        return {revive(k): revive(v) for k, v in value["__items__"]}
    if "__graph__" in value:
        import networkx as nx  # heavy

        graph = nx.DiGraph() if value["__graph__"] else nx.Graph()
        for v, attributes in value["nodes"]:
            graph.add_node(_node(v), **revive(attributes))
        for (u, v), attributes in value["edges"]:
            graph.add_edge(_node(u), _node(v), **revive(attributes))
        return graph
    params = {k: revive(v) for k, v in value["params"].items()}
    if "__constraint__" in value:
        if value["__constraint__"] not in _CONSTRAINTS:
            raise ValueError(
                f"found the constraint {value['__constraint__']!r}, expected one of "
                f"{list(_CONSTRAINTS)}"
            )
        return _CONSTRAINTS[value["__constraint__"]](**params)
    if "__loss__" in value:  # older files
        return registry.default().find("losses", value["__loss__"]).factory(**params)
    own_kind = value["__kind__"]
    if own_kind not in _KINDS or (kind is not None and own_kind != kind):
        raise ValueError(f"found one of {own_kind!r}, expected one of {kind or ', '.join(_KINDS)}")
    if own_kind == "lp_backends" and any(of_a_place(k) for k in params):
        name = next(k for k in params if of_a_place(k))
        raise ValueError(f"it sets {name!r} of a solver of linear programs, which files must not")
    declared = registry.default().find(own_kind, value["name"], value.get("from", ""))
    if own_kind in ("solvers", "rival_indexes", "structures"):
        maker = registry.default().class_of(own_kind, value["name"], value.get("from", ""))
        any_went = () if own_kind == "structures" else params
        params = known_params(maker, params, getattr(maker, "former_params", any_went))
    made = declared.factory(**params)
    check_types(made, f"{value['name']!r}: ")
    return made


def known_params(maker: Any, params: dict[str, Any], former: Container[str]) -> dict[str, Any]:
    """Return the parameters of a file without those that went, which no prediction needs.

    Parameters
    ----------
    maker : type
    params : dict of str to object
    former : container of str
        Those that may have gone: all of a solver or an index; ``former_params`` of a structure.

    Returns
    -------
    dict of str to object
    """
    known = inspect.signature(maker).parameters
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return params
    return {k: v for k, v in params.items() if k in known or k not in former}


def _node(value: Any) -> Any:
    # JSON has no tuples, and lists cannot be nodes of a graph.
    return tuple(_node(v) for v in value) if isinstance(value, list) else value


def importable(function: Any) -> str:
    """Return ``module:name`` of a function that a program can import.

    Parameters
    ----------
    function : callable

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When it cannot be imported by its name.
    """
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    there: Any = sys.modules.get(str(module))
    for part in str(name).split("."):
        there = getattr(there, part, None)
    if there is not function or module == "__main__":
        raise ValueError(
            f"kernel is {function!r}, which cannot be saved without pickle: only functions that "
            "can be imported by their name can; or use a kernel that scikit-learn knows"
        )
    return f"{module}:{name}"


def kernel_of(value: Any, given: Any) -> Any:
    """Return the kernel of a model file.

    Parameters
    ----------
    value : str, dict or None
        The entry of the file: a kernel's name, or the name of a function.
    given : callable, optional
        As given to ``load``.

    Returns
    -------
    str, callable or None

    Raises
    ------
    ValueError
        If a function is missing, or differs from that of the file.
    """
    named = value["__function__"] if isinstance(value, dict) else None
    if named is None and given is not None:
        raise ValueError(f"it was trained with kernel={value!r}: leave kernel out of load()")
    if named is None:
        return value
    if not callable(given):
        module, _, name = named.partition(":")
        raise ValueError(
            f"its kernel is the function {named!r}, which files do not hold: import {module} and "
            f"give load(..., kernel={module}.{name})"
        )
    if Kernel(given).name != named:
        raise ValueError(f"its kernel is {named!r}, but kernel is {Kernel(given).name!r}")
    return given


def check_arrays(arrays: dict[str, np.ndarray], own: Sequence[tuple[str, str]] = ()) -> None:
    """Refuse arrays of a model file of another type than the estimator or ``ARRAY_TYPES`` says.

    Parameters
    ----------
    arrays : dict of str to ndarray
    own : sequence of (str, str), optional
        More of them, of the estimator; ``ARRAY_TYPES`` come first.

    Raises
    ------
    ValueError
        The message names the array.
    """
    for name, array in arrays.items():
        for pattern, expected in (*ARRAY_TYPES, *own):
            if re.fullmatch(pattern, name):
                named = expected.split(", ")
                if unknown := [one for one in named if one not in _TYPES]:
                    raise ValueError(
                        f"array_types of the estimator has {unknown[0]!r} for {pattern!r}, "
                        f"expected some of {[*_TYPES]}, with commas"
                    )
                kinds = [kind for known in named for kind in _TYPES[known]]
                if not any(np.issubdtype(array.dtype, kind) for kind in kinds):
                    raise ValueError(f"{name} holds {array.dtype}, expected {expected}")
                break


def check_history(history: Any) -> list[dict[str, Any]]:
    """Return the records of a model file; refuse anything but a list of dicts.

    Parameters
    ----------
    history : list of dict

    Returns
    -------
    list of dict
    """
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise ValueError(f"its history is {a_type(history)}, expected a list of records")
    return history


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Return the metadata of a model file; refuse anything but a dict.

    Parameters
    ----------
    metadata : dict

    Returns
    -------
    dict
    """
    if not isinstance(metadata, dict):
        raise ValueError(f"its metadata is {a_type(metadata)}, expected a dict")
    return metadata


def revive_params(
    meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any, estimator: type
) -> tuple[dict[str, Any], Any]:
    """Return the parameters of the estimator in a file, and its space.

    A file sets all parameters of the model except those in TRANSIENT, which belong to the process.

    Parameters
    ----------
    meta, arrays
        Contents of the file.
    kernel : callable, optional
        As given to ``load``.
    estimator : type
        The estimator that has the parameters.

    Returns
    -------
    params : dict of str to object
    space : Space

    Raises
    ------
    ValueError
        If the estimator has no such parameter, no installed plugin provides a named object, or
        the kernel differs.
    """
    names = set(inspect.signature(estimator).parameters) - set(TRANSIENT)
    given = {k: v for k, v in meta["params"].items() if k != "n_jobs"}
    for name, source in meta.get("from", {}).items():
        registry.default().require(KIND_OF[name], given[name], source)
    unknown = sorted(set(given) - names - {"kernel"})
    if unknown:
        raise ValueError(f"it sets {unknown[0]!r}, which is no parameter that files may hold")
    params = {k: revive(v, KIND_OF.get(k)) for k, v in given.items() if k != "kernel"}
    if "kernel" in names or kernel is not None:
        params["kernel"] = kernel_of(given.get("kernel"), kernel)
    for name in ("loss", "surrogate", "solver"):
        value = params.get(name, "")
        if value is None or isinstance(value, (bool, int, float)):
            raise ValueError(f"{name} is {value!r}, expected a name or an object")
    if not (params.get("oracle") is None or isinstance(params["oracle"], (str, Backend))):
        raise ValueError(f"oracle is {params['oracle']!r}, expected a name, a backend or None")
    structure = revive(meta["structure"], "structures")
    for name, value in meta["space"].items():
        if isinstance(value, float) or (type(value) is int and not 0 <= value < 2**31):
            raise ValueError(f"{name} is {value!r}, expected a size")
    return params, structure.space_from_state(meta["space"], part_of(arrays, "space_"))
