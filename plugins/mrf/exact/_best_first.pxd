# Exact search by depth-first dives from the open node of the lowest bound.
from libc.stdint cimport int64_t

from structsolve.plugins.mrf.exact._cost_network cimport Network
from structsolve.plugins.mrf.tables._model cimport Model


cdef struct Choice:
    int node, state
    bint takes                  # the state, or leaves it out


cdef struct Step:
    Choice choice
    Py_ssize_t before           # step before it, -1: none


cdef struct Open:
    double low
    Py_ssize_t step             # last choice, -1: none
    int depth


cdef struct Level:
    Choice choice
    double low, pruned
    Py_ssize_t changes, removed, path
    int eliminations
    int64_t level


cdef struct Search:
    Network* net
    Level* levels
    Choice* path
    Py_ssize_t depth, length    # of levels, of the path
    Step* steps
    Py_ssize_t n_steps, step_room
    Open* heap
    Py_ssize_t n_open, open_room
    bint dives, possible
    double floor                # bound of the open node of this dive
    int sweeps                  # that are left before the search
    int last                    # node of the last conflict
    int64_t next_level
    long long fails, allowed    # in this dive
    double choices, replayed
    int* best
    int* trial
    char* scratch               # of local search
    int idle, unclimbed         # labelings it leaves out after a call without a gain; now
    void* blocks[5]


# A search that starts from a labeling, or from none if its score is -INFINITY; NULL without memory.
# Unless phi is NULL, it is an equivalent transformation to begin with, see Pass.phi.
cdef Search* make_search(const Model* model, const int* label, const double* phi,
                         Py_ssize_t phi_step) noexcept nogil
cdef void free_search(Search* search) noexcept nogil
# Search for about so many more steps; True if the best labeling is proven.
cdef bint advance(Search* search, double steps) noexcept nogil
# Lower bound of all costs; infinite if every labeling is forbidden.
cdef double lowest(const Search* search) noexcept nogil
