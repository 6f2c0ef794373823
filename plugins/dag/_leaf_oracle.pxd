# Scores of single leaves.
from structsolve.plugins.dag._shape cimport HierarchyShape

# out[v] <- the sum of the scores of leaf v and its ancestors (of inner nodes: scratch).
cdef void leaf_scores(HierarchyShape shape, const double* theta, double* out) noexcept nogil
