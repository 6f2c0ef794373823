# Line searches over the cuts of one example.
from ._cuts cimport CutHead

# Move weight between the m cuts until max_steps, or until the gap among them is below `tol` times
# the first or below min_gain.  gram[j * side + k] is <p_j, K p_k>, `share` its factor; slopes[j]
# is b_j - <theta, p_j> and follows the weights; drift is scratch.  True when any weight moved.
cdef bint line_searches(CutHead** heads, Py_ssize_t m, const double* gram, Py_ssize_t side,
                        double* slopes, double* drift, double share, bint pairwise, int max_steps,
                        double tol, double min_gain) noexcept nogil

# Go on with the step from the weights in `before` to `factor` times its length where the dual is
# largest, as far as weights stay feasible; slopes are those after the step.
cdef void over_relax(CutHead** heads, Py_ssize_t m, const double* gram, Py_ssize_t side,
                     const double* slopes, const double* before, double share,
                     double factor) noexcept nogil
