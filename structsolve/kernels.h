/* Inner loops over the contiguous state axis: row scoring and the max-plus step.
 *
 * Three versions of each: AVX-512, AVX2+FMA and plain C, chosen once per process by what the
 * processor has (STRUCTSOLVE_SIMD=avx512|avx2|plain asks for a lesser one).  They differ by
 * rounding only.  Builds need no -march flag. */
#ifndef STRUCTSOLVE_KERNELS_H
#define STRUCTSOLVE_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void (*score_csr_f64)(ptrdiff_t, const int32_t *, const double *, const double *, ptrdiff_t,
                        ptrdiff_t, double *);
  void (*score_csr_f32)(ptrdiff_t, const int32_t *, const float *, const double *, ptrdiff_t,
                        ptrdiff_t, double *);
  void (*score_dense_f64)(ptrdiff_t, const int32_t *, const double *, const double *, ptrdiff_t,
                          ptrdiff_t, double *);
  void (*score_dense_f32)(ptrdiff_t, const int32_t *, const float *, const double *, ptrdiff_t,
                          ptrdiff_t, double *);
  void (*score_ones)(ptrdiff_t, const int32_t *, const double *, ptrdiff_t, ptrdiff_t, double *);
  void (*maxplus)(ptrdiff_t, const double *, const double *, ptrdiff_t, ptrdiff_t, double *);
  const char *name;
} ss_kernel_table;

/* ---- plain C: any width, any compiler ---- */

#define SS_PLAIN_SCORE(SUFFIX, T, VALUE, ROW)                                                      \
  static void ss_plain_score_##SUFFIX(ptrdiff_t n, const int32_t *index, const T *value,           \
                                      const double *W, ptrdiff_t stride, ptrdiff_t width,          \
                                      double *out) {                                               \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const double *row = W + (ptrdiff_t)(ROW) * stride;                                           \
      const double x = (double)(VALUE);                                                            \
      for (ptrdiff_t t = 0; t < width; t++) out[t] += x * row[t];                                  \
    }                                                                                              \
    (void)index;                                                                                   \
  }
SS_PLAIN_SCORE(csr_f64, double, value[j], index[j])
SS_PLAIN_SCORE(csr_f32, float, value[j], index[j])
SS_PLAIN_SCORE(dense_f64, double, value[j], j)
SS_PLAIN_SCORE(dense_f32, float, value[j], j)
#undef SS_PLAIN_SCORE

static void ss_plain_score_ones(ptrdiff_t n, const int32_t *index, const double *W,
                                ptrdiff_t stride, ptrdiff_t width, double *out) {
  for (ptrdiff_t j = 0; j < n; j++) {
    const double *row = W + (ptrdiff_t)index[j] * stride;
    for (ptrdiff_t t = 0; t < width; t++) out[t] += row[t];
  }
}

static void ss_plain_maxplus(ptrdiff_t K, const double *previous, const double *T,
                             ptrdiff_t stride, ptrdiff_t width, double *next) {
  for (ptrdiff_t t = 0; t < width; t++) next[t] = previous[0] + T[t];
  for (ptrdiff_t s = 1; s < K; s++) {
    const double *row = T + s * stride;
    for (ptrdiff_t t = 0; t < width; t++) {
      const double x = previous[s] + row[t];
      next[t] = next[t] < x ? x : next[t];
    }
  }
}

static const ss_kernel_table ss_plain_table = {
    ss_plain_score_csr_f64,   ss_plain_score_csr_f32, ss_plain_score_dense_f64,
    ss_plain_score_dense_f32, ss_plain_score_ones,    ss_plain_maxplus,
    "plain",
};

/* ---- x86 vectors ---- */

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__)) && !defined(STRUCTSOLVE_PLAIN)
#define SS_X86 1
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define NAME(f) ss_avx2_##f
#define LABEL "avx2"
#define VEC __m256d
#define LANES 4
#define MAX_TILE 8
#define MAXPLUS_TILE 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, v) _mm256_storeu_pd(p, v)
#define SET1(x) _mm256_set1_pd(x)
#define ADD(a, b) _mm256_add_pd(a, b)
#define MULADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define MAXV(a, b) _mm256_max_pd(a, b)
#include "kernels_impl.h"
#undef NAME
#undef LABEL
#undef VEC
#undef LANES
#undef MAX_TILE
#undef MAXPLUS_TILE
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef MULADD
#undef MAXV
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif
#define NAME(f) ss_avx512_##f
#define LABEL "avx512"
#define VEC __m512d
#define LANES 8
#define MAX_TILE 8
#define MAXPLUS_TILE 4
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, v) _mm512_storeu_pd(p, v)
#define SET1(x) _mm512_set1_pd(x)
#define ADD(a, b) _mm512_add_pd(a, b)
#define MULADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define MAXV(a, b) _mm512_max_pd(a, b)
#include "kernels_impl.h"
#undef NAME
#undef LABEL
#undef VEC
#undef LANES
#undef MAX_TILE
#undef MAXPLUS_TILE
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef MULADD
#undef MAXV
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* The table for rows of `width` doubles (the padded width of a block: 1, 2, 4 or 8k). */
static const ss_kernel_table *ss_kernels(ptrdiff_t width) {
  const ss_kernel_table *table = &ss_plain_table;
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
