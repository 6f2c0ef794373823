/* Assignment problems of at most 64 columns: the state of a search stays in vector registers.
 *
 * One text (small_impl.h) for plain C, for AVX2 and for its later form with registers of masks
 * (AVX-512VL); one instance per number of vectors in a row.  STRUCTSOLVE_SIMD=plain|avx2 asks for
 * a lesser one.  All compute the same bits: minima and differences round alike, and ties go the
 * same way, whatever the number of lanes.  Vectors of 512 bits were no faster: they lower the
 * clock. */
#ifndef STRUCTSOLVE_SMALL_H
#define STRUCTSOLVE_SMALL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "structsolve/simd/targets.h"

#define SS_SMALL 64

typedef uint64_t ss_set; /* of columns, or of rows */

/* Least total cost of rows <= cols <= SS_SMALL.  Rows of `cost` are `ld` doubles, a multiple of 8;
 * what lies beyond the columns is infinite, as is a forbidden pair.  v, row, column: see
 * _jonker_volgenant.pxd.  Returns 0 if every way uses an infinite cost. */
typedef int (*ss_small_solve)(ptrdiff_t rows, ptrdiff_t cols, const double *cost,
                              double *v, int *row, int *column);

/* Number of the lowest bit; `bits` is not 0. */
static inline int ss_lowest(ss_set bits) {
#if defined(__GNUC__)
  return __builtin_ctzll(bits);
#else
  int bit = 0;
  while (!(bits >> bit & 1)) bit++;
  return bit;
#endif
}

/* A word that travels in a lane of doubles: nothing is ever computed with it. */
static inline uint64_t ss_word(double x) {
  uint64_t word;
  memcpy(&word, &x, sizeof word);
  return word;
}

static inline double ss_lane(uint64_t word) {
  double x;
  memcpy(&x, &word, sizeof x);
  return x;
}

#if defined(__GNUC__)
#define SS_UNROLL _Pragma("GCC unroll 16")
#else
#define SS_UNROLL
#endif

/* ---- plain: vectors of one lane ---- */

#define NAME(f) ss_small_plain_##f
#define VEC double
#define MASK int
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, x) (*(p) = (x))
#define SET1(x) (x)
#define FIRST(x) (x)
#define SUB(a, b) ((a) - (b))
#define ADD(a, b) ((a) + (b))
#define MINV(a, b) ((a) < (b) ? (a) : (b))
#define MAXV(a, b) ((a) > (b) ? (a) : (b))
#define LT(a, b) ((a) < (b))
#define EQ(a, b) ((a) == (b))
#define PICK(f, yes, no) ((f) ? (yes) : (no))
#define ONLY(f, x) ((f) ? (x) : 0.0)
#define BITS(f) ((ss_set)(f))
#define WORD(x) ss_word(x) /* of the first lane */
#define SET1_WORD(u) ss_lane(u)
#define ONE_HOT(j, w) ((j) == (w))
/* x with +inf, or -inf, in the lane of column j. */
#define RAISED(x, j, w) ((j) == (w) ? (double)INFINITY : (x))
#define SUNK(x, j, w) ((j) == (w) ? -(double)INFINITY : (x))
/* The lesser of `least` and x, whose lane of column j does not count; x - y in some lanes. */
#define MIN_BUT(least, x, j, w) MINV(RAISED(x, j, w), least)
#define LESS_ONLY(x, f, y) SUB(x, ONLY(f, y))
/* Column j is passed: `ahead` has lost its bit.  Without registers of masks it gets the distance
 * inf and the price -inf, by which no cost of its own is ever less. */
#define PASS(d, price, j, w) ((d) = RAISED(d, j, w), (price) = SUNK(price, j, w))
#define NEARER(ahead, w, x, d) LT(x, d)
#define NEAREST(ahead, w, x, d) MINV(x, d)
#define ALL_MIN(x) (x)
#define OPEN_AT(signs, x, m, word) ((x) == (m) && ss_word(word) >> 63 ? 1.0 : (signs))
#define ANY_SIGN(signs) ((signs) != 0)
#define ALL_TWO(a, b)
#include "small_impl.h"

static int ss_small_plain(ptrdiff_t rows, ptrdiff_t cols, const double *cost,
                          double *v, int *row, int *column) {
  return ss_small_plain_solve((int)cols, rows, cols, cost, v, row, column);
}

/* ---- x86: vectors of four lanes ---- */

#if defined(SS_X86) && defined(__x86_64__)
#define SS_SMALL_X86 1
SS_TARGET("avx2,bmi,bmi2")

/* Loaded from SS_SMALL - j on: something for lane j, and something else for the others. */
static const int64_t ss_one_hot[2 * SS_SMALL] = {[SS_SMALL] = -1};
static const double ss_raise[2 * SS_SMALL] = {
    [0 ... SS_SMALL - 1] = -INFINITY, INFINITY, [SS_SMALL + 1 ... 2 * SS_SMALL - 1] = -INFINITY};
static const double ss_sink[2 * SS_SMALL] = {
    [0 ... SS_SMALL - 1] = INFINITY, -INFINITY, [SS_SMALL + 1 ... 2 * SS_SMALL - 1] = INFINITY};

static SS_INLINE __m256d ss_avx2_all_min(__m256d x) {
  x = _mm256_min_pd(x, _mm256_permute2f128_pd(x, x, 1));
  return _mm256_min_pd(x, _mm256_permute_pd(x, 5));
}

/* Pairs (smallest, second smallest) of the lanes to one pair in every lane. */
static SS_INLINE void ss_avx2_all_two(__m256d *a, __m256d *b) {
  __m256d p = _mm256_permute2f128_pd(*a, *a, 1), q = _mm256_permute2f128_pd(*b, *b, 1);
  *b = _mm256_min_pd(_mm256_max_pd(*a, p), _mm256_min_pd(*b, q));
  *a = _mm256_min_pd(*a, p);
  p = _mm256_permute_pd(*a, 5);
  q = _mm256_permute_pd(*b, 5);
  *b = _mm256_min_pd(_mm256_max_pd(*a, p), _mm256_min_pd(*b, q));
  *a = _mm256_min_pd(*a, p);
}

#define NAME(f) ss_small_avx2_##f
#define MASK __m256d
#define LT(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define EQ(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define PICK(f, yes, no) _mm256_blendv_pd(no, yes, f)
#define ONLY(f, x) _mm256_and_pd(f, x)
#define BITS(f) ((ss_set)_mm256_movemask_pd(f))
#define ONE_HOT(j, w) WINDOW(ss_one_hot, j, w)
#define WINDOW(table, j, w) _mm256_loadu_pd((const double *)(table) + SS_SMALL - (j) + 4 * (w))
#define RAISED(x, j, w) _mm256_max_pd(WINDOW(ss_raise, j, w), x)
#define SUNK(x, j, w) _mm256_min_pd(WINDOW(ss_sink, j, w), x)
#define MIN_BUT(least, x, j, w) MINV(RAISED(x, j, w), least)
#define LESS_ONLY(x, f, y) SUB(x, ONLY(f, y))
#define PASS(d, price, j, w) ((d) = RAISED(d, j, w), (price) = SUNK(price, j, w))
#define NEARER(ahead, w, x, d) LT(x, d)
#define NEAREST(ahead, w, x, d) MINV(x, d)
#include "small_x86.h"

SS_TARGET_END
SS_TARGET("avx512f,avx512vl,avx512dq,bmi,bmi2")

#define NAME(f) ss_small_avx512vl_##f
#define MASK __mmask8
#define LT(a, b) _mm256_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define EQ(a, b) _mm256_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define PICK(f, yes, no) _mm256_mask_mov_pd(no, f, yes)
#define ONLY(f, x) _mm256_maskz_mov_pd(f, x)
#define BITS(f) ((ss_set)(f))
#define ONE_HOT(j, w) ((__mmask8)((ss_set)1 << (j) >> 4 * (w) & 15))
#define MIN_BUT(least, x, j, w) _mm256_mask_min_pd(least, (__mmask8)~ONE_HOT(j, w), x, least)
#define LESS_ONLY(x, f, y) _mm256_mask_sub_pd(x, f, x, y)
#define PASS(d, price, j, w) ((void)0)
#define SOME(bits, w) ((__mmask8)((bits) >> 4 * (w)))
#define NEARER(ahead, w, x, d) _mm256_mask_cmp_pd_mask(SOME(ahead, w), x, d, _CMP_LT_OQ)
#define NEAREST(ahead, w, x, d)                                                                   \
  _mm256_mask_min_pd(_mm256_set1_pd(INFINITY), SOME(ahead, w), x, d)
#include "small_x86.h"

SS_TARGET_END
#endif

static ss_small_solve ss_pick_small(void) {
#ifdef SS_SMALL_X86
  const char *wish = getenv("STRUCTSOLVE_SIMD");
  __builtin_cpu_init();
  if (wish && strcmp(wish, "plain") == 0) return ss_small_plain;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2"))
    return ss_small_plain;
  if ((wish && strcmp(wish, "avx2") == 0) || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq"))
    return ss_small_avx2_any;
  return ss_small_avx512vl_any;
#endif
  return ss_small_plain;
}

#endif
