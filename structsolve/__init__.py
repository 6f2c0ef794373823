"""Fast solvers for structured prediction around a plugin registry.

>>> from structsolve import StructuredSVM
>>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]]
>>> model = StructuredSVM("chain", alpha=0.01).fit(X, [["a", "b"], ["b", "a", "a"]])
>>> [y.tolist() for y in model.predict(X)]
[['a', 'b'], ['b', 'a', 'a']]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives; modules are imported when a name is first used.
_HOMES = {
    "StructuredSVM": "estimator",
    "HierarchicalSVM": "hierarchical",
    "ConditionalRiskMinimizer": "risk",
    "Sequences": "examples",
    "from_padded": "examples",
    "SequenceVectorizer": "vectorize",
    "NodeTransformer": "node_transformer",
    "CostMatrix": "losses",
    "ClassWeights": "losses",
    "FunctionStructure": "functions",
    "Structure": "structure",
    "Space": "structure",
    "NodeSpace": "structure",
    "ConePair": "structure",
    "Block": "blocks",
    "Layout": "blocks",
    "Examples": "examples",
    "Problem": "problem",
    "Named": "hookspecs",
    "hookimpl": "hookspecs",
    "get_structure": "registry",
    "list_plugins": "registry",
    "load": "persistence",
}

__all__ = ["__version__", "get_include", *_HOMES]

if TYPE_CHECKING:
    from .blocks import Block, Layout
    from .estimator import StructuredSVM
    from .examples import Examples, Sequences, from_padded
    from .functions import FunctionStructure
    from .hierarchical import HierarchicalSVM
    from .hookspecs import Named, hookimpl
    from .losses import ClassWeights, CostMatrix
    from .node_transformer import NodeTransformer
    from .persistence import load
    from .problem import Problem
    from .registry import get_structure, list_plugins
    from .risk import ConditionalRiskMinimizer
    from .structure import ConePair, NodeSpace, Space, Structure
    from .vectorize import SequenceVectorizer


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


def get_include() -> str:
    """Return the folder for Cython's ``include_path`` when a plugin cimports structsolve.

    Needed with editable installs, whose packages Cython does not find by itself.

    Examples
    --------
    >>> import structsolve
    >>> from pathlib import Path
    >>> Path(structsolve.get_include(), "structsolve", "operators.pxd").exists()
    True
    """
    from pathlib import Path

    return str(Path(__file__).resolve().parent.parent)
