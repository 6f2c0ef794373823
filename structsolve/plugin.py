"""What plugins may rely on in Python: names under one number (docs/python_contract.rst).

>>> from structsolve.plugin import CONTRACT, Structure, hookimpl
>>> CONTRACT, Structure.__name__
('1.3', 'Structure')
"""

from __future__ import annotations

from .hookspecs import CONTRACT
from .utils.lazy import lazy_names

# The names by their modules, which are imported on first use.
_NAMES = {
    "hookspecs": "Lazy Named hookimpl",
    "protocols": "Binder Command DeviceOperations Estimator Featurizer FitOptions LossObject "
    "Scorer ShellModule SurrogateObject",
    "structure.base": "ConePair Structure",
    "structure.space": "Space",
    "structure.node_space": "NodeSpace",
    "plugins.functions": "FunctionStructure",
    "structure.task_loss": "TaskLoss",
    "potentials.weight_layout": "Block WeightLayout",
    "examples.packed": "Examples",
    "examples.packing": "single_rows stack_rows",
    "examples.sizes": "no_edges no_topology row_offsets size_offsets size_pairs",
    "examples.labels": "class_names encode flatten flatten_rows learn_classes",
    "surrogates": "CutSurrogate",
    "solvers.base": "Solver",
    "solvers.run": "Run Start",
    "lp": "Answer Backend Polytope Polytopes Program",
    "io.reader": "Reader",
    "utils.params": "Params",
    "testing": "check_backend check_loss check_metric check_reader check_search check_solver "
    "check_structure check_surrogate",
    "cli.messages": "out",
    "cli.options": "UsageError path_settings refuse svm_settings",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = ["CONTRACT", *_HOMES]
__getattr__ = lazy_names("structsolve", _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
