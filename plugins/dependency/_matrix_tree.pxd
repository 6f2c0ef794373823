# Marginals of the arcs of all trees, by elimination of words.
from structsolve.plugins.dependency._semiring cimport Semiring


cdef struct Task:
    Semiring kind
    bint lone           # leaving to the root does not count in pivots
    double base         # log of the scale
    double least        # smaller logs of sums mean that all trees have several roots
    double rarest       # smaller logs of an arc's share mean the same of the trees with this arc
    double* matrix      # [word, head], both from 0
    double* exits
    double* chance      # to reach the root before one word does
    double* chances     # rows of n: before each word
    double* memory


cdef inline Py_ssize_t turn(bint down, Py_ssize_t size, Py_ssize_t gone, Py_ssize_t* first,
                            Py_ssize_t* last) noexcept nogil:
    """The place of the word that goes after ``gone`` others; from first to last are those left."""
    cdef Py_ssize_t k = size - 1 - gone if down else gone
    first[0] = 0 if down else k + 1
    last[0] = k if down else size
    return k


# Bytes of scratch memory for sentences of at most n words; draw_tree() needs n + 1 doubles more.
cdef Py_ssize_t elimination_bytes(Py_ssize_t n) noexcept nogil
# marginals[m, head] <- those of arcs (rows of n + 1); returns the log of the sum over all trees of
# exp(sum of table[m, head]), -inf if there is none.
cdef double arc_marginals(Py_ssize_t n, const double* table, bint single, double* marginals,
                          char* work) noexcept nogil
# heads <- a tree drawn with a uniform number per word; returns whether there is one.  The table is
# overwritten.
cdef bint draw_tree(Py_ssize_t n, double* table, bint single, const double* uniforms, int* heads,
                    char* work) noexcept nogil
# Whether there is a tree.
cdef bint some_tree(Py_ssize_t n, const double* table, bint single, char* work) noexcept nogil
# Weights or their logs, the largest of every row 1; base is -inf if a word has no head.  They
# are stored in `work`, which has elimination_bytes().
cdef Task prepare(Py_ssize_t n, const double* table, bint single, bint try_weights,
                  char* work) noexcept nogil
