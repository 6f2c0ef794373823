# Scores of single leaves.
from structsolve.operators cimport Operator
from structsolve.plugins.dag._shape cimport HierarchyShape

# out[v] <- the sum of the scores of leaf v and its ancestors (of inner nodes: scratch).
cdef void leaf_scores(HierarchyShape shape, const double* theta, double* out) noexcept nogil
# The shape, whose labels must be single leaves; sets the operator's number of states, and its
# memory for this many rows of node scores.
cdef HierarchyShape of_leaves(Operator operator, HierarchyShape shape, Py_ssize_t rows)
