# The best labeling whose scores in two models keep a ratio, by enumeration.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t constrained_bytes(const Model* model) noexcept nogil
# The labeling with the largest h + lam g among those with beta h < g <= alpha h, or for `twin`
# beta h <= g < alpha h, where h = h0 + score(first) and g = g0 + score(second); False where there
# is none.  Both models have the same nodes, states and edges; second.pair may be NULL.  alpha may
# be infinite: then all g are allowed where h >= 0 and none where h < 0.  Labelings with h or g of
# -inf are never allowed.  The time is proportional to the number of labelings.
cdef bint argmax_constrained(const Model* first, double h0, const Model* second, double g0,
                             double lam, double alpha, double beta, bint twin, int* label,
                             double* h, double* g, char* work) noexcept nogil
