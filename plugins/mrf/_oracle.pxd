# What the oracles of graphs share.
from structsolve.operators cimport Oracle

from structsolve.plugins.mrf._shape cimport GraphShape


cdef class GraphOracle(Oracle):
    cdef readonly GraphShape shape

    # Of local search on any of the graphs.
    cdef Py_ssize_t climb_bytes(self) noexcept
