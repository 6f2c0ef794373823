"""Modules under their former names: they hand on what is elsewhere now, with a warning."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from typing import Any

from .lazy import moved

# The former modules, by those that have their names now.
_PLACES = {
    "plugins.chain.bench": "cli.bench",
    "plugins.chain.conll": "io.conll",
    "plugins.chain.crfsuite": "io.crfsuite",
    "plugins.chain.demo": "cli.demo",
    "plugins.chain.fasta": "io.fasta",
    "plugins.chain.spans": "evaluation.spans",
    "plugins.chain.tag_schemes": "structure.tag_schemes",
    "plugins.chain.token_features": "features.token_features",
    "plugins.dag": "estimators.hierarchical_svm estimators.hierarchy",
    "plugins.dag.topological_order": "algorithms.topological_order",
    "plugins.dependency.conllu": "io.conllu",
    "plugins.extreme": "estimators.extreme_svm extreme",
    "plugins.extreme.predictions": "io.predictions",
    "plugins.extreme.reader": "io.extreme",
    "plugins.functions": "structure.functions",
    "plugins.grid.reader": "io.pictures",
    "plugins.latent": "estimators.latent_svm",
    "plugins.latent.row_loss": "structure.row_loss",
    "plugins.mrf.uai": "io.uai",
    "plugins.multiclass.class_rows": "solvers.class_rows",
    "plugins.multiclass.interior_point": "solvers.interior_point",
    "plugins.multiclass.newton": "solvers.newton",
    "plugins.multiclass.smo": "solvers.smo",
    "plugins.multilabel.arff": "io.arff",
    "plugins.multilabel.metrics": "evaluation.label_sets",
    "plugins.risk": "estimators.risk",
}
_NOW = {
    f"structsolve.{former}": f"structsolve.{now}"
    for now, names in _PLACES.items()
    for former in names.split()
}
_PACKAGE = "structsolve.extreme"  # its modules lie in one of two rooms


class _Finder:
    """Makes an empty module for a former name, with a ``__getattr__`` that knows where to look."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        place = _NOW.get(name)
        if name.startswith(f"{_PACKAGE}."):
            rooms = (f"{_NOW[_PACKAGE]}.{room}" for room in ("solvers", "weights"))
            places = (room + name.removeprefix(_PACKAGE) for room in rooms)
            place = next(filter(importlib.util.find_spec, places), None)
        if place is None:
            return None
        own: Any = self
        return ModuleSpec(name, own, loader_state=place, is_package=name == _PACKAGE)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.__getattr__ = moved(module.__name__, module.__spec__.loader_state)


sys.meta_path.append(_Finder())
