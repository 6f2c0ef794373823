# Derivatives of the marginals of arcs of projective trees.
from structsolve.plugins.dependency._eisner cimport Chart

# out[m, head] <- the derivatives of a chart's marginals along `direction` (rows of n + 1).
# `total` and `table` are the result and an argument of fill(); `memory` has room for three charts.
cdef void spread_along(const Chart* chart, double total, const double* table,
                       const double* direction, double* out, char* memory) noexcept nogil
