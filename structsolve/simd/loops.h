/* Inner loops over the contiguous state axis: row scoring, and the steps of max-plus and
 * sum-product recursions.  This file has their table; the loops are in loops_tables.h, which
 * loops.pyx compiles once for all modules.
 *
 * Each has three versions: AVX-512, AVX2+FMA and plain C, chosen once per process by the
 * processor (STRUCTSOLVE_SIMD=avx512|avx2|plain selects a lesser one).  They differ by
 * rounding only.  Builds need no -march flag. */
#ifndef STRUCTSOLVE_LOOPS_H
#define STRUCTSOLVE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  /* out[t] = constant last[t] + sum_j value[j] W[index[j], t], one function per storage, in the
   * order of potentials/features.pxd; `last` is not read if the constant is 0 */
  void (*score[5])(ptrdiff_t n, const int32_t *index, const void *values, const double *W,
                   ptrdiff_t stride, ptrdiff_t width, double constant, const double *last,
                   double *out);
  /* next[t] = add[t] + max_s previous[s] + T[s, t] */
  void (*maxplus)(ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,
                  ptrdiff_t width, const double *add, double *next);
  /* out[s] = max_t T[s, t] + x[t], over the whole width: x must be -inf in the padding */
  void (*maxdots)(ptrdiff_t rows, const double *T, ptrdiff_t stride, ptrdiff_t width,
                  const double *x, double *out);
  /* next[t] = sum_s previous[s] E[s, t] */
  void (*sumprod)(ptrdiff_t K, const double *previous, const double *E, ptrdiff_t stride,
                  ptrdiff_t width, double *next);
  /* out[s] = sum_t E[s, t] x[t] */
  void (*dots)(ptrdiff_t rows, const double *E, ptrdiff_t stride, ptrdiff_t width,
               const double *x, double *out);
  /* out[s, t] = E[s, t] sum_v a[v, s] b[v, t], all rows `stride` long; out may be E */
  void (*outer)(ptrdiff_t n, ptrdiff_t K, const double *a, const double *b, const double *E,
                ptrdiff_t stride, ptrdiff_t width, double *out);
  /* out = exp(x - shift), 0 below -708 and in the padding; out may be x */
  void (*exp_rows)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns,
                   double shift, double *out);
  /* *top = largest entry, *low = smallest entry other than `skip`; -inf and inf without entries */
  void (*range)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns, double skip,
                double *low, double *top);
  /* row *= factor; *top = largest entry, *low = smallest that is not 0 */
  void (*mul_range)(ptrdiff_t width, const double *factor, double *row, double *low, double *top);
  /* first s < K with (previous[s] + row[s]) + add == target; 0 if there is none */
  ptrdiff_t (*reach)(ptrdiff_t K, const double *previous, const double *row, double add,
                     double target);
  /* rows 1 .. L - 1 of alpha from row 0: each is maxplus() of the row before, T and its row of
   * add */
  void (*viterbi)(ptrdiff_t L, ptrdiff_t K, const double *T, ptrdiff_t stride, const double *add,
                  double *alpha);
  /* first of the largest of K entries, in rows padded to whole vectors; 0 if all are NaN */
  ptrdiff_t (*first_best)(ptrdiff_t K, const double *row, double *top);
  /* sum of x */
  double (*total)(ptrdiff_t n, const double *x);
  const char *name;
} ss_loop_table;

#endif
