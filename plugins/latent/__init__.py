"""Partial labels as a plugin: sets of allowed labels, hidden states, candidates for whole labels.

``estimator`` completes labels and trains on them in the ``rounds`` of the concave-convex procedure;
``sets`` and ``states`` read sets of classes and hidden states, ``candidates`` whole labels,
``losses`` costs of sets, ``initial`` the first completion; ``commands`` are the shell's options.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.latent.candidates import AnyOf
    from structsolve.plugins.latent.estimator import LatentSVM

__all__ = ["AnyOf", "LatentSVM"]
__getattr__ = lazy_names(__name__, {"AnyOf": "candidates", "LatentSVM": "estimator"})


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.plugins.latent.estimator:LatentSVM")
    return [Named("LatentSVM", home, "labels that are known in part")]
