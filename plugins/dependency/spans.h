/* Sums over projective trees in weights, all spans of a length at a time (spans_impl.h): versions
 * for vectors of 8 lanes (AVX-512), 4 (AVX2 and FMA) and 2 (any processor).  They differ
 * by rounding only.  The recursion is that of _eisner.pyx. */
#ifndef STRUCTSOLVE_DEPENDENCY_SPANS_H
#define STRUCTSOLVE_DEPENDENCY_SPANS_H

#include <stddef.h>
#include <string.h>

#include "structsolve/simd/targets.h"

/* Squares, [length of the span, its left end], of n + 1 rows of `width`: a vector that begins at
 * the last span of a row stays in the row, even if it begins `length` later. */
typedef struct {
  ptrdiff_t n, width;
  double *right, *left;               /* complete spans, headed by their left, or right, end */
  double *arc_right, *arc_left;       /* spans whose ends are joined by an arc to the right, left */
  double *weight_right, *weight_left; /* of these arcs; marginals in the end */
  /* Derivatives of the log of the sum over all trees, by each of these. */
  double *of_right, *of_left, *of_arc_right, *of_arc_left;
} dep_spans;

enum { DEP_SQUARES = 10, DEP_LANES = 8 };

/* An odd number of cache lines: a column of a square spreads over all sets of a cache. */
static ptrdiff_t dep_width(ptrdiff_t n) { return ((n + 2 * DEP_LANES) / DEP_LANES | 1) * DEP_LANES; }

static size_t dep_bytes(ptrdiff_t n) {
  return (size_t)(DEP_SQUARES * (n + 1) * dep_width(n)) * sizeof(double) + 64;
}

typedef void (*dep_pass)(const dep_spans *s);

#ifdef SS_X86

SS_TARGET("avx2,fma")
#define NAME(f) dep_##f##_4
#include "structsolve/simd/doubles_avx2.h"
#define TILE 2
#include "spans_impl.h"
SS_TARGET_END
SS_TARGET("avx512f")
#define NAME(f) dep_##f##_8
#include "structsolve/simd/doubles_avx512.h"
#define TILE 1
#include "spans_impl.h"
SS_TARGET_END
#endif

/* Two lanes in plain C, which compilers turn into the vectors that every processor has. */
typedef struct {
  double x[2];
} dep_two;
static SS_INLINE dep_two dep_load(const double *p) {
  dep_two y;
  memcpy(y.x, p, sizeof y.x);
  return y;
}
static SS_INLINE void dep_store(double *p, dep_two y) { memcpy(p, y.x, sizeof y.x); }
static SS_INLINE dep_two dep_set1(double a) {
  const dep_two y = {{a, a}};
  return y;
}
static SS_INLINE dep_two dep_plus(dep_two a, dep_two b) {
  const dep_two y = {{a.x[0] + b.x[0], a.x[1] + b.x[1]}};
  return y;
}
static SS_INLINE dep_two dep_times(dep_two a, dep_two b) {
  const dep_two y = {{a.x[0] * b.x[0], a.x[1] * b.x[1]}};
  return y;
}
#define NAME(f) dep_##f##_2
#define VEC dep_two
#define LANES 2
#define TILE 4
#define LOAD(p) dep_load(p)
#define STORE(p, x) dep_store(p, x)
#define SET1(x) dep_set1(x)
#define ADD(a, b) dep_plus(a, b)
#define MUL(a, b) dep_times(a, b)
#define MULADD(a, b, c) dep_plus(dep_times(a, b), c)
#include "spans_impl.h"

/* The passes for the processor's vectors, by the name of its loops (simd/loops.h).  Returns the most
 * words for which they beat a chart: two lanes do not make up for rows that lie apart. */
static ptrdiff_t dep_passes_of(const char *name, dep_pass *inside, dep_pass *outside) {
  ptrdiff_t most = 80;
  *inside = dep_inside_2;
  *outside = dep_outside_2;
#ifdef SS_X86
  if (!strcmp(name, "avx2")) *inside = dep_inside_4, *outside = dep_outside_4, most = 1000;
  if (!strcmp(name, "avx512")) *inside = dep_inside_8, *outside = dep_outside_8, most = 1000;
#endif
  (void)name;
  return most;
}

#endif
