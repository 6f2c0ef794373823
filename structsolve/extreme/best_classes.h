/* Where the best of many scores are: loops without branches, so that most are passed over fast.
 * Comparisons alone, which every instruction set answers alike. */
#ifndef STRUCTSOLVE_BEST_CLASSES_H
#define STRUCTSOLVE_BEST_CLASSES_H

#include <math.h>
#include <stddef.h>

#include "structsolve/simd/clones.h"

enum {
  SS_BLOCK = 64, /* scores that are looked at together for one above the worst kept */
  SS_PART = 16   /* and, where a block has one, so many of it */
};

static inline int ss_any_above(const float *x, int n, float worst) {
  int above = 0;
  for (int j = 0; j < n; j++) above |= x[j] > worst;
  return above;
}

/* The first of SS_PART entries, or fewer at the end, that may have one above `worst`; or last. */
SS_CLONES static ptrdiff_t ss_next_above(const float *x, ptrdiff_t first, ptrdiff_t last,
                                         float worst) {
  while (first + SS_BLOCK <= last && !ss_any_above(x + first, SS_BLOCK, worst)) first += SS_BLOCK;
  while (first + SS_PART <= last && !ss_any_above(x + first, SS_PART, worst)) first += SS_PART;
  return first;
}

/* A number that at least k entries reach, k <= SS_BLOCK <= n, and seldom many more: the k-th of
 * the largest entries at each place of the blocks.  -inf where that is none; NaN is passed over. */
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
