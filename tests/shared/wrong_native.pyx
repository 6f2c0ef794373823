# cython: boundscheck=False, wraparound=False, language_level=3, cdivision=True
"""Compiled operators of chains that each break one promise, by the name of the fault.

``tests/shared/kit_faults.py`` builds them, all in one module.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.operators cimport Loss, Oracle, Parts
from structsolve.part_layout cimport PartLayout
from structsolve.surrogates.base cimport Cut, Surrogate

cdef double shared_scratch[4096]
# Labels that were enumerated.
cdef double enumerated_labels = 0


def clock():
    """Seconds of a machine that takes a hundredth of a millisecond a label."""
    return 1e-5 * enumerated_labels

# Faults of the oracle, in the order of their numbers.
ORACLE = (
    "none", "minimises", "top-from-zero", "without-last-state", "without-end", "without-start",
    "table-turned", "value-without-end", "bound-not-set", "bound-too-low", "bound-above",
    "work-too-small", "label-beyond", "label-before", "theta-written", "scratch-on-self",
    "scratch-global", "scratch-not-cleared", "ties-by-turns", "table-without-stride",
    "nodes-without-stride", "shared-size-forgotten", "truth-as-answer", "states-up-to-16",
    "nodes-up-to-5", "infinity-is-zero", "state-too-large", "raises-for-one-node",
    "single-precision", "value-of-call-before", "enumerates", "label-not-written",
)
PARTS = (
    "none", "transitions-twice", "without-end", "in-padding", "beyond-theta", "max-entries",
    "difference-turned", "difference-without-start", "not-a-number", "writes-beyond",
)
LOSS = (
    "none", "negative", "at-truth", "scale-forgotten", "constant-forgotten", "in-padding",
    "zero-one-said", "square-decomposes", "reads-the-next", "not-finite",
)
SURROGATE = (
    "none", "slope-turned", "bound-too-low", "bound-above", "not-augmented", "truth-of-the-data",
    "one-key", "in-padding", "beyond-theta", "max-entries", "writes-beyond", "work-too-small",
    "below-zero", "bound-not-set", "theta-written", "calls-not-counted", "by-turns",
    "loss-as-factor", "scratch-not-cleared", "raises-for-one-node",
)


cdef class Wrong(Oracle):
    """Viterbi with a fault."""

    cdef Py_ssize_t K, stride, shared_size, transition, start, end, turn
    cdef int fault
    cdef double last
    cdef double[4096] mine

    def __init__(self, fault, PartLayout layout not None):
        super().__init__(layout)
        self.fault = ORACLE.index(fault)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.shared_size = layout.shared_size
        self.transition = layout.starts["transition"]
        self.start, self.end = layout.starts["start"], layout.starts["end"]
        self.work_bytes = 2 * 8 * self.K + 4 * self.K * (layout.max_nodes + 1)
        if self.fault == 11:
            self.work_bytes -= 4 * self.K * (layout.max_nodes + 1)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), K = self.K, v, s, t, best, length = L
        cdef Py_ssize_t stride = self.stride, nodes = self.stride
        cdef const double* node = theta + self.shared_size
        cdef const double* table = theta + self.transition
        cdef double* old = <double*>work
        cdef double* new
        cdef int* origin
        cdef double x, top, sign = 1
        cdef int f = self.fault
        cdef const int[::1] truths
        if f == 15:
            old = self.mine
        elif f == 16:
            old = shared_scratch
        new = old + K
        origin = <int*>(new + K)
        if f == 1:
            sign = -1
        elif f == 3:
            K -= 1
        elif f == 14:
            (<double*>theta)[0] += 1
        elif f == 19:
            stride = K
        elif f == 20:
            nodes = K
        elif f == 21:
            node = theta
        elif f == 23 and K > 16:
            K = 16
        elif f == 24 and L > 5:
            length = 5
        elif f == 27 and L == 1:
            with gil:
                raise RuntimeError("one node")
        elif f == 30:
            return self.enumerated(i, theta, label, value, bound)
        if f != 17:
            memset(old, 0, 2 * K * sizeof(double))
        for s in range(K):
            x = sign * (node[s] + (0 if f == 5 else theta[self.start + s]))
            old[s] = old[s] + x if f == 17 else x
        for v in range(1, length):
            for t in range(K):
                best, top = 0, -INFINITY
                if f == 2:
                    top = 0
                for s in range(K):
                    x = old[s] + sign * (table[t * stride + s] if f == 6 else table[s * stride + t])
                    if f == 28:
                        x = <float>x
                    if x > top:
                        best, top = s, x
                origin[v * K + t] = <int>best
                x = node[v * nodes + t]
                if f == 25 and x == -INFINITY:
                    x = 0
                new[t] = top + sign * x
            old, new = new, old
        best = 0
        for s in range(K):
            if f != 4 and f != 7:
                old[s] += sign * theta[self.end + s]
            if old[s] > old[best] or (f == 18 and old[s] == old[best] and self.turn % 2):
                best = s
        self.turn += 1
        if f == 7:
            for s in range(K):
                old[s] += theta[self.end + s]
                if old[s] > old[best]:
                    best = s
            value[0] = old[best] - theta[self.end + best]
        else:
            value[0] = sign * old[best]
        if f == 29:
            x = value[0]
            value[0] = self.last
            self.last = x
        if f != 8:
            bound[0] = value[0]
        if f == 9:
            bound[0] -= 1e-6
        elif f == 10:
            bound[0] += 1
        for v in range(L - 1, -1, -1):
            if v >= length:
                label[v] = 0
                continue
            label[v] = <int>best
            best = origin[v * K + best] if v else 0
        if f == 12:
            label[L] = 0
        elif f == 13:
            (label - 1)[0] = 0
        elif f == 26:
            label[L - 1] = <int>self.K
        elif f == 31:
            label[0] = -7
        elif f == 22:
            with gil:
                truths = self.layout.examples.labels
                v = self.layout.examples.label_offsets[i]
                for s in range(L):
                    label[s] = truths[v + s]
        return 0

    cdef int enumerated(self, Py_ssize_t i, const double* theta, int* label, double* value,
                        double* bound) noexcept nogil:
        """All labels, one after the other."""
        cdef Py_ssize_t L = self.layout.nodes_of(i), K = self.K, v, number, count = 1, rest
        cdef const double* node = theta + self.shared_size
        cdef double x, top = -INFINITY
        cdef Py_ssize_t s, before, best = 0
        global enumerated_labels
        for v in range(L):
            count *= K
        enumerated_labels += count
        for number in range(count):
            rest, x, before = number, 0, 0
            for v in range(L):
                s = rest % K
                rest = rest / K
                x += node[v * self.stride + s]
                x += theta[self.start + s] if v == 0 else (
                    theta[self.transition + before * self.stride + s])
                before = s
            x += theta[self.end + before]
            if x > top:
                top, best = x, number
        for v in range(L):
            label[v] = <int>(best % K)
            best = best / K
        value[0] = bound[0] = top
        return 0


cdef class WrongParts(Parts):
    """Node states, transitions and ends, with a fault."""

    cdef Py_ssize_t K, stride, shared_size, transition, start, end
    cdef int fault

    def __init__(self, fault, PartLayout layout not None):
        super().__init__(layout)
        self.fault = PARTS.index(fault)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.shared_size = layout.shared_size
        self.transition = layout.starts["transition"]
        self.start, self.end = layout.starts["start"], layout.starts["end"]
        self.max_entries = 4 * (layout.max_nodes + 1)
        if self.fault == 5:
            self.max_entries = 1

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        return self.write(i, label, 1, index, value)

    cdef Py_ssize_t write(self, Py_ssize_t i, const int* label, double sign, int* index,
                          double* value) noexcept nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), v, n = 0
        cdef int f = self.fault
        for v in range(L):
            index[n] = <int>(self.shared_size + v * self.stride + label[v])
            value[n] = sign
            n += 1
            if v:
                index[n] = <int>(self.transition + label[v - 1] * self.stride + label[v])
                value[n] = sign * (2 if f == 1 else 1)
                n += 1
        index[n] = <int>(self.start + label[0])
        value[n] = sign
        n += 1
        if f != 2:
            index[n] = <int>(self.end + label[L - 1])
            value[n] = sign
            n += 1
        if f == 3:
            index[0] = <int>(self.shared_size + self.K)
        elif f == 4:
            index[0] = <int>(self.layout.theta_size(i) + 3)
        elif f == 8:
            value[0] = INFINITY - INFINITY
        elif f == 9:
            index[self.max_entries + 1] = 0
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t n
        cdef double sign = -1 if self.fault == 6 else 1
        n = self.write(i, truth, sign, index, value)
        n += self.write(i, label, -sign, index + n, value + n)
        if self.fault == 7:
            value[n - 2] = 0
        return n


cdef class WrongLoss(Loss):
    """Hamming with a fault."""

    cdef Py_ssize_t K, stride, shared_size
    cdef int fault

    def __init__(self, fault, PartLayout layout not None):
        super().__init__(layout)
        self.fault = LOSS.index(fault)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.shared_size = layout.shared_size
        self.decomposes = True
        self.zero_one = self.fault == 6

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), v
        cdef double total = 0
        for v in range(L):
            total += truth[v] != label[v]
        if self.fault == 8 and truth[0] != label[0]:
            total += label[L] > 1000
        if self.fault == 1:
            return -2 * total
        if self.fault == 2:
            return total + 1
        if self.fault == 7:
            return total * total
        if self.fault == 9 and total == L:
            return INFINITY
        return total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), v
        cdef double step = 1 if self.fault == 3 else scale
        for v in range(L):
            theta[self.shared_size + v * self.stride + truth[v]] -= step
            if self.fault == 5:
                theta[self.shared_size + v * self.stride + self.K] = 1
        return 0 if self.fault == 4 else step * L


cdef class WrongMargin(Surrogate):
    """Margin rescaling with a fault."""

    cdef Oracle oracle
    cdef Parts parts
    cdef Loss loss
    cdef Py_ssize_t theta_bytes, label_bytes, padding, turn
    cdef int fault

    def __init__(self, fault, PartLayout layout not None, Oracle oracle not None,
                 Parts parts not None, Loss loss not None):
        super().__init__(layout)
        self.fault = SURROGATE.index(fault)
        self.oracle, self.parts, self.loss = oracle, parts, loss
        self.exact = self.affine = self.convex = True
        self.max_entries = 2 * parts.max_entries
        self.padding = layout.shared_size + layout.shapes["node"][0]
        self.theta_bytes = 64 * (1 + layout.max_theta // 8)
        self.label_bytes = 64 * (1 + layout.max_label // 16)
        self.work_bytes = self.theta_bytes + self.label_bytes + oracle.work_bytes
        if self.fault == 9:
            self.max_entries = 1

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef double* augmented = <double*>work
        cdef int* label = <int*>(work + self.theta_bytes)
        cdef char* scratch = work + self.theta_bytes + self.label_bytes
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double value, bound, margin = 0
        cdef int f = self.fault
        cdef const int[::1] truths
        if f == 19 and self.layout.nodes_of(i) == 1:
            with gil:
                raise RuntimeError("one node")
        if f == 5:
            with gil:
                truths = self.layout.examples.labels
                j = self.layout.examples.label_offsets[i]
                truth = &truths[j]
        if f == 14:
            (<double*>theta)[0] += 1
        if f == 18:
            for j in range(size):
                augmented[j] += theta[j]
        else:
            memcpy(augmented, theta, size * sizeof(double))
        if f != 4:
            self.loss.augment(i, truth, 1.0, augmented)
        self.turn += 1
        if f == 16 and self.turn % 2:
            memset(augmented, 0, size * sizeof(double))
        self.oracle.argmax(i, augmented, label, &value, &bound, scratch)
        cut.nnz = self.parts.difference(i, truth, label, cut.index, cut.value)
        cut.b = self.loss.value(i, truth, label)
        for j in range(cut.nnz):
            margin -= theta[cut.index[j]] * cut.value[j]
        if f == 17:  # loss times 1 + margin, which is slack rescaling's, at margin's label
            margin *= cut.b
            for j in range(cut.nnz):
                cut.value[j] *= cut.b
        cut.bound = cut.b + margin
        cut.calls = 1
        cut.key = 0
        for j in range(self.layout.label_size(i)):
            cut.key = cut.key * 31 + label[j] + 1
        if f == 1:
            for j in range(cut.nnz):
                cut.value[j] = -cut.value[j]
        elif f == 2:
            cut.bound -= 0.01
        elif f == 3:
            cut.bound += 0.01
        elif f == 6:
            cut.key = 7
        elif f == 7 and cut.nnz:
            cut.index[0] = <int>self.padding
        elif f == 8 and cut.nnz:
            cut.index[0] = <int>(size + 3)
        elif f == 10:
            cut.index[self.max_entries + 1] = 0
        elif f == 11:
            work[self.work_bytes] = 1
        elif f == 12:
            cut.b -= 100
            cut.bound -= 100
        elif f == 13:
            cut.bound = INFINITY - INFINITY
        elif f == 15:
            cut.calls = 0
        return 0
