# The public C API: classes that compiled plugins subclass and the training loops call.
#
# Layout.  theta_i, the part scores of example i, is one flat array of doubles: first the
# *shared* blocks (parts whose weights every position shares: transition tables, start, end;
# they are stored exactly like in w), then the rows of the *node* block (one row per node),
# then the rows of the *edge* block (one row per edge).  The last axis of every block is padded
# to `stride` doubles (structsolve.utils.arrays.padded); padding holds zeros and must stay so.
#
# Contract of every method below: no GIL, no allocation, thread safe.  All state that changes
# during a call lives in `work`: `work_bytes` bytes, 64-byte aligned, which the caller allocates
# for each thread.  Status methods return 0, or -1 with a Python exception set.
# Operators are bound only to packed examples, through a PartLayout; methods get the truth of an
# example as an argument.  A structure provides a factory for each operator (layout -> operator:
# the class itself, or a partial of it), made once per space; calling it binds the operator.
#
# This file is part of the C interface, whose number is in abi_number.pxd.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.part_layout cimport PartLayout


cdef class Operator:
    # The examples of the operator; Operator.__init__(layout) sets it.
    cdef readonly PartLayout layout
    # Bytes of scratch memory one call needs.
    cdef readonly Py_ssize_t work_bytes
    # Integers of a label are from 0 to n_states - 1; 0: unknown.
    cdef readonly Py_ssize_t n_states
    # Reserved for future members of this class and those below; see abi_number.pxd.
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef void _slot0(self) noexcept nogil
    cdef void _slot1(self) noexcept nogil
    cdef void _slot2(self) noexcept nogil
    cdef void _slot3(self) noexcept nogil
    cdef void _slot4(self) noexcept nogil
    cdef void _slot5(self) noexcept nogil
    cdef void _slot6(self) noexcept nogil
    cdef void _slot7(self) noexcept nogil


cdef class Oracle(Operator):
    # True (the default): the value of argmax() is the maximum, and its bound equals the value.
    # False: the label may not be the best, and the bound is an upper bound of the maximum.
    cdef readonly bint exact

    # label <- argmax_y <theta, mu(y)>, ties broken deterministically; value <- its score; bound <-
    # an upper bound of the maximum.
    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil


# Powers of a structure: optional operators, requested by name (in quotes).

# "kbest"
cdef class KBest(Operator):
    # labels <- the k best labels, best first, concatenated; returns how many exist.
    # bytes_for(k) is the scratch memory it needs (asked once, with the GIL).
    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil
    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1


# "max-marginals"
cdef class MaxMarginals(Operator):
    # out[v * stride + s] <- the best value of a label in which node v takes state s.
    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil


# "augmented"
cdef class AugmentedOracle(Operator):
    # The most violated label, loss included, by an oracle that includes the loss:
    # label <- argmax_y <theta, mu(y)> + L(y, truth); value <- the maximum; loss <- L(label, truth).
    cdef int argmax(self, Py_ssize_t i, const double* theta, const int* truth, int* label,
                    double* value, double* loss, char* work) except -1 nogil


# "relaxation"
cdef class Relaxation(Operator):
    # mu <- argmax <theta, mu> over a polytope that contains every mu(y) and no other integral
    # point, dense, in theta's layout, padding 0; value <- its score; bound <- an upper bound of the
    # maximum.  Returns 1 if mu is the mu(y) of a label, which is then written to `label`, else 0.
    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil


# The argument of a cone oracle: argmax of h + lam g over the labels in a cone of the plane,
# h(y) = <theta, mu(y)> + h0, g(y) = <cost, mu(y)> + g0.
cdef struct Cone:
    double h0, g0
    double lam
    double alpha, beta  # beta h < g <= alpha h; alpha may be infinite (then h >= 0), beta 0
    bint twin           # beta h <= g < alpha h instead


# "cones"
cdef class ConeOracle(Operator):
    # argmax of h + lam g over the labels in a cone (strict and closed sides as Cone says), or
    # over a relaxation of them with closed sides; value <- the maximum.  Returns 0 if the cone is
    # empty, 1 with a label, 2 with a fractional mu (dense, theta's layout).
    cdef int argmax_in_cone(self, Py_ssize_t i, const double* theta, const double* cost,
                            const Cone* cone, double* mu, int* label, double* value,
                            char* work) except -1 nogil


# "counts"
cdef class CountOracle(Operator):
    # labels, values <- for each count c = 0 .. most the best label with <cost, mu(y)> = c,
    # concatenated, and its value, -inf if there is none.  `cost` has theta's layout, integer
    # values on node parts and 0 elsewhere.  bytes_for(most) as in KBest.
    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil
    cpdef Py_ssize_t bytes_for(self, Py_ssize_t most) except -1


cdef class Parts(Operator):
    # Largest number of entries that difference() or encode() can write for any example.
    cdef readonly Py_ssize_t max_entries
    # True: a label is one number y and mu(y) = e_y, so that the hull of the mu(y) is the simplex.
    cdef readonly bint indicator
    # index, value <- mu(label), sparse; an index may appear more than once (values add up).
    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil
    # index, value <- mu(truth) - mu(label); equal parts cancel and are left out.
    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil


cdef class Loss(Operator):
    # True: L(y, truth) = <c, mu(y)> + const, and augment() adds it to the scores.
    cdef readonly bint decomposes
    # True: the loss is 1 for every label but the truth.
    cdef readonly bint zero_one
    # True: value() is a mean or 0/1 for the whole example; False: a sum over its parts.
    cdef readonly bint averaged
    # True: an integer of a truth may be n_states, a label unseen in training.
    cdef readonly bint takes_unseen
    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil
    # theta += scale * c; returns scale * const.
    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil
    # True: L(y, y') = <mu(y), A mu(y')> + const of a prediction y and any truth y'; costs() applies A.
    cdef readonly bint has_costs
    # theta += scale * A nu: mean costs of predictions if truths have marginals nu. `transposed`:
    # theta += scale * A' nu, mean costs of truths if predictions have marginals nu. Returns scale *
    # const. nu is dense, in theta's layout, padding 0.
    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil


# argmax_{mu in M} G(mu) + <theta, mu> over the hull M of the mu(y), for a concave G given by its
# name: "entropy", "euclidean" (-|mu|^2 / 2 over the node parts).
cdef class Projection(Operator):
    # True: the mean of mu(y) under p(y) ~ exp <theta, mu(y)>; G is its entropy and the value the
    # log-partition.
    cdef readonly bint gibbs
    # True (the default): the value is the maximum, and the bound equals the value.
    cdef readonly bint exact
    # marginals <- the maximiser, dense, in theta's layout, padding 0; value <- G + <theta, mu>
    # there; bound <- an upper bound of the maximum.
    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil
    # If marginals pool parts (a transition table sums over positions), G is a function of more:
    # of a *state* of state_size(i) doubles, linear in the distribution of labels.  False: the state
    # is the marginals, state_size() the size of theta.
    cdef readonly bint has_state
    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil
    # project() with a state instead of the marginals.
    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil
    # state <- the state of a label.
    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil
    # marginals <- the marginals of a state.
    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil
    # True: term() and slope() are implemented.
    cdef readonly bint has_term
    # G at a state.
    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil
    # Its derivative at (1 - gamma) a + gamma b towards b; may be infinite at gamma 0 and 1.
    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil
    # labels <- n labels drawn from p(y) ~ exp <theta, mu(y)>, concatenated; `uniforms` has a number
    # from [0, 1) for each entry of these labels.
    cdef readonly bint has_samples
    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil
    # out <- J direction, dense, in theta's layout, padding 0.  J is the Jacobian d marginals /
    # d theta at theta, which is symmetric; at kinks of project(), one of its one-sided Jacobians.
    # derivative_bytes() is the scratch memory it needs (asked once, with the GIL).
    cdef readonly bint has_derivative
    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil
    cpdef Py_ssize_t derivative_bytes(self) except -1
