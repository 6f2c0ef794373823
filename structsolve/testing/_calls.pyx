"""Calls of native operators into memory that the caller owns and watches; the GIL is released.

Arrays are taken as they are: their sizes are the caller's business.
"""

from ..operators cimport Cone, Loss, Oracle, Parts, Projection


def argmax(Oracle oracle, Py_ssize_t i, double[::1] theta, int[::1] label, double[::1] value,
           char[::1] work):
    """Write the best label and its value."""
    with nogil:
        oracle.argmax(i, &theta[0], &label[0], &value[0], &work[0])


def repeat_argmax(Oracle oracle, Py_ssize_t i, double[::1] theta, Py_ssize_t size,
                  int[::1] expected, double expected_value, int[::1] label, double[::1] value,
                  char[::1] work, int repeats):
    """Ask again and again; return False as soon as an answer is not the one expected."""
    cdef Py_ssize_t j
    cdef bint same = True
    with nogil:
        for _ in range(repeats):
            oracle.argmax(i, &theta[0], &label[0], &value[0], &work[0])
            same = value[0] == expected_value
            for j in range(size):
                same = same and label[j] == expected[j]
            if not same:
                break
    return same


def argmax_augmented(Oracle oracle, Py_ssize_t i, double[::1] theta, int[::1] label,
                     double[::1] value, double[::1] loss, char[::1] work):
    """Write the most violated label, its value and its loss."""
    with nogil:
        oracle.argmax_augmented(i, &theta[0], &label[0], &value[0], &loss[0], &work[0])


def argmax_bounded(Oracle oracle, Py_ssize_t i, double[::1] theta, int[::1] label,
                   double[::1] value, double[::1] bound, char[::1] work):
    """Write a label, its value, and an upper bound of the best value."""
    with nogil:
        oracle.argmax_bounded(i, &theta[0], &label[0], &value[0], &bound[0], &work[0])


def relax(Oracle oracle, Py_ssize_t i, double[::1] theta, double[::1] mu, int[::1] label,
          double[::1] value, char[::1] work):
    """Write the maximiser over the relaxation and its value; return whether it is a label's."""
    cdef int integral
    with nogil:
        integral = oracle.relax(i, &theta[0], &mu[0], &label[0], &value[0], &work[0])
    return integral


def argmax_constrained(Oracle oracle, Py_ssize_t i, double[::1] theta, double[::1] cost, pair,
                       double[::1] mu, int[::1] label, double[::1] value, char[::1] work):
    """Write the best point in a cone; return its kind."""
    cdef Cone cone
    cdef int kind
    cone.h0, cone.g0, cone.lam, cone.alpha, cone.beta, cone.twin = pair
    with nogil:
        kind = oracle.argmax_constrained(i, &theta[0], &cost[0], &cone, &mu[0], &label[0],
                                         &value[0], &work[0])
    return kind


def kbest(Oracle oracle, Py_ssize_t i, double[::1] theta, Py_ssize_t k, int[::1] labels,
          double[::1] values, char[::1] work):
    """Write the k best labels and their values; return how many there are."""
    cdef Py_ssize_t found
    with nogil:
        found = oracle.kbest(i, &theta[0], k, &labels[0], &values[0], &work[0])
    return found


def max_marginals(Oracle oracle, Py_ssize_t i, double[::1] theta, double[::1] out,
                  char[::1] work):
    """Write the best value per node and state."""
    with nogil:
        oracle.max_marginals(i, &theta[0], &out[0], &work[0])


def argmax_counts(Oracle oracle, Py_ssize_t i, double[::1] theta, double[::1] cost,
                  Py_ssize_t most, int[::1] labels, double[::1] values, char[::1] work):
    """Write the best label and its value for each count."""
    with nogil:
        oracle.argmax_counts(i, &theta[0], &cost[0], most, &labels[0], &values[0], &work[0])


def encode(Parts parts, Py_ssize_t i, int[::1] label, int[::1] index, double[::1] value):
    """Write the parts of a label; return how many entries."""
    cdef Py_ssize_t n
    with nogil:
        n = parts.encode(i, &label[0], &index[0], &value[0])
    return n


def difference(Parts parts, Py_ssize_t i, int[::1] truth, int[::1] label, int[::1] index,
               double[::1] value):
    """Write the difference of two labels' parts; return how many entries."""
    cdef Py_ssize_t n
    with nogil:
        n = parts.difference(i, &truth[0], &label[0], &index[0], &value[0])
    return n


def loss_value(Loss loss, Py_ssize_t i, int[::1] label):
    """Return the loss of a label."""
    cdef double value
    with nogil:
        value = loss.value(i, &label[0])
    return value


def augment(Loss loss, Py_ssize_t i, double scale, double[::1] theta):
    """Add the loss to scores; return the constant."""
    cdef double const
    with nogil:
        const = loss.augment(i, scale, &theta[0])
    return const


def project(Projection projection, Py_ssize_t i, double[::1] theta, double[::1] marginals,
            double[::1] value, char[::1] work):
    """Write marginals and value."""
    with nogil:
        projection.project(i, &theta[0], &marginals[0], &value[0], &work[0])


def project_bounded(Projection projection, Py_ssize_t i, double[::1] theta, double[::1] marginals,
                    double[::1] value, double[::1] bound, char[::1] work):
    """Write marginals, value and bound."""
    with nogil:
        projection.project_bounded(i, &theta[0], &marginals[0], &value[0], &bound[0], &work[0])


def state_size(Projection projection, Py_ssize_t i):
    """Return the size of a state."""
    return projection.state_size(i)


def project_state(Projection projection, Py_ssize_t i, double[::1] theta, double[::1] state,
                  double[::1] value, double[::1] bound, char[::1] work):
    """Write state, value and bound."""
    with nogil:
        projection.project_state(i, &theta[0], &state[0], &value[0], &bound[0], &work[0])


def state_of(Projection projection, Py_ssize_t i, int[::1] label, double[::1] state):
    """Write the state of a label."""
    with nogil:
        projection.state_of(i, &label[0], &state[0])


def pool(Projection projection, Py_ssize_t i, double[::1] state, double[::1] marginals):
    """Write the marginals of a state."""
    with nogil:
        projection.pool(i, &state[0], &marginals[0])


def term(Projection projection, Py_ssize_t i, double[::1] state, char[::1] work):
    """Return G at a state."""
    cdef double value
    with nogil:
        value = projection.term(i, &state[0], &work[0])
    return value


def slope(Projection projection, Py_ssize_t i, double[::1] a, double[::1] b, double gamma,
          char[::1] work):
    """Return the slope of G between two states."""
    cdef double value
    with nogil:
        value = projection.slope(i, &a[0], &b[0], gamma, &work[0])
    return value


def sample(Projection projection, Py_ssize_t i, double[::1] theta, Py_ssize_t n,
           double[::1] uniforms, int[::1] labels, char[::1] work):
    """Write n labels."""
    with nogil:
        projection.sample(i, &theta[0], n, &uniforms[0], &labels[0], &work[0])


def costs(Loss loss, Py_ssize_t i, double[::1] nu, bint transposed, double scale,
          double[::1] theta):
    """Add costs to scores; return the constant."""
    cdef double const
    with nogil:
        const = loss.costs(i, &nu[0], transposed, scale, &theta[0])
    return const
