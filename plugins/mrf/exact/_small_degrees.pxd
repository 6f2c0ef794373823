# Elimination during a search.
from structsolve.plugins.mrf.exact._cost_network cimport Network


# Eliminate v if it has two open neighbours at most; False if nothing is left of one.
cdef bint eliminate_node(Network* net, int v) noexcept nogil
# label <- the states left, and the best ones of eliminated nodes.
cdef void complete(const Network* net, int* label) noexcept nogil
