# Lower bounds of a network of costs.
from structsolve.plugins.mrf.exact._cost_network cimport Network


# Messages over the whole network, to and fro; DONE if more are of little use.
cdef enum:
    FORBIDDEN = 0
    AGAIN = 1
    DONE = 2
cdef int sweep(Network* net) noexcept nogil
# Eliminate nodes with one neighbour at most; False if nothing is left of one.
cdef bint shorten(Network* net) noexcept nogil
# Begin with an equivalent transformation of the scores, see Pass.phi; -inf and NaN are ignored.
cdef void transform(Network* net, const double* phi, Py_ssize_t phi_step) noexcept nogil
# Let propagate() look at all nodes.
cdef void wake(Network* net) noexcept nogil
# False if no labeling is better than `high`.
cdef bint propagate(Network* net) noexcept nogil
