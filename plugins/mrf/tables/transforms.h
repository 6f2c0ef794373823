/* Scores of pairs of states that are functions of their distance: kinds of such scores, and
 * their messages in both precisions. */
#ifndef STRUCTSOLVE_MRF_TRANSFORMS_H
#define STRUCTSOLVE_MRF_TRANSFORMS_H

#include <math.h>
#include <stddef.h>

/* Unless they are general, states s, t score same - min(slope |s - t|^p, cut), p = 1 or 2; Potts
 * scores have slope = cut. */
enum { MRF_GENERAL, MRF_POTTS, MRF_LINEAR, MRF_QUADRATIC };
typedef struct {
  int kind;
  double same, slope, cut;
  ptrdiff_t straight, turned; /* in copies in single precision: rows for each end; -1 if not kept */
  float scaled_slope, scaled_cut; /* of that copy */
} mrf_table;

#define REAL float
#define NAME(f) f##_float
#include "transforms_impl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(f) f##_double
#include "transforms_impl.h"
#undef REAL
#undef NAME

#endif
