"""Fast solvers for structured prediction around a plugin registry.

>>> from structsolve import StructuredSVM
>>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]]
>>> model = StructuredSVM("chain", alpha=0.01).fit(X, [["a", "b"], ["b", "a", "a"]])
>>> [y.tolist() for y in model.predict(X)]
[['a', 'b'], ['b', 'a', 'a']]
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from .utils import former  # former modules can be imported
from .utils.version import __version__

# Modules of the public names, imported on first use.
_HOMES = {
    "StructuredSVM": "estimators.structured_svm",
    "StructuredSVMCV": "evaluation.structured_svm_cv",
    "HierarchicalSVMCV": "plugins.dag.svm.path",
    "HierarchicalSVM": "plugins.dag.svm.estimator",
    "LatentSVM": "plugins.latent.estimator",
    "HiddenMarkovModel": "plugins.hidden_markov.estimator",
    "ConditionalRiskMinimizer": "plugins.risk.estimator",
    "ExtremeSVM": "plugins.extreme.estimator",
    "Sequences": "examples.packed",
    "from_padded": "examples.packed",
    "SequenceVectorizer": "features.vectorizer",
    "TokenFeaturizer": "plugins.chain.featurizer",
    "ArcFeaturizer": "plugins.dependency.features",
    "NodeTransformer": "features.node_transformer",
    "CostMatrix": "structure.losses",
    "ClassWeights": "structure.losses",
    "AnyOf": "plugins.latent.candidates",
    "WeightedLabels": "structure.weighted_labels",
    "TaskLoss": "structure.task_loss",
    "FunctionStructure": "plugins.functions",
    "Structure": "structure.base",
    "Space": "structure.space",
    "NodeSpace": "structure.node_space",
    "ConePair": "structure.base",
    "Block": "potentials.weight_layout",
    "WeightLayout": "potentials.weight_layout",
    "Examples": "examples.packed",
    "Problem": "solvers.problem",
    "Named": "hookspecs",
    "hookimpl": "hookspecs",
    "get_scorer": "evaluation.scorers",
    "get_structure": "registry",
    "list_plugins": "registry",
    "load": "estimators.load",
    "save": "estimators.pipelines",
    "make_strips": "plugins.chain.demo",
}
# Former names, still supported.
_RENAMED = {"Layout": "WeightLayout"}

__all__ = ["__version__", "get_include", *_HOMES]

if TYPE_CHECKING:
    from .estimators.load import load
    from .estimators.pipelines import save
    from .estimators.structured_svm import StructuredSVM
    from .evaluation.scorers import get_scorer
    from .evaluation.structured_svm_cv import StructuredSVMCV
    from .examples.packed import Examples, Sequences, from_padded
    from .features.node_transformer import NodeTransformer
    from .features.vectorizer import SequenceVectorizer
    from .hookspecs import Named, hookimpl
    from .plugins.chain.demo import make_strips
    from .plugins.chain.featurizer import TokenFeaturizer
    from .plugins.dag.svm.estimator import HierarchicalSVM
    from .plugins.dag.svm.path import HierarchicalSVMCV
    from .plugins.dependency.features import ArcFeaturizer
    from .plugins.extreme.estimator import ExtremeSVM
    from .plugins.functions import FunctionStructure
    from .plugins.hidden_markov.estimator import HiddenMarkovModel
    from .plugins.latent.candidates import AnyOf
    from .plugins.latent.estimator import LatentSVM
    from .plugins.risk.estimator import ConditionalRiskMinimizer
    from .potentials.weight_layout import Block, WeightLayout
    from .registry import get_structure, list_plugins
    from .solvers.problem import Problem
    from .structure.base import ConePair, Structure
    from .structure.losses import ClassWeights, CostMatrix
    from .structure.node_space import NodeSpace
    from .structure.space import Space
    from .structure.task_loss import TaskLoss
    from .structure.weighted_labels import WeightedLabels

    Layout = WeightLayout


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            home = importlib.import_module(f".{_HOMES[name]}", __name__)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(__name__):
                raise
            raise ImportError(
                f"{error.name} is missing: {os.path.dirname(__file__)} is a source folder that was "
                "not built, or not since it changed; leave the checkout's folder to use an "
                'installed structsolve, or build this one by pip install -e "."'
            ) from error
        value = getattr(home, name)
        globals()[name] = value
        return value
    if name in _RENAMED:
        return __getattr__(_RENAMED[name])
    if name[:1].isupper():  # an estimator of another package
        from . import registry  # heavy

        if name in registry.default().names("estimators"):
            return registry.default().class_of("estimators", name)
    from .utils.suggest import did_you_mean  # inspect and difflib, heavy

    hint = "" if name.startswith("_") else did_you_mean(name, _HOMES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)


def get_include() -> str:
    """Return the folder for Cython's ``include_path`` when a plugin cimports structsolve.

    Needed with editable installs, whose packages Cython does not find by itself.

    Returns
    -------
    str

    Examples
    --------
    >>> import structsolve
    >>> from pathlib import Path
    >>> Path(structsolve.get_include(), "structsolve", "operators.pxd").exists()
    True
    """
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
