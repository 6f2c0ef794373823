"""Training on many machines: shards of the examples on the workers of a Dask cluster.

It takes solvers and estimators from below, and hands estimators of Dask collections to users.
Dask and distributed (the extra ``[distributed]``) are imported where they are used.
"""

from ..solvers import ConsensusADMM
from .estimator import DaskStructuredSVM
from .vectorizer import fit_vectorizer

__all__ = ["ConsensusADMM", "DaskStructuredSVM", "fit_vectorizer"]
