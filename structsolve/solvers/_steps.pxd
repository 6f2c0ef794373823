# Line searches over the cuts of one example.
from ._cuts cimport CutHead

# Move weight between the m cuts until max_steps, or until the gap among them is below `tol` times
# the first or below min_gain.  gram[j * side + k] is <p_j, K p_k>, `share` its factor; slopes[j]
# is b_j - <theta, p_j> and follows the weights; drift is scratch.  `rise` grows
# by that of the dual, per weight of the example.  True when any weight moved.
cdef bint line_searches(CutHead** heads, Py_ssize_t m, const double* gram, Py_ssize_t side,
                        double* slopes, double* drift, double share, bint pairwise, int max_steps,
                        double tol, double min_gain, double* rise) noexcept nogil
