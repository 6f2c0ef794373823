/* A few columns of W against one row of features: W[index[j], cols[c]] += coefs[c] * value[j], and
 * its adjoint.  One pair of functions per storage of the features, in the order of
 * `Storage` in potentials/features.pxd. */
#ifndef STRUCTSOLVE_COLUMNS_H
#define STRUCTSOLVE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "structsolve/simd/clones.h"

typedef struct {
  void (*scatter)(ptrdiff_t n, const int32_t *index, const void *values, ptrdiff_t m,
                  const int *cols, const double *coefs, double *W, ptrdiff_t stride);
  /* out[c] += ...: adds to the values in out */
  void (*gather)(ptrdiff_t n, const int32_t *index, const void *values, ptrdiff_t m,
                 const int *cols, const double *W, ptrdiff_t stride, double *out);
} ss_column_loops;

/* Coefficients as a row of W from column *first on, of the number returned: those of some columns
 * filled up with zeros to whole vectors, if a quarter is given and W has room; those of adjacent
 * columns as they are; else 0. */
enum { SS_MOST_FILLED = 64 };
static ptrdiff_t ss_as_row(ptrdiff_t m, const int *cols, ptrdiff_t stride, const double **coefs,
                           double *room, ptrdiff_t *first) {
  int low = cols[0], high = cols[0];
  for (ptrdiff_t c = 1; c < m; c++) {
    low = cols[c] < low ? cols[c] : low;
    high = cols[c] > high ? cols[c] : high;
  }
  const ptrdiff_t whole = (high - low + 8) / 8 * 8;
  *first = low;
  if (whole <= SS_MOST_FILLED && low + whole <= stride && whole <= 4 * m) {
    for (ptrdiff_t c = 0; c < whole; c++) room[c] = 0;
    for (ptrdiff_t c = 0; c < m; c++) room[cols[c] - low] += (*coefs)[c];
    *coefs = room;
    return whole;
  }
  for (ptrdiff_t c = 0; c < m; c++)
    if (cols[c] != low + c) return 0;
  return m;
}

/* row[c] += x * coefs[c], as many at a time as vectors hold. */
static SS_INLINE void ss_add_row(ptrdiff_t m, double x, const double *restrict coefs,
                                 double *restrict row) {
  ptrdiff_t c = 0;
  for (; c + 8 <= m; c += 8)
    for (int k = 0; k < 8; k++) row[c + k] += coefs[c + k] * x;
  for (; c < m; c++) row[c] += coefs[c] * x;
}

/* A few columns at a time, a number known to the compiler, keep values in registers.  With more
 * columns, scatter handles one row of W at a time, which stays in the cache for all of them, by
 * vectors where the columns are close together. */
#define SS_IN_FOURS(FUNCTION, ...)                                                                 \
  for (; m >= 4; m -= 4, cols += 4, per_column += 4) FUNCTION(4, __VA_ARGS__);                     \
  if (m == 3) FUNCTION(3, __VA_ARGS__);                                                            \
  if (m == 2) FUNCTION(2, __VA_ARGS__);                                                            \
  if (m == 1) FUNCTION(1, __VA_ARGS__);

#define SS_COLUMNS(SUFFIX, T, VALUE, ROW)                                                          \
  static SS_INLINE void ss_scatter_some_##SUFFIX(const int M, ptrdiff_t n, const int32_t *index,   \
                                                 const T *value, const int *cols,                  \
                                                 const double *coefs, double *W,                   \
                                                 ptrdiff_t stride) {                               \
    double *column[4];                                                                             \
    double coef[4];                                                                                \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    for (int c = 0; c < M; c++) column[c] = W + cols[c], coef[c] = coefs[c];                       \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const ptrdiff_t row = (ptrdiff_t)(ROW) * stride;                                             \
      const double x = (double)(VALUE);                                                            \
      for (int c = 0; c < M; c++) column[c][row] += coef[c] * x;                                   \
    }                                                                                              \
  }                                                                                                \
  SS_CLONES static void ss_scatter_rows_##SUFFIX(                                                  \
      ptrdiff_t n, const int32_t *restrict index, const T *restrict value, ptrdiff_t m,            \
      const double *restrict coefs, double *restrict W, ptrdiff_t stride) {                        \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    for (ptrdiff_t j = 0; j < n; j++)                                                              \
      ss_add_row(m, (double)(VALUE), coefs, W + (ptrdiff_t)(ROW) * stride);                        \
  }                                                                                                \
  static void ss_scatter_##SUFFIX(ptrdiff_t n, const int32_t *index, const void *values,           \
                                  ptrdiff_t m, const int *cols, const double *coefs, double *W,    \
                                  ptrdiff_t stride) {                                              \
    const double *per_column = coefs;                                                              \
    if (m > 4) {                                                                                   \
      double room[SS_MOST_FILLED];                                                                 \
      ptrdiff_t first;                                                                             \
      const ptrdiff_t width = ss_as_row(m, cols, stride, &coefs, room, &first);                    \
      if (width) {                                                                                 \
        ss_scatter_rows_##SUFFIX(n, index, (const T *)values, width, coefs, W + first, stride);    \
        return;                                                                                    \
      }                                                                                            \
      const T *value = (const T *)values;                                                          \
      (void)value;                                                                                 \
      for (ptrdiff_t j = 0; j < n; j++) {                                                          \
        double *row = W + (ptrdiff_t)(ROW) * stride;                                               \
        const double x = (double)(VALUE);                                                          \
        for (ptrdiff_t c = 0; c < m; c++) row[cols[c]] += coefs[c] * x;                            \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    SS_IN_FOURS(ss_scatter_some_##SUFFIX, n, index, (const T *)values, cols, per_column, W, stride)\
  }                                                                                                \
  /* Two sums a column, in registers: in memory, or in one, every addition waits for the last. */  \
  static SS_INLINE void ss_gather_some_##SUFFIX(const int M, ptrdiff_t n, const int32_t *index,    \
                                                const T *value, const int *cols, const double *W,  \
                                                ptrdiff_t stride, double *out) {                   \
    const double *column[4];                                                                       \
    double even[4], odd[4];                                                                        \
    ptrdiff_t j = 0;                                                                               \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
    for (int c = 0; c < M; c++) column[c] = W + cols[c], even[c] = out[c], odd[c] = 0;             \
    for (; j + 1 < n; j++) {                                                                       \
      const ptrdiff_t row = (ptrdiff_t)(ROW) * stride;                                             \
      const double x = (double)(VALUE);                                                            \
      for (int c = 0; c < M; c++) even[c] += column[c][row] * x;                                   \
      j++;                                                                                         \
      const ptrdiff_t next = (ptrdiff_t)(ROW) * stride;                                            \
      const double y = (double)(VALUE);                                                            \
      for (int c = 0; c < M; c++) odd[c] += column[c][next] * y;                                   \
    }                                                                                              \
    if (j < n) {                                                                                   \
      const ptrdiff_t row = (ptrdiff_t)(ROW) * stride;                                             \
      const double x = (double)(VALUE);                                                            \
      for (int c = 0; c < M; c++) even[c] += column[c][row] * x;                                   \
    }                                                                                              \
    for (int c = 0; c < M; c++) out[c] = even[c] + odd[c];                                         \
  }                                                                                                \
  static void ss_gather_##SUFFIX(ptrdiff_t n, const int32_t *index, const void *values,            \
                                 ptrdiff_t m, const int *cols, const double *W, ptrdiff_t stride,  \
                                 double *out) {                                                    \
    double *per_column = out;                                                                      \
    SS_IN_FOURS(ss_gather_some_##SUFFIX, n, index, (const T *)values, cols, W, stride, per_column) \
  }

SS_COLUMNS(dense_f64, double, value[j], j)
SS_COLUMNS(dense_f32, float, value[j], j)
SS_COLUMNS(csr_f64, double, value[j], index[j])
SS_COLUMNS(csr_f32, float, value[j], index[j])
SS_COLUMNS(csr_ones, double, 1, index[j])

static const ss_column_loops ss_columns[] = {
    {ss_scatter_dense_f64, ss_gather_dense_f64}, {ss_scatter_dense_f32, ss_gather_dense_f32},
    {ss_scatter_csr_f64, ss_gather_csr_f64},     {ss_scatter_csr_f32, ss_gather_csr_f32},
    {ss_scatter_csr_ones, ss_gather_csr_ones},
};

#undef SS_COLUMNS
#undef SS_IN_FOURS
#endif
