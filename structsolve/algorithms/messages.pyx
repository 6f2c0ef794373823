"""Steps of sum-product recursions: exponentials in range, and messages through tables of pairs.

A message through a table costs K^2 multiplications if exponentials of scores are in range,
else K^2 exponentials.
"""

from libc.math cimport INFINITY, exp, log
from structsolve.algorithms.classes cimport draw_class
from structsolve.algorithms.entropies cimport logarithms
from structsolve.simd.loops cimport ss_loop_table


cdef double log_sum_exp(Py_ssize_t n, const double* x) noexcept nogil:
    cdef double top = -INFINITY, total = 0
    cdef Py_ssize_t j
    for j in range(n):
        if x[j] > top:
            top = x[j]
    if top == -INFINITY:
        return top
    for j in range(n):
        if not x[j] - top <= -50:   # NaN must propagate
            total += exp(x[j] - top)
    return top + log(total)


cdef int draw(Py_ssize_t K, const double* weights, double uniform) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t s
    for s in range(K):
        total += weights[s]
    return draw_class(K, weights, uniform * total)


cdef int impossible(Py_ssize_t i) except -1 nogil:
    with gil:
        raise ValueError(
            f"example {i}: every labeling is forbidden (its score is -inf or NaN), so there are no "
            "marginals; allow at least one labeling, and check that the weights are finite"
        )


cdef bint exponentials(const ss_loop_table* loops, Py_ssize_t rows, const double* x,
                       Py_ssize_t stride, Py_ssize_t K, double* out, double* shift) noexcept nogil:
    cdef double low
    loops.range(rows, x, stride, K, -INFINITY, &low, shift)
    if not (shift[0] > -INFINITY and shift[0] - low <= SPAN):
        return False
    loops.exp_rows(rows, x, stride, K, shift[0], out)
    return True


cdef void log_columns(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride,
                      double* table, double* tops, double* out) noexcept nogil:
    # Row by row: the maximum of every column, then the exponentials.
    cdef Py_ssize_t s, t
    cdef double x
    for t in range(stride):
        tops[t], out[t] = -INFINITY, 0
    for s in range(K):
        for t in range(K):
            x = table[s * stride + t]
            tops[t] = tops[t] if tops[t] >= x else x
    for t in range(K):
        if tops[t] == -INFINITY:
            tops[t] = 0
    for s in range(K):
        for t in range(K):
            table[s * stride + t] -= tops[t]
    loops.exp_rows(K, table, stride, K, 0, table)
    for s in range(K):
        for t in range(K):
            out[t] += table[s * stride + t]
    for t in range(K):
        out[t] = tops[t] + log(out[t])


cdef void log_rows(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride, double* table,
                   double* tops, double* out) noexcept nogil:
    cdef Py_ssize_t s
    cdef double low, top
    cdef double* row = table
    for s in range(K):
        loops.range(1, row, stride, K, -INFINITY, &low, &top)
        if top == -INFINITY:
            top = 0
        loops.exp_rows(1, row, stride, K, top, row)
        tops[s] = top
        out[s] = top + log(loops.total(stride, row))
        row += stride


cdef SumTable sum_table(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride,
                        const double* scores, double* exponentials) noexcept nogil:
    cdef SumTable table
    cdef double low, top
    table.scores, table.exponentials, table.kind = scores, exponentials, WIDE
    # The smallest entry, -inf included: no entry is NaN.
    loops.range(K, scores, stride, K, INFINITY, &low, &top)
    table.shift = top
    if top - low <= FULL_SPAN:
        table.kind = FULL
    elif top > -INFINITY:
        loops.range(K, scores, stride, K, -INFINITY, &low, &top)
        if top - low <= SPAN:
            table.kind = PARTIAL
    if table.kind != WIDE:
        loops.exp_rows(K, scores, stride, K, top, exponentials)
    return table


cdef inline bint _fast(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                       Py_ssize_t stride, const double* x, double* row, double* top) noexcept nogil:
    # row <- exp(x - top), if messages can use it.
    cdef double low
    if table.kind == WIDE:
        return False
    loops.range(1, x, stride, K, -INFINITY, &low, top)
    if not (top[0] > -INFINITY and (table.kind == FULL or top[0] - low <= SPAN)):
        return False
    loops.exp_rows(1, x, stride, K, top[0], row)
    return True


cdef void message_up(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                     Py_ssize_t stride, const double* x, double* out,
                     double* spare) noexcept nogil:
    cdef Py_ssize_t s, t
    cdef double* row = spare + K * stride
    cdef double top
    if _fast(loops, table, K, stride, x, row, &top):
        loops.dots(K, table.exponentials, stride, stride, row, out)
        logarithms(K, out, top + table.shift, out)
        return
    for s in range(K):
        for t in range(K):
            spare[s * stride + t] = table.scores[s * stride + t] + x[t]
    log_rows(loops, K, stride, spare, row, out)


cdef void message_down(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                       Py_ssize_t stride, const double* x, double* out,
                       double* spare) noexcept nogil:
    cdef Py_ssize_t s, t
    cdef double* row = spare + K * stride
    cdef double top
    if _fast(loops, table, K, stride, x, row, &top):
        loops.sumprod(K, row, table.exponentials, stride, stride, row + stride)
        logarithms(K, row + stride, top + table.shift, out)
        return
    for s in range(K):
        for t in range(K):
            spare[s * stride + t] = table.scores[s * stride + t] + x[s]
    log_columns(loops, K, stride, spare, row, out)
