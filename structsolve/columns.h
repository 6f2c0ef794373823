/* A few columns of W against one row of features: W[index[j], cols[c]] += coefs[c] * value[j], and
 * its adjoint.  For block steps that change a handful of labels out of many. */
#ifndef STRUCTSOLVE_COLUMNS_H
#define STRUCTSOLVE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#define SS_COLUMNS(SUFFIX, T, VALUE, ROW)                                                          \
  static void ss_scatter_##SUFFIX(ptrdiff_t n, const int32_t *index, const T *value, ptrdiff_t m,  \
                                  const int *cols, const double *coefs, double *W,                 \
                                  ptrdiff_t stride) {                                              \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    if (m == 2) { /* by far the most frequent case */                                              \
      double *first = W + cols[0], *second = W + cols[1];                                          \
      const double a = coefs[0], b = coefs[1];                                                     \
      for (ptrdiff_t j = 0; j < n; j++) {                                                          \
        const ptrdiff_t row = (ptrdiff_t)(ROW) * stride;                                           \
        const double x = (double)(VALUE);                                                          \
        first[row] += a * x;                                                                       \
        second[row] += b * x;                                                                      \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      double *line = W + (ptrdiff_t)(ROW) * stride;                                                \
      const double x = (double)(VALUE);                                                            \
      for (ptrdiff_t c = 0; c < m; c++) line[cols[c]] += coefs[c] * x;                             \
    }                                                                                              \
  }                                                                                                \
  static void ss_gather_##SUFFIX(ptrdiff_t n, const int32_t *index, const T *value, ptrdiff_t m,   \
                                 const int *cols, const double *W, ptrdiff_t stride,               \
                                 double *out) {                                                    \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const double *line = W + (ptrdiff_t)(ROW) * stride;                                          \
      const double x = (double)(VALUE);                                                            \
      for (ptrdiff_t c = 0; c < m; c++) out[c] += line[cols[c]] * x;                               \
    }                                                                                              \
  }

SS_COLUMNS(dense_f64, double, value[j], j)
SS_COLUMNS(dense_f32, float, value[j], j)
SS_COLUMNS(csr_f64, double, value[j], index[j])
SS_COLUMNS(csr_f32, float, value[j], index[j])
SS_COLUMNS(ones, double, 1, index[j])

#undef SS_COLUMNS
#endif
