"""Training on many machines: shards of the examples on the workers of a Dask cluster.

Takes solvers and estimators of lower layers; provides estimators for Dask collections.  Dask and
distributed (the extra ``[distributed]``) are imported on use.
"""

from ..solvers import ConsensusADMM
from .estimator import DaskStructuredSVM
from .vectorizer import fit_vectorizer

__all__ = ["ConsensusADMM", "DaskStructuredSVM", "fit_vectorizer"]
