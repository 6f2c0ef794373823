/* The loops of pair_rows.h, for the vector type that the macros define.  No include guard. */

static ptrdiff_t NAME(best_row)(ptrdiff_t ld, ptrdiff_t labels, const double *score,
                                const double *mass, const double *curvature,
                                const double *inverse, double *gain) {
  const VEC zero = SET1(0), half = SET1(0.5), none = SET1(INFINITY);
  VEC best = zero, place = zero;
  double gains[LANES], rows[LANES];
  for (ptrdiff_t v = 0; v < ld; v += LANES) {
    VEC high = SET1(-INFINITY), low = none, left = zero;
    for (ptrdiff_t k = 0; k < labels; k++) {
      const VEC t = LOAD(score + k * ld + v), x = LOAD(mass + k * ld + v);
      const VEC held = PICK(LESS(zero, x), t, none);
      left = PICK(LESS(held, low), x, left);
      low = MINV(held, low);
      high = MAXV(t, high);
    }
    {
      const VEC slope = MAXV(SUB(high, low), zero);
      const VEC y = MINV(MUL(slope, LOAD(inverse + v)), left);
      const VEC rise = MUL(y, SUB(slope, MUL(MUL(half, y), LOAD(curvature + v))));
      const MASK more = LESS(best, rise);
      place = PICK(more, SET1(v), place);
      best = PICK(more, rise, best);
    }
  }
  STORE(gains, best);
  STORE(rows, place);
  {
    const ptrdiff_t top = ss_first_of_lanes(LANES, gains, rows);
    *gain = gains[top];
    return (ptrdiff_t)rows[top] + top;
  }
}

static inline VEC NAME(clip)(VEC x, VEC least, VEC most) {
  return MAXV(least, MINV(x, most));
}

/* The best point in the plane of two steps, clipped to the rectangle one coordinate at a time. */
static ptrdiff_t NAME(best_partner)(ptrdiff_t n, const double *k, double bias, const double *high,
                                    const double *low, const double *high_mass,
                                    const double *low_mass, const double *curvature,
                                    const double *inverse, const ss_move *a, double *gain,
                                    double *x, double *y) {
  const VEC zero = SET1(0), half = SET1(0.5), two = SET1(2), constant = SET1(bias);
  const VEC same = SET1(SS_SAME_ROW), pull = SET1(a->slope), bend = SET1(a->curvature);
  const VEC back = SET1(a->inverse), from = SET1(a->least), to = SET1(a->most);
  VEC best = zero, place = zero, ours = zero, theirs = zero;
  double gains[LANES], rows[LANES], first[LANES], second[LANES], tail[LANES];
  for (ptrdiff_t v = 0; v < n; v += LANES) {
    const VEC slope = SUB(LOAD(high + v), LOAD(low + v)), curve = LOAD(curvature + v);
    const VEC least = SUB(zero, LOAD(high_mass + v)), most = LOAD(low_mass + v);
    VEC values;
    if (v + LANES <= n) {
      values = LOAD(k + v);
    } else {
      memset(tail, 0, sizeof tail);
      memcpy(tail, k + v, sizeof(double) * (size_t)(n - v));
      values = LOAD(tail);
    }
    {
      const VEC cross = MUL(two, ADD(values, constant)), product = MUL(bend, curve);
      const VEC det = SUB(product, MUL(cross, cross)), flat = MUL(same, product);
      const VEC free = DIV(SUB(MUL(curve, pull), MUL(cross, slope)),
                           MAXV(det, flat));
      const VEC start = NAME(clip)(free, from, to);
      const VEC other = NAME(clip)(MUL(SUB(slope, MUL(cross, start)), LOAD(inverse + v)), least,
                                   most);
      const VEC mine = NAME(clip)(MUL(SUB(pull, MUL(cross, other)), back), from, to);
      const VEC mixed = MUL(MUL(two, MUL(cross, other)), mine);
      const VEC squares = ADD(MUL(MUL(bend, mine), mine), MUL(MUL(curve, other), other));
      const VEC linear = ADD(MUL(pull, mine), MUL(slope, other));
      const VEC rise = PICK(LESS(zero, product), SUB(linear, MUL(half, ADD(mixed, squares))), zero);
      const MASK more = LESS(best, rise);
      place = PICK(more, SET1(v), place);
      best = PICK(more, rise, best);
      ours = PICK(more, mine, ours);
      theirs = PICK(more, other, theirs);
    }
  }
  STORE(gains, best);
  STORE(rows, place);
  STORE(first, ours);
  STORE(second, theirs);
  {
    const ptrdiff_t top = ss_first_of_lanes(LANES, gains, rows);
    *gain = gains[top];
    *x = first[top];
    *y = second[top];
    return (ptrdiff_t)rows[top] + top;
  }
}

static double NAME(mass_gap)(ptrdiff_t ld, ptrdiff_t labels, const double *score,
                             const double *mass) {
  double sums[LANES], total = 0;
  for (ptrdiff_t v = 0; v < ld; v += LANES) {
    VEC high = SET1(-INFINITY), sum = SET1(0);
    for (ptrdiff_t k = 0; k < labels; k++) {
      const VEC t = LOAD(score + k * ld + v);
      high = MAXV(t, high);
    }
    for (ptrdiff_t k = 0; k < labels; k++)
      sum = ADD(sum, MUL(LOAD(mass + k * ld + v), SUB(high, LOAD(score + k * ld + v))));
    STORE(sums, sum);
    for (int j = 0; j < LANES; j++) total += sums[j];
  }
  return total;
}

static const ss_pair_table NAME(pairs) = {NAME(best_row), NAME(best_partner), NAME(mass_gap)};

#undef DIV
#undef LESS
#include "structsolve/simd/vectors_end.h"
