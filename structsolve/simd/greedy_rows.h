/* Which rows of a kernel model should move next: those where a step on the dual gains most. */
#ifndef STRUCTSOLVE_GREEDY_ROWS_H
#define STRUCTSOLVE_GREEDY_ROWS_H

#include <stddef.h>

#include "structsolve/simd/mercer_columns.h"

/* Rows of a strip. */
enum { SS_STRIP = 32 };

/* A row has one number per label, a label one column of `ld` rows, a multiple of SS_STRIP: the score
   (loss added), the weight, and a bar, infinite where the weight is 0, else 0.  A step moves weight
   from the lowest label that has some to the highest; along it the dual rises by
   share * d (high - low - d curvature / 2), with d = (high - low) * inverse or all that weight.
   Writes, for each strip of rows, the row where it rises most, and by how much; returns the largest
   rise.  Rows behind the last have share 0. */
SS_WIDE static double ss_best_rows(ptrdiff_t ld, ptrdiff_t labels, const double *SS_RESTRICT score,
                                   const double *SS_RESTRICT bar, const double *SS_RESTRICT weight,
                                   const double *SS_RESTRICT curvature,
                                   const double *SS_RESTRICT inverse,
                                   const double *SS_RESTRICT share, ptrdiff_t *rows,
                                   double *gains) {
  double high[SS_STRIP], low[SS_STRIP], left[SS_STRIP], best = 0;
  for (ptrdiff_t v = 0; v < ld; v += SS_STRIP) {
    int top = 0;
    for (int j = 0; j < SS_STRIP; j++) {
      high[j] = score[v + j];
      low[j] = score[v + j] + bar[v + j];
      left[j] = weight[v + j];
    }
    for (ptrdiff_t k = 1; k < labels; k++) {
      const double *SS_RESTRICT s = score + k * ld + v, *SS_RESTRICT b = bar + k * ld + v;
      const double *SS_RESTRICT w = weight + k * ld + v;
      for (int j = 0; j < SS_STRIP; j++) {
        const double t = s[j], u = t + b[j], x = w[j], l = low[j], y = left[j];
        high[j] = t > high[j] ? t : high[j];
        left[j] = u < l ? x : y;
        low[j] = u < l ? u : l;
      }
    }
    for (int j = 0; j < SS_STRIP; j++) {
      const double slope = high[j] - low[j], whole = slope * inverse[v + j], most = left[j];
      const double d = whole < most ? whole : most;
      high[j] = share[v + j] * d * (slope - 0.5 * d * curvature[v + j]);
    }
    for (int j = 1; j < SS_STRIP; j++) top = high[j] > high[top] ? j : top;
    rows[v / SS_STRIP] = v + top;
    gains[v / SS_STRIP] = high[top];
    best = high[top] > best ? high[top] : best;
  }
  return best;
}

#endif
