# Derivatives of the marginals of arcs of projective trees.
from structsolve.plugins.dependency._eisner cimport Chart

# out[m, head] <- what the marginals of a chart gain along `direction` (rows of n + 1).  `total` and
# `table` are what fill() returned and was given; `memory` has room for three charts.
cdef void spread_along(const Chart* chart, double total, const double* table,
                       const double* direction, double* out, char* memory) noexcept nogil
