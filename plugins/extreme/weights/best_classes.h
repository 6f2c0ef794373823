/* Search for the best of many scores: branch-free loops that skip most scores fast.  They only
 * compare, so every instruction set gives the same result. */
#ifndef STRUCTSOLVE_BEST_CLASSES_H
#define STRUCTSOLVE_BEST_CLASSES_H

#include <math.h>
#include <stddef.h>

#include "structsolve/simd/clones.h"

enum {
  SS_BLOCK = 64, /* number of scores checked together for one above the worst kept */
  SS_PART = 16   /* number of scores checked together inside a block that has one */
};

static inline int ss_any_above(const float *x, int n, float worst) {
  int above = 0;
  for (int j = 0; j < n; j++) above |= x[j] > worst;
  return above;
}

/* The start of the first SS_PART entries (fewer at the end) that may hold one above `worst`, or
 * `last`. */
SS_CLONES static ptrdiff_t ss_next_above(const float *x, ptrdiff_t first, ptrdiff_t last,
                                         float worst) {
  while (first + SS_BLOCK <= last && !ss_any_above(x + first, SS_BLOCK, worst)) first += SS_BLOCK;
  while (first + SS_PART <= last && !ss_any_above(x + first, SS_PART, worst)) first += SS_PART;
  return first;
}

/* A lower bound of the k-th largest entry, k <= SS_BLOCK <= n, usually a close one: the k-th
 * largest of the maxima at each place of the blocks.  -inf if there is none; NaN is ignored. */
SS_CLONES static float ss_reached(const float *x, ptrdiff_t n, int k) {
  float top[SS_BLOCK], kth = INFINITY;
  for (int j = 0; j < SS_BLOCK; j++) top[j] = -INFINITY;
  for (ptrdiff_t c = 0; c + SS_BLOCK <= n; c += SS_BLOCK)
    for (int j = 0; j < SS_BLOCK; j++) top[j] = x[c + j] > top[j] ? x[c + j] : top[j];
  for (int j = 0; j < SS_BLOCK; j++) {
    int above = 0;
    for (int i = 0; i < SS_BLOCK; i++) above += top[i] > top[j];
    if (above < k && top[j] < kth) kth = top[j];
  }
  return kth;
}

#endif
