# build: glue
"""Oracles that decode super-modular graphs by one minimum cut, and others by another oracle."""

from structsolve.operators cimport Oracle, Relaxation
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.cuts._minimum_cut cimport CutNetworks, Obstacle


cdef class CutOracle(Oracle):
    """The best labeling by one minimum cut; it refuses other graphs.

    Parameters
    ----------
    networks : CutNetworks
    layout : PartLayout

    Raises
    ------
    ValueError
        If a model is not super-modular; the message names the example, the edge, the
        states and the amount.
    """

    cdef CutNetworks networks

    def __init__(self, CutNetworks networks not None, PartLayout layout not None):
        super().__init__(layout)
        self.networks, self.n_states = networks, networks.shape.n_states
        self.work_bytes = networks.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Obstacle obstacle
        if self.networks.solve(i, theta, label, value, bound, &obstacle, work):
            return 0
        with gil:
            self._refuse(i, obstacle.edge, obstacle.a, obstacle.b, obstacle.amount)
        return -1

    def _refuse(self, Py_ssize_t i, Py_ssize_t e, int a, int b, double amount):
        shape = self.networks.shape
        u, v = shape.graph_of(i)[1][e].tolist()
        where = f"example {i}, edge {e} between nodes {u} and {v}"
        if not abs(amount) < float("inf"):
            raise ValueError(
                f"{where}: scores of -inf forbid pairs of states around ({a}, {b}), which oracle "
                "'mincut' takes of two states only, and only pairs of different ones; use "
                "oracle='auto'"
            )
        raise ValueError(
            f"{where}: the table t is not super-modular, which oracle 'mincut' needs: "
            f"t[{a}, {b}] + t[{a + 1}, {b + 1}] - t[{a}, {b + 1}] - t[{a + 1}, {b}] is "
            f"{amount:g}, expected at least 0; train with constraints=[SuperModular('pair')] of "
            "the solver, or use oracle='auto'"
        )


cdef class CutFirstOracle(Oracle):
    """A minimum cut if the graph is super-modular, else the answer of another oracle.

    Parameters
    ----------
    other : Oracle
    networks : CutNetworks
    layout : PartLayout
    """

    cdef CutNetworks networks
    cdef Oracle other

    def __init__(self, Oracle other not None, CutNetworks networks not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.networks, self.other = networks, other
        self.exact, self.n_states = other.exact, other.n_states
        self.work_bytes = max(networks.work_bytes, other.work_bytes)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Obstacle obstacle
        if self.networks.solve(i, theta, label, value, bound, &obstacle, work):
            return 0
        return self.other.argmax(i, theta, label, value, bound, work)


cdef class CutFirstRelaxation(Relaxation):
    """The linear relaxation: a labeling if the graph is super-modular, else another's answer.

    Parameters
    ----------
    other : Relaxation
    networks : CutNetworks
    layout : PartLayout
    """

    cdef CutNetworks networks
    cdef Relaxation other

    def __init__(self, Relaxation other not None, CutNetworks networks not None,
                 PartLayout layout not None):
        super().__init__(layout)
        self.networks, self.other, self.n_states = networks, other, other.n_states
        self.work_bytes = max(networks.work_bytes, other.work_bytes)

    def allow(self, double gap):
        """Pass the gap to the other relaxation; see the base."""
        self.other.allow(gap)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, double* bound, char* work) except -1 nogil:
        cdef Obstacle obstacle
        if not self.networks.solve(i, theta, label, value, bound, &obstacle, work):
            return self.other.relax(i, theta, mu, label, value, bound, work)
        self.networks.shape.indicate(i, label, mu)
        return 1
