/* The passes of sum-product over a chain in scaled form, see passes.h, which defines NAME(f), VEC,
 * LANES and the arithmetic before each inclusion.  Rows are whole vectors. */

/* NV vectors of the sum over s of previous[s] times row s of the table; two sums per vector hide
 * the latency of multiplications. */
static inline __attribute__((always_inline)) void NAME(message_tile)(
    const int NV, ptrdiff_t K, const double *previous, const double *table, ptrdiff_t stride,
    VEC *out) {
  VEC even[4], odd[4];
  for (int k = 0; k < NV; k++) even[k] = odd[k] = SET1(0);
  const double *end = previous + (K & ~(ptrdiff_t)1);
  for (; previous < end; previous += 2, table += 2 * stride) {
    const VEC x = SET1(previous[0]), y = SET1(previous[1]);
    for (int k = 0; k < NV; k++) {
      even[k] = MULADD(x, LOAD(table + k * LANES), even[k]);
      odd[k] = MULADD(y, LOAD(table + stride + k * LANES), odd[k]);
    }
  }
  if (K & 1) {
    const VEC x = SET1(previous[0]);
    for (int k = 0; k < NV; k++) even[k] = MULADD(x, LOAD(table + k * LANES), even[k]);
  }
  for (int k = 0; k < NV; k++) out[k] = ADD(even[k], odd[k]);
}

/* The columns of a row, four vectors, two or one at a time. */
#define CHAIN_TILES(FUNCTION, ...)                                                                 \
  {                                                                                                \
    ptrdiff_t c = 0;                                                                               \
    for (; c + 4 * LANES <= stride; c += 4 * LANES) FUNCTION(4, c, __VA_ARGS__);                   \
    for (; c + 2 * LANES <= stride; c += 2 * LANES) FUNCTION(2, c, __VA_ARGS__);                   \
    for (; c + LANES <= stride; c += LANES) FUNCTION(1, c, __VA_ARGS__);                           \
  }

/* Whether a row with these largest and smallest entries is in range as it is; chain_rescale()
 * treats the others.  A branch that is always taken costs no time, whereas sums over lanes would
 * hold up the next row. */
static inline __attribute__((always_inline)) int NAME(in_range)(VEC most, VEC least) {
  return !ANY_LESS(least, SET1(TINY)) && !ANY_LESS(SET1(1 / SCALE), most) &&
         !ALL_LESS(most, SET1(SCALE));
}

static inline __attribute__((always_inline)) void NAME(forward_tile)(
    const int NV, ptrdiff_t c, ptrdiff_t K, const double *table, ptrdiff_t stride,
    const double *factor, double *row, VEC *most, VEC *least) {
  VEC x[4];
  NAME(message_tile)(NV, K, row - stride, table + c, stride, x);
  for (int k = 0; k < NV; k++) {
    x[k] = MUL(x[k], LOAD(factor + c + k * LANES));
    STORE(row + c + k * LANES, x[k]);
    *most = MAXV(x[k], *most);
    *least = MINV(INFINITY_IF_ZERO(x[k]), *least);
  }
}

static int NAME(forward)(ptrdiff_t L, ptrdiff_t K, ptrdiff_t stride, const double *table,
                         const double *factors, double *row, double *total) {
  for (ptrdiff_t v = 1; v < L; v++) {
    VEC most = SET1(0), least = SET1(INFINITY);
    row += stride;
    factors += stride;
    CHAIN_TILES(NAME(forward_tile), K, table, stride, factors, row, &most, &least)
    if (!NAME(in_range)(most, least) && !chain_rescale(row, stride, total)) return 0;
  }
  return 1;
}

static inline __attribute__((always_inline)) void NAME(backward_tile)(
    const int NV, ptrdiff_t c, ptrdiff_t K, const double *turned, ptrdiff_t stride,
    const double *alpha, double *ahead, double *nodes, VEC *mass, VEC *most, VEC *least) {
  VEC x[4];
  NAME(message_tile)(NV, K, ahead + stride, turned + c, stride, x);
  for (int k = 0; k < NV; k++) {
    const ptrdiff_t j = c + k * LANES;
    const VEC p = MUL(x[k], LOAD(alpha + j));
    x[k] = MUL(x[k], LOAD(ahead + j));
    STORE(nodes + j, p);
    STORE(ahead + j, x[k]);
    *mass = ADD(*mass, p);
    *most = MAXV(x[k], *most);
    *least = MINV(INFINITY_IF_ZERO(x[k]), *least);
  }
}

static int NAME(backward)(ptrdiff_t L, ptrdiff_t K, ptrdiff_t stride, const double *turned,
                          const double *alpha, double *ahead, double *nodes) {
  double ignored = 0;
  alpha += (L - 1) * stride;
  ahead += (L - 1) * stride;
  nodes += (L - 1) * stride;
  for (ptrdiff_t v = L - 2; v >= 0; v--) {
    VEC sum = SET1(0), most = SET1(0), least = SET1(INFINITY);
    double mass;
    alpha -= stride;
    ahead -= stride;
    nodes -= stride;
    CHAIN_TILES(NAME(backward_tile), K, turned, stride, alpha, ahead, nodes, &sum, &most, &least)
    mass = TOTAL(sum);
    if (!(mass >= MASS)) return 0;
    const VEC share = SET1(1 / mass);
    for (ptrdiff_t j = 0; j < stride; j += LANES) {
      STORE(nodes + j, MUL(LOAD(nodes + j), share));
      /* Now alpha[v, s] table[s, t] ahead[v + 1, t] are the marginals of the edge. */
      STORE(ahead + stride + j, MUL(LOAD(ahead + stride + j), share));
    }
    if (!NAME(in_range)(most, least) && !chain_rescale(ahead, stride, &ignored)) return 0;
  }
  return 1;
}

#undef CHAIN_TILES
#undef INFINITY_IF_ZERO
#undef ANY_LESS
#undef ALL_LESS
#undef TOTAL
#include "structsolve/simd/vectors_end.h"
