/* Sum-product over chains with one table for all edges, a whole pass at a time (passes_impl.h), for
 * AVX-512 and for AVX2 with FMA; other processors have the loops of simd/loops.h, row by row.  They
 * differ by rounding only.  SPAN, TINY, SCALE, MASS: see algorithms/messages.pxd. */
#ifndef STRUCTSOLVE_CHAIN_PASSES_H
#define STRUCTSOLVE_CHAIN_PASSES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "structsolve/simd/targets.h"

/* Rows 1 .. L - 1 of messages from the row before, the table and the node's factors; row 0 is
 * given.  *total gains the logarithms of the divisors.  Returns 0 if messages leave
 * the range. */
typedef int (*chain_forward)(ptrdiff_t L, ptrdiff_t K, ptrdiff_t stride, const double *table,
                             const double *factors, double *row, double *total);
/* Back from the last row of `ahead`, which has factors and will have messages times them; nodes of
 * all but the last <- marginals.  `turned` is the transposed table. */
typedef int (*chain_backward)(ptrdiff_t L, ptrdiff_t K, ptrdiff_t stride, const double *turned,
                              const double *alpha, double *ahead, double *nodes);

/* rescale() of messages.pxd, with the range of the row. */
static int chain_rescale(double *row, ptrdiff_t stride, double *total) {
  double low = INFINITY, top = 0;
  for (ptrdiff_t s = 0; s < stride; s++) {
    if (row[s] > top) top = row[s];
    if (row[s] != 0 && row[s] < low) low = row[s];
  }
  if (!(low >= TINY && top > 0)) return 0;
  if (SCALE <= top && top <= 1 / SCALE) return 1;
  *total += log(top);
  for (ptrdiff_t s = 0; s < stride; s++) row[s] /= top;
  return low >= TINY * top;
}

#ifdef SS_X86

SS_TARGET("avx2,fma")
static inline double chain_total4(__m256d v) {
  v = _mm256_add_pd(v, _mm256_permute2f128_pd(v, v, 1));
  return _mm256_cvtsd_f64(_mm256_add_pd(v, _mm256_permute_pd(v, 5)));
}
#define NAME(f) chain_##f##_4
#include "structsolve/simd/doubles_avx2.h"
#define INFINITY_IF_ZERO(a)                                                                        \
  _mm256_blendv_pd(a, _mm256_set1_pd(INFINITY), _mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_EQ_OQ))
#define ANY_LESS(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ))
#define ALL_LESS(a, b) (_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)) == 15)
#define TOTAL(a) chain_total4(a)
#include "passes_impl.h"
SS_TARGET_END
SS_TARGET("avx512f")
#define NAME(f) chain_##f##_8
#include "structsolve/simd/doubles_avx512.h"
#define INFINITY_IF_ZERO(a)                                                                        \
  _mm512_mask_mov_pd(a, _mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_EQ_OQ),                    \
                     _mm512_set1_pd(INFINITY))
#define ANY_LESS(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define ALL_LESS(a, b) (_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ) == 255)
#define TOTAL(a) _mm512_reduce_add_pd(a)
#include "passes_impl.h"
SS_TARGET_END
#endif

/* The passes for rows whose loops (simd/loops.h) have this name; 0 if there are none. */
static int chain_passes_of(const char *name, chain_forward *forward, chain_backward *backward) {
#ifdef SS_X86
  if (!strcmp(name, "avx512")) {
    *forward = chain_forward_8;
    *backward = chain_backward_8;
    return 1;
  }
  if (!strcmp(name, "avx2")) {
    *forward = chain_forward_4;
    *backward = chain_backward_4;
    return 1;
  }
#endif
  (void)name;
  *forward = 0;
  *backward = 0;
  return 0;
}

#endif
