/* Inside and outside sums over the spans of projective trees, see spans.h, which defines NAME(f),
 * VEC, LANES, TILE, LOAD, STORE, SET1, ADD, MUL and MULADD before each inclusion.
 *
 * A row of a square holds the spans of one length, one lane for each left end.  The spans of a row
 * do not depend on each other, and their two parts lie in two rows, contiguous over the spans.
 * Lanes after the end of the sentence only read and write such lanes. */

/* NV vectors of spans of length d, from lane c on. */
static SS_INLINE void NAME(inside_tile)(const int NV, ptrdiff_t d, ptrdiff_t c,
                                         const dep_spans *s) {
  const ptrdiff_t W = s->width, here = d * W + c;
  VEC joined[4], right[4], left[4];
  for (int k = 0; k < NV; k++) {
    joined[k] = LOAD(s->left + here - W + 1 + k * LANES);
    right[k] = left[k] = SET1(0);
  }
  for (ptrdiff_t w = 1; w < d; w++) {
    const ptrdiff_t first = w * W + c, second = here - w * W + w;
    for (int k = 0; k < NV; k++) {
      const ptrdiff_t a = first + k * LANES, b = second + k * LANES;
      joined[k] = MULADD(LOAD(s->right + a), LOAD(s->left + b - W + 1), joined[k]);
      right[k] = MULADD(LOAD(s->arc_right + a), LOAD(s->right + b), right[k]);
      left[k] = MULADD(LOAD(s->left + a), LOAD(s->arc_left + b), left[k]);
    }
  }
  for (int k = 0; k < NV; k++) {
    const ptrdiff_t a = here + k * LANES;
    const VEC r = MUL(joined[k], LOAD(s->weight_right + a));
    const VEC l = MUL(joined[k], LOAD(s->weight_left + a));
    STORE(s->arc_right + a, r);
    STORE(s->arc_left + a, l);
    STORE(s->right + a, ADD(right[k], r));
    STORE(s->left + a, ADD(left[k], l));
  }
}

static SS_INLINE void NAME(add)(double *out, VEC a, VEC b) { STORE(out, MULADD(a, b, LOAD(out))); }

/* The same spans after all longer ones: their arcs' marginals, in place of the weights, and the
 * derivatives of their parts. */
static SS_INLINE void NAME(outside_tile)(const int NV, ptrdiff_t d, ptrdiff_t c,
                                          const dep_spans *s) {
  const ptrdiff_t W = s->width, here = d * W + c;
  VEC right[4], left[4], joined[4];
  for (int k = 0; k < NV; k++) {
    const ptrdiff_t a = here + k * LANES;
    right[k] = LOAD(s->of_right + a), left[k] = LOAD(s->of_left + a);
    const VEC r = ADD(LOAD(s->of_arc_right + a), right[k]);
    const VEC l = ADD(LOAD(s->of_arc_left + a), left[k]);
    joined[k] = MULADD(r, LOAD(s->weight_right + a), MUL(l, LOAD(s->weight_left + a)));
    STORE(s->weight_right + a, MUL(r, LOAD(s->arc_right + a)));
    STORE(s->weight_left + a, MUL(l, LOAD(s->arc_left + a)));
    STORE(s->of_left + a - W + 1, ADD(joined[k], LOAD(s->of_left + a - W + 1)));
  }
  for (ptrdiff_t w = 1; w < d; w++)
    for (int k = 0; k < NV; k++) {
      const ptrdiff_t a = w * W + c + k * LANES, b = here + w - w * W + k * LANES;
      NAME(add)(s->of_arc_right + a, right[k], LOAD(s->right + b));
      NAME(add)(s->of_right + b, right[k], LOAD(s->arc_right + a));
      NAME(add)(s->of_left + a, left[k], LOAD(s->arc_left + b));
      NAME(add)(s->of_arc_left + b, left[k], LOAD(s->left + a));
      NAME(add)(s->of_right + a, joined[k], LOAD(s->left + b - W + 1));
      NAME(add)(s->of_left + b - W + 1, joined[k], LOAD(s->right + a));
    }
}

/* From the last left end down, so that spans which need each other are close in memory; on the way
 * back from the first one up.  Whole cache lines as far as there are spans. */
#define DEP_TILES(FUNCTION)                                                                        \
  if (c + 2 * LANES <= s->n - d)                                                                   \
    NAME(FUNCTION)(TILE, d, c, s);                                                                 \
  else if (c + LANES <= s->n - d && TILE > 1)                                                      \
    NAME(FUNCTION)(2, d, c, s);                                                                    \
  else                                                                                             \
    NAME(FUNCTION)(1, d, c, s);

static void NAME(inside)(const dep_spans *s) {
  for (ptrdiff_t c = (s->n - 1) / (TILE * LANES) * (TILE * LANES); c >= 0; c -= TILE * LANES)
    for (ptrdiff_t d = 1; d <= s->n - c; d++) {
      DEP_TILES(inside_tile)
    }
}

static void NAME(outside)(const dep_spans *s) {
  for (ptrdiff_t c = 0; c < s->n; c += TILE * LANES)
    for (ptrdiff_t d = s->n - c; d >= 1; d--) {
      DEP_TILES(outside_tile)
    }
}

#undef DEP_TILES
#undef TILE
#include "structsolve/simd/vectors_end.h"
