/* A few columns of W against one row of features: W[index[j], cols[c]] += coefs[c] * value[j], and
 * its adjoint.  One pair of functions per storage of the features, in the order of design.pxd. */
#ifndef STRUCTSOLVE_COLUMNS_H
#define STRUCTSOLVE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  void (*scatter)(ptrdiff_t n, const int32_t *index, const void *values, ptrdiff_t m,
                  const int *cols, const double *coefs, double *W, ptrdiff_t stride);
  /* out[c] += ...: starts from what out holds */
  void (*gather)(ptrdiff_t n, const int32_t *index, const void *values, ptrdiff_t m,
                 const int *cols, const double *W, ptrdiff_t stride, double *out);
} ss_column_kernels;

/* One and two columns, by far the most frequent, keep what the loop over columns would reload. */
#define SS_COLUMNS(SUFFIX, T, VALUE, ROW)                                                          \
  static void ss_scatter_##SUFFIX(ptrdiff_t n, const int32_t *index, const void *values,           \
                                  ptrdiff_t m, const int *cols, const double *coefs, double *W,    \
                                  ptrdiff_t stride) {                                              \
    const T *value = (const T *)values;                                                            \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    if (m == 1) {                                                                                  \
      double *only = W + cols[0];                                                                  \
      const double a = coefs[0];                                                                   \
      for (ptrdiff_t j = 0; j < n; j++) only[(ptrdiff_t)(ROW) * stride] += a * (double)(VALUE);    \
      return;                                                                                      \
    }                                                                                              \
    if (m == 2) {                                                                                  \
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
  static void ss_gather_##SUFFIX(ptrdiff_t n, const int32_t *index, const void *values,            \
                                 ptrdiff_t m, const int *cols, const double *W, ptrdiff_t stride,  \
                                 double *out) {                                                    \
    const T *value = (const T *)values;                                                            \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    if (m == 1) {                                                                                  \
      const double *only = W + cols[0];                                                            \
      double total = out[0];                                                                       \
      for (ptrdiff_t j = 0; j < n; j++) total += only[(ptrdiff_t)(ROW) * stride] * (double)(VALUE); \
      out[0] = total;                                                                              \
      return;                                                                                      \
    }                                                                                              \
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
SS_COLUMNS(csr_ones, double, 1, index[j])

static const ss_column_kernels ss_columns[] = {
    {ss_scatter_dense_f64, ss_gather_dense_f64}, {ss_scatter_dense_f32, ss_gather_dense_f32},
    {ss_scatter_csr_f64, ss_gather_csr_f64},     {ss_scatter_csr_f32, ss_gather_csr_f32},
    {ss_scatter_csr_ones, ss_gather_csr_ones},
};

#undef SS_COLUMNS
#endif
