"""Maximum spanning arborescences: Edmonds' algorithm in Tarjan's form for dense graphs, O(n^2).

Each word in turn chooses its best head, along a path that grows towards the root.  If the path
meets itself, the cycle becomes one node: the score rows of its words, each minus the score of the
word's current arc, are merged by their maxima, in O(n) per merged word.  When all words have a
head, cycles are opened in reverse order: the arc into a cycle replaces that of the word it enters.

For one child of the root, a large number is subtracted from the arcs that leave the root: the best
tree then has as few of them as possible.  The number is infinitely large and never computed: such
an arc is chosen only if there is no other, and a cycle never contains one.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy

cdef enum State:
    NEW
    ON_PATH
    DONE
    MERGED


cdef Py_ssize_t arborescence_bytes(Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t table = n * (n + 1)
    return (table + n) * sizeof(double) + (table + 12 * n) * sizeof(int) + 64


cdef bint best_arborescence(Py_ssize_t n, const double* table, bint single, int* heads,
                            char* work) noexcept nogil:
    cdef Py_ssize_t width = n + 1
    # scores[v, h]: of the arc from word h into node v; `entry` is the word of v that it enters.
    cdef double* scores = <double*>work
    cdef double* paid = scores + n * width
    cdef int* entry = <int*>(paid + n)
    cdef int* node_of = entry + n * width       # of each word; a node is named by one of its words
    cdef int* state = node_of + n
    cdef int* path = state + n
    cdef int* name = path + n                   # of each node, in the forest of contractions
    cdef int* parent = name + n                 # in that forest: words first, then cycles
    cdef int* chosen_head = parent + 2 * n
    cdef int* chosen_word = chosen_head + 2 * n
    cdef int* resolved = chosen_word + 2 * n
    cdef Py_ssize_t s, h, v, u, size, m
    cdef int names = <int>n, best, roots = 0
    cdef double top, x
    cdef double* row
    cdef double* other
    if n == 1:
        heads[0] = 0
        return table[0] > -INFINITY
    memcpy(scores, table, n * width * sizeof(double))
    for v in range(n):
        node_of[v] = <int>v
        name[v] = <int>v
        state[v] = NEW
        for h in range(width):
            entry[v * width + h] = <int>v
    for s in range(n):
        if state[node_of[s]] != NEW:
            continue
        size = 1
        path[0] = <int>s
        state[s] = ON_PATH
        while size:
            v = path[size - 1]
            row = scores + v * width
            best, top = -1, -INFINITY
            if not single and row[0] > top:
                best, top = 0, row[0]
            for h in range(1, width):
                if row[h] > top and node_of[h - 1] != v:
                    best, top = <int>h, row[h]
            if best < 0:
                if not single or row[0] == -INFINITY:
                    return False
                best, top = 0, row[0]
            chosen_head[name[v]] = best
            chosen_word[name[v]] = entry[v * width + best]
            paid[v] = top
            u = node_of[best - 1] if best else -1
            if u < 0 or state[u] == DONE:
                for h in range(size):
                    state[path[h]] = DONE
                size = 0
            elif state[u] == NEW:
                state[u] = ON_PATH
                path[size] = <int>u
                size += 1
            else:
                # A cycle: the nodes on the path from u to v become the node u.
                row = scores + u * width
                for h in range(width):
                    row[h] -= paid[u]
                while path[size - 1] != u:
                    size -= 1
                    m = path[size]
                    state[m] = MERGED
                    parent[name[m]] = names
                    other = scores + m * width
                    for h in range(width):
                        x = other[h] - paid[m]
                        if x > row[h]:
                            row[h] = x
                            entry[u * width + h] = entry[m * width + h]
                parent[name[u]] = names
                name[u] = names
                names += 1
                for h in range(n):
                    if state[node_of[h]] == MERGED:
                        node_of[h] = <int>u
    for v in range(names):
        resolved[v] = 0
    for s in range(names - 1, -1, -1):
        if resolved[s]:
            continue
        m = chosen_word[s]
        heads[m] = chosen_head[s]
        roots += heads[m] == 0
        v = m
        while v != s:
            resolved[v] = 1
            v = parent[v]
    return not single or roots == 1
