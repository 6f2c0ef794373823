/* The vector loops, written once and compiled for each instruction set by loops_tables.h,
 * which defines NAME(f), VEC, LANES, MAX_TILE, OUTER_ROWS and the arithmetic before each inclusion.
 *
 * A tile is NV vectors of columns kept in registers while the rows stream by: the state axis
 * is contiguous and innermost, so one broadcast of a feature or of a previous score serves all
 * states. `width` is a multiple of LANES; loops_tables.h sends other widths to the plain loops.
 *
 * Rows of at least WIDE columns are read as a whole, four at a time, because they come from main
 * memory, which is fast in long runs.  The order of additions is the same. */

/* Handle the columns from c on, in tiles of 4, 2 and 1 vectors. */
#define SS_TILES(FUNCTION, ...)                                                                    \
  for (; c + 4 * LANES <= width; c += 4 * LANES) FUNCTION(4, __VA_ARGS__);                         \
  for (; c + 2 * LANES <= width; c += 2 * LANES) FUNCTION(2, __VA_ARGS__);                         \
  for (; c + LANES <= width; c += LANES) FUNCTION(1, __VA_ARGS__);

#define SS_SCORE(SUFFIX, T, VALUE, ROW, ADDED)                                                     \
  static inline __attribute__((always_inline)) void NAME(score_tile_##SUFFIX)(                     \
      const int NV, ptrdiff_t n, const int32_t *index, const T *value, const double *W,            \
      ptrdiff_t stride, double constant, const double *last, double *out) {                        \
    VEC acc[MAX_TILE];                                                                             \
    for (int k = 0; k < NV; k++)                                                                   \
      acc[k] = constant != 0 ? MUL(SET1(constant), LOAD(last + k * LANES)) : SET1(0);              \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const double *row = W + (ptrdiff_t)(ROW) * stride;                                           \
      const VEC x = SET1((double)(VALUE));                                                         \
      for (int k = 0; k < NV; k++) acc[k] = ADDED(x, LOAD(row + k * LANES), acc[k]);               \
      (void)x;                                                                                     \
    }                                                                                              \
    for (int k = 0; k < NV; k++) STORE(out + k * LANES, acc[k]);                                   \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
  }                                                                                                \
  static inline __attribute__((always_inline)) void NAME(score_rows_##SUFFIX)(                     \
      const int NR, ptrdiff_t first, const int32_t *index, const T *value, const double *W,        \
      ptrdiff_t stride, ptrdiff_t width, double *out) {                                            \
    const double *rows[4];                                                                         \
    VEC x[4];                                                                                      \
    for (int r = 0; r < NR; r++) {                                                                 \
      const ptrdiff_t j = first + r;                                                               \
      rows[r] = W + (ptrdiff_t)(ROW) * stride;                                                     \
      x[r] = SET1((double)(VALUE));                                                                \
    }                                                                                              \
    for (ptrdiff_t c = 0; c < width; c += LANES) {                                                 \
      VEC acc = LOAD(out + c);                                                                     \
      for (int r = 0; r < NR; r++) acc = ADDED(x[r], LOAD(rows[r] + c), acc);                      \
      STORE(out + c, acc);                                                                         \
    }                                                                                              \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
  }                                                                                                \
  static void NAME(score_##SUFFIX)(ptrdiff_t n, const int32_t *index, const void *values,          \
                                   const double *W, ptrdiff_t stride, ptrdiff_t width,             \
                                   double constant, const double *last, double *out) {             \
    const T *value = (const T *)values;                                                            \
    ptrdiff_t c = 0;                                                                               \
    if (width >= WIDE) {                                                                           \
      ptrdiff_t first = 0;                                                                         \
      for (; c < width; c += LANES)                                                                \
        STORE(out + c, constant != 0 ? MUL(SET1(constant), LOAD(last + c)) : SET1(0));             \
      for (; first + 4 <= n; first += 4)                                                           \
        NAME(score_rows_##SUFFIX)(4, first, index, value, W, stride, width, out);                  \
      for (; first < n; first++)                                                                   \
        NAME(score_rows_##SUFFIX)(1, first, index, value, W, stride, width, out);                  \
      return;                                                                                      \
    }                                                                                              \
    for (; c + MAX_TILE * LANES <= width; c += MAX_TILE * LANES)                                   \
      NAME(score_tile_##SUFFIX)(MAX_TILE, n, index, value, W + c, stride, constant, last + c,      \
                                out + c);                                                          \
    SS_TILES(NAME(score_tile_##SUFFIX), n, index, value, W + c, stride, constant, last + c,        \
             out + c)                                                                              \
  }

SS_SCORE(csr_f64, double, value[j], index[j], MULADD)
SS_SCORE(csr_f32, float, value[j], index[j], MULADD)
SS_SCORE(dense_f64, double, value[j], j, MULADD)
SS_SCORE(dense_f32, float, value[j], j, MULADD)

#define SS_ONE(x, row, sum) ADD(sum, row) /* where all values are one */
SS_SCORE(csr_ones, double, 1, index[j], SS_ONE)
#undef SS_ONE

/* Two accumulators per vector hide the latency of max and of the fused multiplication. */
#define SS_STEP(FUNCTION, ADDEND, FIRST, COMBINE, REST, JOIN, LAST)                                \
  static inline __attribute__((always_inline)) void NAME(FUNCTION##_tile)(                         \
      const int NV, ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,        \
      const double *add, double *next) {                                                           \
    VEC even[4], odd[4];                                                                           \
    const VEC first = SET1(previous[0]);                                                           \
    for (int k = 0; k < NV; k++) {                                                                 \
      even[k] = FIRST(first, LOAD(T + k * LANES));                                                 \
      odd[k] = REST;                                                                               \
    }                                                                                              \
    ptrdiff_t s = 1;                                                                               \
    for (; s + 1 < K; s += 2) {                                                                    \
      const double *row = T + s * stride;                                                          \
      const VEC a = SET1(previous[s]), b = SET1(previous[s + 1]);                                  \
      for (int k = 0; k < NV; k++) {                                                               \
        odd[k] = COMBINE(a, LOAD(row + k * LANES), odd[k]);                                        \
        even[k] = COMBINE(b, LOAD(row + stride + k * LANES), even[k]);                             \
      }                                                                                            \
    }                                                                                              \
    if (s < K) {                                                                                   \
      const double *row = T + s * stride;                                                          \
      const VEC a = SET1(previous[s]);                                                             \
      for (int k = 0; k < NV; k++) odd[k] = COMBINE(a, LOAD(row + k * LANES), odd[k]);             \
    }                                                                                              \
    for (int k = 0; k < NV; k++) {                                                                 \
      const VEC x = JOIN(even[k], odd[k]);                                                         \
      STORE(next + k * LANES, LAST);                                                               \
    }                                                                                              \
    (void)add;                                                                                     \
  }

#define SS_MAX_OF_SUM(a, b, c) MAXV(c, ADD(a, b))
SS_STEP(maxplus, add, ADD, SS_MAX_OF_SUM, even[k], MAXV, ADD(x, LOAD(add + k * LANES)))
SS_STEP(sumprod, NULL, MUL, MULADD, SET1(0), ADD, x)
#undef SS_MAX_OF_SUM
#undef SS_STEP

static inline __attribute__((always_inline)) void NAME(maxplus_row)(
    ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride, ptrdiff_t width,
    const double *add, double *next) {
  ptrdiff_t c = 0;
  SS_TILES(NAME(maxplus_tile), K, previous, T + c, stride, add + c, next + c)
}

static void NAME(maxplus)(ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,
                          ptrdiff_t width, const double *add, double *next) {
  NAME(maxplus_row)(K, previous, T, stride, width, add, next);
}

static void NAME(viterbi)(ptrdiff_t L, ptrdiff_t K, const double *T, ptrdiff_t stride,
                          const double *add, double *alpha) {
  for (ptrdiff_t v = 1; v < L; v++) {
    add += stride, alpha += stride;
    NAME(maxplus_row)(K, alpha - stride, T, stride, stride, add, alpha);
  }
}

static void NAME(sumprod)(ptrdiff_t K, const double *previous, const double *E, ptrdiff_t stride,
                          ptrdiff_t width, double *next) {
  ptrdiff_t c = 0;
  SS_TILES(NAME(sumprod_tile), K, previous, E + c, stride, NULL, next + c)
}

/* One result per row; four rows at a time share the loads of x and hide each other's latency. */
#define SS_ROWS(FUNCTION, START, COMBINE, OP)                                                      \
  static void NAME(FUNCTION)(ptrdiff_t rows, const double *T, ptrdiff_t stride, ptrdiff_t width,   \
                             const double *x, double *out) {                                       \
    ptrdiff_t s = 0;                                                                               \
    for (; s + 4 <= rows; s += 4) {                                                                \
      const double *row = T + s * stride;                                                          \
      VEC a = SET1(START), b = a, c = a, d = a;                                                    \
      for (ptrdiff_t t = 0; t < width; t += LANES) {                                               \
        const VEC y = LOAD(x + t);                                                                 \
        a = COMBINE(y, LOAD(row + t), a);                                                          \
        b = COMBINE(y, LOAD(row + stride + t), b);                                                 \
        c = COMBINE(y, LOAD(row + 2 * stride + t), c);                                             \
        d = COMBINE(y, LOAD(row + 3 * stride + t), d);                                             \
      }                                                                                            \
      FOLD4(a, b, c, d, OP, out + s);                                                              \
    }                                                                                              \
    for (; s < rows; s++) {                                                                        \
      VEC a = SET1(START);                                                                         \
      for (ptrdiff_t t = 0; t < width; t += LANES)                                                 \
        a = COMBINE(LOAD(x + t), LOAD(T + s * stride + t), a);                                     \
      out[s] = FOLD(a, OP);                                                                        \
    }                                                                                              \
  }

#define SS_MAX_OF_SUM(a, b, c) MAXV(c, ADD(a, b))
SS_ROWS(maxdots, -INFINITY, SS_MAX_OF_SUM, SS_TOP)
SS_ROWS(dots, 0, MULADD, SS_SUM)
#undef SS_MAX_OF_SUM
#undef SS_ROWS

static inline __attribute__((always_inline)) void NAME(outer_tile)(
    const int NR, const int NV, ptrdiff_t n, const double *a, const double *b, const double *E,
    ptrdiff_t stride, double *out) {
  /* Several rows of the result share the loads of b. */
  VEC sum[OUTER_ROWS][4];
  for (int r = 0; r < NR; r++)
    for (int k = 0; k < NV; k++) sum[r][k] = SET1(0);
  for (ptrdiff_t v = 0; v < n; v++, a += stride, b += stride) {
    VEC row[4];
    for (int k = 0; k < NV; k++) row[k] = LOAD(b + k * LANES);
    for (int r = 0; r < NR; r++) {
      const VEC x = SET1(a[r]);
      for (int k = 0; k < NV; k++) sum[r][k] = MULADD(x, row[k], sum[r][k]);
    }
  }
  for (int r = 0; r < NR; r++)
    for (int k = 0; k < NV; k++) {
      const ptrdiff_t j = r * stride + k * LANES;
      STORE(out + j, MUL(sum[r][k], LOAD(E + j)));
    }
}

static void NAME(outer)(ptrdiff_t n, ptrdiff_t K, const double *a, const double *b,
                        const double *E, ptrdiff_t stride, ptrdiff_t width, double *out) {
  ptrdiff_t s = 0;
#define SS_OUTER_ROWS(NR)                                                                          \
  for (; s + NR <= K; s += NR) {                                                                   \
    ptrdiff_t c = 0;                                                                               \
    SS_OUTER(NR, 4)                                                                                \
    SS_OUTER(NR, 2)                                                                                \
    SS_OUTER(NR, 1)                                                                                \
  }
#define SS_OUTER(NR, NV)                                                                           \
  for (; c + NV * LANES <= width; c += NV * LANES)                                                 \
    NAME(outer_tile)(NR, NV, n, a + s, b + c, E + s * stride + c, stride, out + s * stride + c);
  SS_OUTER_ROWS(OUTER_ROWS)
  SS_OUTER_ROWS(2)
  SS_OUTER_ROWS(1)
#undef SS_OUTER_ROWS
#undef SS_OUTER
}

/* exp(y) = 2^n exp(r), |r| <= log(2) / 2, by Taylor's series to r^13: accurate to one ulp for y up
 * to 709.  Results for y < -708, -inf included, are set to 0 at the end; with `part`, so are those
 * from `columns` on. */
static inline __attribute__((always_inline)) void NAME(exp_tile)(const int NV, const int part,
                                                                 ptrdiff_t columns, const double *x,
                                                                 double shift, double *out) {
  static const double lanes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const double inverse_factorials[12] = {
      1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
      1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
      1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5,
  };
  const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
  VEC y[2], n[2], r[2], p[2];
  for (int k = 0; k < NV; k++) {
    y[k] = ADD(LOAD(x + k * LANES), SET1(-shift));
    n[k] = ADD(MULADD(y[k], SET1(1.4426950408889634), SET1(magic)), SET1(-magic));
    r[k] = MULADD(n[k], SET1(-0.693147180369123816490), y[k]);
    r[k] = MULADD(n[k], SET1(-1.90821492927058770002e-10), r[k]);
    p[k] = SET1(inverse_factorials[0]);
  }
  for (int j = 1; j < 12; j++)
    for (int k = 0; k < NV; k++) p[k] = MULADD(p[k], r[k], SET1(inverse_factorials[j]));
  for (int k = 0; k < NV; k++) {
    p[k] = MULADD(MULADD(p[k], r[k], SET1(1)), r[k], SET1(1));
    /* The low bits of n + 2^52 + 1023 are the exponent of 2^n. */
    p[k] = MUL(p[k], HIGH_BITS(ADD(n[k], SET1(4503599627371519.0))));
    p[k] = ZERO_IF_LESS(y[k], SET1(-708), p[k]);
    if (part)
      p[k] = ZERO_IF_LESS(SET1((double)(columns - 1 - k * LANES)), LOAD(lanes), p[k]);
    STORE(out + k * LANES, p[k]);
  }
}

static void NAME(exp_rows)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns,
                           double shift, double *out) {
  ptrdiff_t end = 0; /* end of the columns that are written with the numbers */
  for (ptrdiff_t r = 0; r < rows; r++) {
    const double *from = x + r * stride;
    double *to = out + r * stride;
    ptrdiff_t t = 0;
    for (; t + 2 * LANES <= columns; t += 2 * LANES)
      NAME(exp_tile)(2, 0, 0, from + t, shift, to + t);
    if (t < columns && t + 2 * LANES <= stride) {
      NAME(exp_tile)(2, 1, columns - t, from + t, shift, to + t);
      t += 2 * LANES;
    }
    for (; t < columns; t += LANES) NAME(exp_tile)(1, 1, columns - t, from + t, shift, to + t);
    end = t;
  }
  /* Not in the loop: this becomes a call, which would evict the constants from their registers. */
  if (end < stride)
    for (ptrdiff_t r = 0; r < rows; r++)
      for (ptrdiff_t t = end; t < stride; t++) out[r * stride + t] = 0;
}

static void NAME(range)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns,
                        double skip, double *low, double *top) {
  const VEC none = SET1(INFINITY), mark = SET1(skip);
  VEC bottom = none, most = SET1(-INFINITY);
  if (columns < LANES) {
    ss_plain_range(rows, x, stride, columns, skip, low, top);
    return;
  }
  for (ptrdiff_t r = 0; r < rows; r++, x += stride)
    for (ptrdiff_t t = 0; t < columns; t += LANES) {
      /* The last vector of a row overlaps the one before it, to stay out of the padding. */
      const VEC v = LOAD(x + (t + LANES <= columns ? t : columns - LANES));
      most = MAXV(v, most);
      bottom = MINV(IF_EQUAL(v, mark, none, v), bottom);
    }
  *low = FOLD(bottom, SS_LOW);
  *top = FOLD(most, SS_TOP);
}

static void NAME(mul_range)(ptrdiff_t width, const double *factor, double *row, double *low,
                            double *top) {
  const VEC none = SET1(INFINITY), zero = SET1(0);
  VEC bottom = none, most = zero;
  for (ptrdiff_t t = 0; t < width; t += LANES) {
    const VEC v = MUL(LOAD(row + t), LOAD(factor + t));
    STORE(row + t, v);
    most = MAXV(v, most);
    bottom = MINV(IF_EQUAL(v, zero, none, v), bottom);
  }
  *low = FOLD(bottom, SS_LOW);
  *top = FOLD(most, SS_TOP);
}

/* Returns the first of K columns whose VALUE (of columns first + s) is `wanted`, or 0 if there is
 * none.  32 columns at a time are branch-free, because the position is hard to predict. */
#define SS_FIRST_EQUAL(VALUE)                                                                      \
  for (ptrdiff_t first = 0; first < K; first += 32) {                                              \
    unsigned matches = 0;                                                                          \
    for (ptrdiff_t s = 0; s < 32 && first + s < K; s += LANES) {                                   \
      const VEC x = VALUE;                                                                         \
      matches |= EQUAL_BITS(x, wanted) << s;                                                       \
    }                                                                                              \
    if (K - first < 32) matches &= (1u << (K - first)) - 1;                                        \
    if (matches) return first + __builtin_ctz(matches);                                            \
  }                                                                                                \
  return 0;

static ptrdiff_t NAME(reach)(ptrdiff_t K, const double *previous, const double *row, double add,
                             double target) {
  const VEC own = SET1(add), wanted = SET1(target);
  SS_FIRST_EQUAL(ADD(ADD(LOAD(previous + first + s), LOAD(row + first + s)), own))
}

static ptrdiff_t NAME(first_best)(ptrdiff_t K, const double *row, double *top) {
  VEC most = SET1(-INFINITY);
  ptrdiff_t t = 0;
  for (; t + LANES <= K; t += LANES) most = MAXV(LOAD(row + t), most); /* ignores NaN */
  double best = FOLD(most, SS_TOP);
  for (; t < K; t++) best = best < row[t] ? row[t] : best;
  *top = best;
  const VEC wanted = SET1(best);
  SS_FIRST_EQUAL(LOAD(row + first + s))
}
#undef SS_FIRST_EQUAL

static double NAME(total)(ptrdiff_t n, const double *x) {
  VEC a = SET1(0), b = a;
  ptrdiff_t j = 0;
  for (; j + 2 * LANES <= n; j += 2 * LANES) {
    a = ADD(a, LOAD(x + j));
    b = ADD(b, LOAD(x + j + LANES));
  }
  double total = FOLD(ADD(a, b), SS_SUM);
  for (; j < n; j++) total += x[j];
  return total;
}

static const ss_loop_table NAME(table) = {
    {NAME(score_dense_f64), NAME(score_dense_f32), NAME(score_csr_f64), NAME(score_csr_f32),
     NAME(score_csr_ones)},
    NAME(maxplus),   NAME(maxdots), NAME(sumprod), NAME(dots), NAME(outer), NAME(exp_rows),
    NAME(range),     NAME(mul_range), NAME(reach), NAME(viterbi),
    NAME(first_best), NAME(total), LABEL,
};

#undef SS_SCORE
#undef SS_TILES
#undef LABEL
#undef MAX_TILE
#undef OUTER_ROWS
#undef IF_EQUAL
#undef ZERO_IF_LESS
#undef HIGH_BITS
#undef FOLD4
#undef FOLD
#include "structsolve/simd/vectors_end.h"
