# A point of the polytope near the rows' own answers.
from structsolve.plugins.permutation._prices cimport Search

# s.trial <- a point of the polytope near s.q, exact but for the rounding of sums.
cdef void round_answers(Search* s) noexcept nogil
# G + <theta, .> there.
cdef double rounded_value(const Search* s) noexcept nogil
