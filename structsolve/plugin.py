"""What plugins may rely on in Python: names under one number (docs/python_contract.rst).

>>> from structsolve.plugin import CONTRACT, Structure, hookimpl
>>> CONTRACT, Structure.__name__
('1.2', 'Structure')
"""

from __future__ import annotations

from .hookspecs import CONTRACT
from .utils.lazy import lazy_names

# Modules of the names, imported on first use.
_HOMES = {
    **dict.fromkeys(("Lazy", "Named", "hookimpl"), "hookspecs"),
    **dict.fromkeys(
        (
            "Binder",
            "Command",
            "DeviceOperations",
            "Estimator",
            "Featurizer",
            "FitOptions",
            "LossObject",
            "Scorer",
            "ShellModule",
            "SurrogateObject",
        ),
        "protocols",
    ),
    **dict.fromkeys(("ConePair", "Space", "Structure"), "structure.base"),
    "NodeSpace": "structure.node_space",
    "FunctionStructure": "plugins.functions",
    "TaskLoss": "structure.task_loss",
    **dict.fromkeys(("Block", "WeightLayout"), "potentials.weight_layout"),
    "Examples": "examples.packed",
    **dict.fromkeys(
        (
            "no_edges",
            "no_topology",
            "row_offsets",
            "single_rows",
            "size_offsets",
            "size_pairs",
            "stack_rows",
        ),
        "examples.packing",
    ),
    **dict.fromkeys(
        ("class_names", "encode", "flatten", "flatten_rows", "learn_classes"), "examples.labels"
    ),
    "CutSurrogate": "surrogates",
    **dict.fromkeys(("Run", "Solver", "Start"), "solvers.base"),
    **dict.fromkeys(("Answer", "Backend", "Polytope", "Polytopes", "Program"), "lp"),
    "Reader": "io.reader",
    "Params": "utils.params",
    **dict.fromkeys(
        (
            "check_backend",
            "check_loss",
            "check_metric",
            "check_reader",
            "check_search",
            "check_solver",
            "check_structure",
            "check_surrogate",
        ),
        "testing",
    ),
    "out": "cli.messages",
    **dict.fromkeys(("UsageError", "path_settings", "refuse", "svm_settings"), "cli.options"),
}
__all__ = ["CONTRACT", *_HOMES]
__getattr__ = lazy_names("structsolve", _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
