# Dual block-coordinate descent for any number of states: an upper bound and a labeling.
from structsolve.simd.loops cimport ss_loop_table

from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._table_kinds cimport mrf_table

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t trws_bytes(const Model* model) noexcept nogil
# label, value <- the best labeling met, its value -INFINITY if none is possible or none was met;
# bound <- an upper bound of all scores.  Stops once bound - value <= tol, when the bound
# no longer moves, or after max_iter iterations (one is enough on forests, where the answer is
# exact).  `turns`: if something is forbidden, try other orders of the nodes before stopping; else
# nodes keep their numbering, forests breadth first.  Returns the number of iterations.
cdef int trws(const Model* model, int max_iter, double tol, bint turns, int* label, double* value,
              double* bound, char* work) noexcept nogil


# State of the passes, stored in `work` after trws().
cdef struct Pass:
    # Nodes in the order of the passes, and a message per edge, in the direction of the last pass.
    int* order
    int* rank
    int* trial                  # the labeling of this pass
    int* before                 # the order before this one
    double* share               # share of its score that a node gives to each later neighbour
    Py_ssize_t* message_at
    double* message             # followed by a spare cache line
    double* own                 # of one node: scores with all messages
    double* sent                # scores less the receiver's message
    double* zeros
    double* envelope            # two rows
    # For rows of a multiple of four and of eight states; NULL if no node has that many.
    const ss_loop_table* by_four
    const ss_loop_table* by_eight
    # Kinds of tables, of every edge or of the one table; NULL if not examined.
    const mrf_table* kinds
    bint one_kind
    # Unless it is NULL: an equivalent transformation that backward() writes, two rows for each
    # edge, `phi_step` apart.  The first belongs to the edge's first end.
    double* phi
    Py_ssize_t phi_step


# share <- for each node 1 / the number of its neighbours on the larger side, by `rank`.
cdef void share_out(const Model* model, const int* rank, double* share) noexcept nogil
# Whether any score is -inf.
cdef bint forbids(const Model* model) noexcept nogil
# Messages 0, nodes as they are numbered.
cdef void start_pass(const Model* model, Pass* state) noexcept nogil
# trial <- a labeling; where `send`, messages to later nodes.
cdef void forward(const Model* model, Pass* state, bint send) noexcept nogil
# Goes on after `done` iterations, with the best labeling and bound so far, after a pass
# forward where done > 0; as trws().
cdef int ascend(const Model* model, Pass* state, bint forest, int done, int max_iter, double tol,
                bint turns, int* label, double* value, double* bound) noexcept nogil
cdef Pass place_pass(const Model* model, char* work) noexcept nogil
# One more pass, with messages to earlier nodes; returns the bound, -INFINITY if everything is
# forbidden.  Unless it is NULL, rest[i] <- the bound collected down to the i-th node: with the
# messages that reach the nodes before it, it bounds what all later nodes can add.
cdef double backward(const Model* model, Pass* state, double* rest) noexcept nogil
