/* The vector loops and their tables, see loops.h.  loops.pyx alone includes this file: the
 * compiler's own header of vector instructions is longer than most modules. */
#ifndef STRUCTSOLVE_LOOPS_TABLES_H
#define STRUCTSOLVE_LOOPS_TABLES_H

#include "loops.h"
#include "targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- plain C: any width, any compiler ---- */

/* Up to four columns stay in registers, because an addition in memory waits for the last store to
 * the same place. */
#define SS_PLAIN_SCORE(SUFFIX, T, VALUE, ROW)                                                      \
  static inline __attribute__((always_inline)) void ss_plain_score_tile_##SUFFIX(                  \
      const int columns, ptrdiff_t n, const int32_t *index, const T *value, const double *W,       \
      ptrdiff_t stride, double constant, const double *last, double *out) {                        \
    double acc[4];                                                                                 \
    for (int t = 0; t < columns; t++) acc[t] = constant != 0 ? constant * last[t] : 0;             \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const double *row = W + (ptrdiff_t)(ROW) * stride;                                           \
      const double x = (double)(VALUE);                                                            \
      for (int t = 0; t < columns; t++) acc[t] += x * row[t];                                      \
    }                                                                                              \
    for (int t = 0; t < columns; t++) out[t] = acc[t];                                             \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
  }                                                                                                \
  static void ss_plain_score_##SUFFIX(ptrdiff_t n, const int32_t *index, const void *values,       \
                                      const double *W, ptrdiff_t stride, ptrdiff_t width,          \
                                      double constant, const double *last, double *out) {          \
    const T *value = (const T *)values;                                                            \
    ptrdiff_t c = 0;                                                                               \
    for (; c + 4 <= width; c += 4)                                                                 \
      ss_plain_score_tile_##SUFFIX(4, n, index, value, W + c, stride, constant, last + c, out + c); \
    W += c, last += c, out += c;                                                                   \
    if (width - c == 3)                                                                            \
      ss_plain_score_tile_##SUFFIX(3, n, index, value, W, stride, constant, last, out);            \
    else if (width - c == 2)                                                                       \
      ss_plain_score_tile_##SUFFIX(2, n, index, value, W, stride, constant, last, out);            \
    else if (width - c == 1)                                                                       \
      ss_plain_score_tile_##SUFFIX(1, n, index, value, W, stride, constant, last, out);            \
  }
SS_PLAIN_SCORE(csr_f64, double, value[j], index[j])
SS_PLAIN_SCORE(csr_f32, float, value[j], index[j])
SS_PLAIN_SCORE(dense_f64, double, value[j], j)
SS_PLAIN_SCORE(dense_f32, float, value[j], j)
SS_PLAIN_SCORE(csr_ones, double, 1, index[j])
#undef SS_PLAIN_SCORE

static void ss_plain_maxplus(ptrdiff_t K, const double *previous, const double *T,
                             ptrdiff_t stride, ptrdiff_t width, const double *add, double *next) {
  for (ptrdiff_t t = 0; t < width; t++) next[t] = previous[0] + T[t];
  for (ptrdiff_t s = 1; s < K; s++) {
    const double *row = T + s * stride;
    for (ptrdiff_t t = 0; t < width; t++) {
      const double x = previous[s] + row[t];
      next[t] = next[t] < x ? x : next[t];
    }
  }
  for (ptrdiff_t t = 0; t < width; t++) next[t] += add[t];
}

static void ss_plain_maxdots(ptrdiff_t rows, const double *T, ptrdiff_t stride, ptrdiff_t width,
                             const double *x, double *out) {
  for (ptrdiff_t s = 0; s < rows; s++) {
    const double *row = T + s * stride;
    double top = row[0] + x[0];
    for (ptrdiff_t t = 1; t < width; t++) top = top < row[t] + x[t] ? row[t] + x[t] : top;
    out[s] = top;
  }
}

static void ss_plain_sumprod(ptrdiff_t K, const double *previous, const double *E,
                             ptrdiff_t stride, ptrdiff_t width, double *next) {
  for (ptrdiff_t t = 0; t < width; t++) next[t] = 0;
  for (ptrdiff_t s = 0; s < K; s++)
    for (ptrdiff_t t = 0; t < width; t++) next[t] += previous[s] * E[s * stride + t];
}

static void ss_plain_dots(ptrdiff_t rows, const double *E, ptrdiff_t stride, ptrdiff_t width,
                          const double *x, double *out) {
  for (ptrdiff_t s = 0; s < rows; s++) {
    double total = 0;
    for (ptrdiff_t t = 0; t < width; t++) total += E[s * stride + t] * x[t];
    out[s] = total;
  }
}

static void ss_plain_outer(ptrdiff_t n, ptrdiff_t K, const double *a, const double *b,
                           const double *E, ptrdiff_t stride, ptrdiff_t width, double *out) {
  for (ptrdiff_t s = 0; s < K; s++)
    for (ptrdiff_t t = 0; t < width; t++) {
      double total = 0;
      for (ptrdiff_t v = 0; v < n; v++) total += a[v * stride + s] * b[v * stride + t];
      out[s * stride + t] = E[s * stride + t] * total;
    }
}

static void ss_plain_exp_rows(ptrdiff_t rows, const double *x, ptrdiff_t stride,
                              ptrdiff_t columns, double shift, double *out) {
  for (ptrdiff_t r = 0; r < rows; r++, x += stride, out += stride) {
    for (ptrdiff_t t = 0; t < columns; t++)
      out[t] = x[t] - shift < -708 ? 0 : exp(x[t] - shift);
    for (ptrdiff_t t = columns; t < stride; t++) out[t] = 0;
  }
}

static void ss_plain_range(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns,
                           double skip, double *low, double *top) {
  double bottom = INFINITY, most = -INFINITY;
  for (ptrdiff_t r = 0; r < rows; r++, x += stride)
    for (ptrdiff_t t = 0; t < columns; t++) {
      most = most < x[t] ? x[t] : most;
      bottom = x[t] < bottom && x[t] != skip ? x[t] : bottom;
    }
  *low = bottom;
  *top = most;
}

static void ss_plain_mul_range(ptrdiff_t width, const double *factor, double *row, double *low,
                               double *top) {
  for (ptrdiff_t t = 0; t < width; t++) row[t] *= factor[t];
  ss_plain_range(1, row, width, width, 0, low, top);
}

static ptrdiff_t ss_plain_reach(ptrdiff_t K, const double *previous, const double *row, double add,
                                double target) {
  for (ptrdiff_t s = 0; s < K; s++)
    if (previous[s] + row[s] + add == target) return s;
  return 0;
}

static void ss_plain_viterbi(ptrdiff_t L, ptrdiff_t K, const double *T, ptrdiff_t stride,
                             const double *add, double *alpha) {
  for (ptrdiff_t v = 1; v < L; v++)
    ss_plain_maxplus(K, alpha + (v - 1) * stride, T, stride, stride, add + v * stride,
                     alpha + v * stride);
}

static ptrdiff_t ss_plain_first_best(ptrdiff_t K, const double *row, double *top) {
  ptrdiff_t best = 0;
  *top = -INFINITY;
  for (ptrdiff_t s = 0; s < K; s++)
    if (*top < row[s]) *top = row[s], best = s;
  if (*top == -INFINITY) /* the first state that is no worse than all others */
    for (ptrdiff_t s = K - 1; s >= 0; s--)
      if (row[s] == *top) best = s;
  return best;
}

static double ss_plain_total(ptrdiff_t n, const double *x) {
  double total = 0;
  for (ptrdiff_t j = 0; j < n; j++) total += x[j];
  return total;
}

static const ss_loop_table ss_plain_table = {
    {ss_plain_score_dense_f64, ss_plain_score_dense_f32, ss_plain_score_csr_f64,
     ss_plain_score_csr_f32, ss_plain_score_csr_ones},
    ss_plain_maxplus, ss_plain_maxdots, ss_plain_sumprod,   ss_plain_dots,  ss_plain_outer,
    ss_plain_exp_rows, ss_plain_range,  ss_plain_mul_range, ss_plain_reach, ss_plain_viterbi,
    ss_plain_first_best, ss_plain_total,
    "plain",
};

/* ---- x86 vectors ---- */

#ifdef SS_X86

SS_TARGET("avx2,fma")
#define WIDE 256

enum { SS_SUM, SS_TOP, SS_LOW };

static inline __m256d ss_avx2_join(__m256d a, __m256d b, int op) {
  return op == SS_SUM ? _mm256_add_pd(a, b)
                      : op == SS_TOP ? _mm256_max_pd(a, b) : _mm256_min_pd(a, b);
}

/* Sums (or largest entries) of four vectors. */
static inline void ss_avx2_fold4(__m256d a, __m256d b, __m256d c, __m256d d, int op, double *out) {
  const __m256d x = ss_avx2_join(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), op);
  const __m256d y = ss_avx2_join(_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d), op);
  _mm256_storeu_pd(out, ss_avx2_join(_mm256_permute2f128_pd(x, y, 0x20),
                                     _mm256_permute2f128_pd(x, y, 0x31), op));
}

static inline double ss_avx2_fold(__m256d v, int op) {
  v = ss_avx2_join(v, _mm256_permute2f128_pd(v, v, 1), op);
  return _mm256_cvtsd_f64(ss_avx2_join(v, _mm256_permute_pd(v, 5), op));
}

#define NAME(f) ss_avx2_##f
#include "structsolve/simd/doubles_avx2.h"
#define LABEL "avx2"
#define MAX_TILE 8
#define OUTER_ROWS 2
#define IF_EQUAL(a, b, x, y) _mm256_blendv_pd(y, x, _mm256_cmp_pd(a, b, _CMP_EQ_OQ))
#define ZERO_IF_LESS(a, b, x) _mm256_and_pd(x, _mm256_cmp_pd(a, b, _CMP_NLT_UQ))
#define HIGH_BITS(v) _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(v), 52))
#define EQUAL_BITS(a, b) ((unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ)))
#define FOLD4 ss_avx2_fold4
#define FOLD ss_avx2_fold
#include "loops_impl.h"
SS_TARGET_END
SS_TARGET("avx512f")
static inline __m512d ss_avx512_join(__m512d a, __m512d b, int op) {
  return op == SS_SUM ? _mm512_add_pd(a, b)
                      : op == SS_TOP ? _mm512_max_pd(a, b) : _mm512_min_pd(a, b);
}

static inline void ss_avx512_fold4(__m512d a, __m512d b, __m512d c, __m512d d, int op,
                                   double *out) {
  const __m512d x = ss_avx512_join(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b), op);
  const __m512d y = ss_avx512_join(_mm512_unpacklo_pd(c, d), _mm512_unpackhi_pd(c, d), op);
  const __m512d z = ss_avx512_join(_mm512_shuffle_f64x2(x, y, 0x88),
                                   _mm512_shuffle_f64x2(x, y, 0xdd), op);
  const __m512d w = ss_avx512_join(z, _mm512_shuffle_f64x2(z, z, 0xb1), op);
  _mm_storeu_pd(out, _mm512_castpd512_pd128(w));
  _mm_storeu_pd(out + 2, _mm256_castpd256_pd128(_mm512_extractf64x4_pd(w, 1)));
}

static inline double ss_avx512_fold(__m512d v, int op) {
  return op == SS_SUM ? _mm512_reduce_add_pd(v)
                      : op == SS_TOP ? _mm512_reduce_max_pd(v) : _mm512_reduce_min_pd(v);
}

#define NAME(f) ss_avx512_##f
#include "structsolve/simd/doubles_avx512.h"
#define LABEL "avx512"
#define MAX_TILE 8
#define OUTER_ROWS 4
#define IF_EQUAL(a, b, x, y) _mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), x)
#define ZERO_IF_LESS(a, b, x) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ), x)
#define HIGH_BITS(v) _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(v), 52))
#define EQUAL_BITS(a, b) ((unsigned)_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ))
#define FOLD4 ss_avx512_fold4
#define FOLD ss_avx512_fold
#include "loops_impl.h"
SS_TARGET_END
#endif

/* The table for rows of `width` doubles (the padded width of a block: 1, 2, 4 or 8k). */
static const ss_loop_table *ss_table_for(ptrdiff_t width) {
  const ss_loop_table *table = &ss_plain_table;
#ifdef SS_X86
  const char *wish = getenv("STRUCTSOLVE_SIMD");
  if (wish && strcmp(wish, "plain") == 0) return table;
  __builtin_cpu_init();
  if (width % 4 == 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    table = &ss_avx2_table;
  if (wish && strcmp(wish, "avx2") == 0) return table;
  if (width % 8 == 0 && __builtin_cpu_supports("avx512f")) table = &ss_avx512_table;
#endif
  (void)width;
  return table;
}

#endif
