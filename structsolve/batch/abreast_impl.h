/* The loops of abreast.h.  abreast_loops.h defines NAME(f), LANES, MULADD, MAXV, MINV, ANY, and
 * the sizes of tiles, ROWS and COLUMNS, before each inclusion. */

typedef float NAME(floats) __attribute__((vector_size(4 * LANES)));
/* The same in arrays of callers. */
typedef float NAME(loose) __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t NAME(ints) __attribute__((vector_size(4 * LANES)));
typedef double NAME(doubles) __attribute__((vector_size(8 * LANES)));
#define VEC NAME(floats)
#define INT NAME(ints)
#define WIDE NAME(doubles)
#define INLINE static inline __attribute__((always_inline))
#define LOAD(p) (*(const VEC *)(p))
#define STORE(p, x) (*(VEC *)(p) = (x))
#define SET1(x) ((x) - (VEC){0}) /* not (VEC){0} + x, which adds: -0 + 0 is 0 */
/* a where the mask is set, else b */
#define CHOOSE(mask, a, b) ((VEC)(((mask) & (INT)(a)) | (~(mask) & (INT)(b))))
#define TO_WIDE(x) __builtin_convertvector(x, WIDE)

INLINE uint32_t NAME(bits)(INT mask) {
  uint32_t bits = 0;
  for (int l = 0; l < LANES; l++) bits |= (uint32_t)(mask[l] & 1) << l;
  return bits;
}

INLINE INT NAME(lengths)(const abreast *b) {
  INT length = {0};
  for (int l = 0; l < LANES; l++) length[l] = (int32_t)b->length[l];
  return length;
}

/* exp(x) for -87 <= x <= 0: 2^k times a polynomial (Cephes' expf), k by adding 1.5 2^23.  Terms in
 * pairs, since the time is that of the longest row of dependent instructions. */
INLINE VEC NAME(exp)(VEC x) {
  const VEC whole = MULADD(x, SET1(1.44269504088896341f), SET1(12582912.0f));
  const VEC k = whole - 12582912.0f;
  const VEC r = MULADD(k, SET1(2.12194440e-4f), MULADD(k, SET1(-0.693359375f), x)), r2 = r * r;
  const VEC low = MULADD(r, SET1(1.6666665459e-1f), SET1(5.0000001201e-1f));
  const VEC middle = MULADD(r, SET1(8.3334519073e-3f), SET1(4.1665795894e-2f));
  const VEC high = MULADD(r, SET1(1.9875691500e-4f), SET1(1.3981999507e-3f));
  const VEC p = MULADD(MULADD(MULADD(high, r2, middle), r2, low), r2, r + 1.0f);
  return (VEC)((INT)p + ((INT)whole << 23));
}

#if defined(__GNUC__) && !defined(__clang__)
/* Swaps blocks of h rows and columns, the later columns of a row with the earlier ones of row h. */
INLINE void NAME(swap)(VEC *x, const int h) {
  INT low, high;
#pragma GCC unroll 16
  for (int l = 0; l < LANES; l++) {
    low[l] = l & h ? LANES + l - h : l;
    high[l] = l & h ? LANES + l : l + h;
  }
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++)
    if (!(i & h)) {
      const VEC a = x[i], b = x[i + h];
      x[i] = __builtin_shuffle(a, b, low);
      x[i + h] = __builtin_shuffle(a, b, high);
    }
}
#endif

/* Transposes a square: squares of 4 by two rounds of interleaving, whose shuffles stay within four
 * lanes and so take one instruction each; then these squares, as blocks. */
INLINE void NAME(transpose)(VEC *x) {
#if defined(__GNUC__) && !defined(__clang__)
  INT low, high;
#pragma GCC unroll 16
  for (int l = 0; l < LANES; l++) {
    low[l] = (l & ~3) + (l & 3) / 2 + (l & 1) * LANES;
    high[l] = low[l] + 2;
  }
#pragma GCC unroll 8
  for (int i = 0; i < 2 * LANES; i += 4) {
    VEC *y = x + i % LANES;
    const VEC a = y[0], b = y[1], c = y[2], d = y[3];
    y[0] = __builtin_shuffle(a, c, low);
    y[1] = __builtin_shuffle(a, c, high);
    y[2] = __builtin_shuffle(b, d, low);
    y[3] = __builtin_shuffle(b, d, high);
  }
  NAME(swap)(x, 4);
  if (LANES > 8) NAME(swap)(x, 8 % LANES);
#else
  for (int i = 0; i < LANES; i++)
    for (int l = 0; l < i; l++) {
      const float a = x[i][l];
      x[i][l] = x[l][i];
      x[l][i] = a;
    }
#endif
}

/* Squares that every chain has; the rest goes number by number. */
INLINE ptrdiff_t NAME(squares)(const abreast *b) {
  ptrdiff_t n = b->length[0];
  for (int l = 1; l < LANES; l++) n = b->length[l] < n ? b->length[l] : n;
  return n * b->K / LANES;
}

/* Adds scores of the first or last state to a row, less the row's largest: no digits are lost. */
INLINE void NAME(add)(abreast *b, int lane, const float *more, float *x) {
  float top = -INFINITY;
  for (ptrdiff_t s = 0; s < b->K; s++) top = x[s * LANES] > top ? x[s * LANES] : top;
  if (!(top > -INFINITY && top < INFINITY)) top = 0; /* for weigh() */
  b->tops[lane] += top;
  for (ptrdiff_t s = 0; s < b->K; s++) {
    const float less = x[s * LANES] - top;
    if (less < -ABREAST_SPAN && less > -INFINITY) b->bad |= (uint32_t)1 << lane;
    x[s * LANES] = less + more[s];
  }
}

/* x <- the scores of a node, 0 behind the end of a chain. */
INLINE void NAME(gather)(const abreast *b, ptrdiff_t v, INT on, float *x) {
  const ptrdiff_t K = b->K;
  const float *rows[LANES];
  ptrdiff_t s = 0;
  for (int l = 0; l < LANES; l++) rows[l] = v < b->length[l] ? b->rows[l] + v * K : b->rows[0];
  while (s + LANES <= K) {
    VEC y[LANES];
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++) y[l] = *(const NAME(loose) *)(rows[l] + s);
    NAME(transpose)(y);
    for (int l = 0; l < LANES; l++) STORE(x + (s + l) * LANES, y[l]);
    s += s + LANES < K && s + 2 * LANES > K ? K - LANES - s : LANES; /* the last may overlap */
  }
  for (; s < K; s++)
    for (int l = 0; l < LANES; l++) x[s * LANES + l] = rows[l][s];
  if (ANY(~on))
    for (s = 0; s < K * LANES; s += LANES) STORE(x + s, CHOOSE(on, LOAD(x + s), SET1(0)));
}

static void NAME(scatter)(const abreast *b, const float *lanes, ptrdiff_t width, int once,
                          float *const *out) {
  const ptrdiff_t whole = once ? width / LANES : NAME(squares)(b);
  for (ptrdiff_t j = 0; j < whole; j++) {
    VEC x[LANES];
    for (int l = 0; l < LANES; l++) x[l] = LOAD(lanes + (j * LANES + l) * LANES);
    NAME(transpose)(x);
    for (int l = 0; l < LANES; l++)
      if (l < b->n) memcpy(out[l] + j * LANES, &x[l], sizeof(VEC));
  }
  for (int l = 0; l < b->n; l++)
    for (ptrdiff_t j = whole * LANES; j < (once ? 1 : b->length[l]) * width; j++)
      out[l][j] = lanes[j * LANES + l];
}

/* What rows of nodes add up to. */
typedef struct {
  INT bad, forbidden, exponents;
  WIDE tops;
} NAME(sums);

INLINE void NAME(weigh_row)(abreast *b, ptrdiff_t v, INT on, float *x, float *out,
                            NAME(sums) *sums) {
  const ptrdiff_t K = b->K;
  VEC top = SET1(-INFINITY), least = SET1(INFINITY);
  NAME(gather)(b, v, on, x);
  if (b->end || (v == 0 && b->start))
    for (int l = 0; l < LANES; l++) {
      if (v == 0 && b->start && b->length[l]) NAME(add)(b, l, b->start, x + l);
      if (b->end && b->length[l] == v + 1) NAME(add)(b, l, b->end, x + l);
    }
  for (ptrdiff_t s = 0; s < K * LANES; s += LANES) {
    const VEC y = LOAD(x + s);
    top = MAXV(y, top), least = MINV(y, least);
  }
  if (ANY(~(least - top >= SET1(-ABREAST_SPAN))))
    for (ptrdiff_t s = 0; s < K * LANES; s += LANES) {
      const VEC y = LOAD(x + s), less = y - top;
      const INT none = y == SET1(-INFINITY);
      sums->forbidden |= none;
      sums->bad |= ~(none | (less >= SET1(-ABREAST_SPAN))); /* NaN and +inf, too */
      STORE(out + s, CHOOSE(none, SET1(0), NAME(exp)(less)));
      STORE(x + s, CHOOSE(none, SET1(0), less));
    }
  else /* mostly none is forbidden, or far from the largest */
    for (ptrdiff_t s = 0; s < K * LANES; s += LANES) {
      const VEC less = LOAD(x + s) - top;
      sums->bad |= ~(less <= SET1(0));
      STORE(out + s, NAME(exp)(less));
      STORE(x + s, less);
    }
  sums->tops += TO_WIDE(CHOOSE(on, top, SET1(0)));
}

static void NAME(weigh)(abreast *b) {
  const ptrdiff_t size = b->K * LANES;
  const INT length = NAME(lengths)(b);
  NAME(sums) sums = {0};
  for (ptrdiff_t v = 0; v < b->L; v++)
    NAME(weigh_row)(b, v, length > (int32_t)v, b->scores + v * size, b->ahead + v * size, &sums);
  b->bad |= NAME(bits)(sums.bad), b->forbidden |= NAME(bits)(sums.forbidden);
  for (int l = 0; l < LANES; l++) b->tops[l] += sums.tops[l];
}

/* out[t] = sum_s previous[s] table[s, t] for N columns. */
INLINE void NAME(columns)(const int N, ptrdiff_t K, const float *previous, const float *table,
                          VEC *out) {
  for (int k = 0; k < N; k++) out[k] = SET1(0);
  for (ptrdiff_t s = 0; s < K; s++) {
    const VEC x = LOAD(previous + s * LANES);
    for (int k = 0; k < N; k++) out[k] = MULADD(x, SET1(table[s * K + k]), out[k]);
  }
}

/* Columns in tiles of 9, then of 4, 2 and 1 (26 = 9 + 9 + 8). */
#define ABREAST_TILES(FUNCTION, ...)                                                               \
  {                                                                                                \
    ptrdiff_t c = 0;                                                                               \
    for (; c + 9 <= K; c += 9) FUNCTION(9, c, __VA_ARGS__);                                        \
    if (c + 8 <= K) FUNCTION(8, c, __VA_ARGS__), c += 8;                                           \
    if (c + 4 <= K) FUNCTION(4, c, __VA_ARGS__), c += 4;                                           \
    if (c + 2 <= K) FUNCTION(2, c, __VA_ARGS__), c += 2;                                           \
    if (c < K) FUNCTION(1, c, __VA_ARGS__);                                                        \
  }

/* Multiplies rows of lanes whose largest entry left 2^-20 .. 2^20 by powers of two; returns their
 * exponents. */
INLINE INT NAME(rescale)(ptrdiff_t K, float *row, VEC most) {
  const INT zero = {0}, left = (most < SET1(0x1p-20f)) | (most > SET1(0x1p20f));
  if (!ANY(left)) return zero;
  INT k = ((INT)most >> 23) - 127;
  k &= left & (most > SET1(0)) & (most < SET1(INFINITY));
  const VEC scale = (VEC)((127 - k) << 23);
  for (ptrdiff_t s = 0; s < K; s++) STORE(row + s * LANES, LOAD(row + s * LANES) * scale);
  return k;
}

INLINE void NAME(forward_tile)(const int N, ptrdiff_t c, ptrdiff_t K, const float *table,
                               const float *factors, const float *previous, float *row, INT on,
                               VEC *most, VEC *least) {
  VEC x[9];
  NAME(columns)(N, K, previous, table + c, x);
  for (int k = 0; k < N; k++) {
    const ptrdiff_t j = (c + k) * LANES;
    /* A chain that has ended keeps its last row. */
    const VEC y = CHOOSE(on, x[k] * LOAD(factors + j), LOAD(previous + j));
    STORE(row + j, y);
    *most = MAXV(y, *most);
    *least = CHOOSE(y == SET1(0), *least, MINV(y, *least));
  }
}

INLINE void NAME(forward_row)(const abreast *b, INT on, const float *factors,
                              const float *previous, float *row, NAME(sums) *sums) {
  const ptrdiff_t K = b->K;
  VEC most = SET1(0), least = SET1(INFINITY);
  ABREAST_TILES(NAME(forward_tile), K, b->factors, factors, previous, row, on, &most, &least)
  sums->bad |= on & (~(least >= SET1(0x1p-60f)) | ~(most > SET1(0)));
  sums->exponents += NAME(rescale)(K, row, most);
}

INLINE void NAME(add_up)(abreast *b, const float *row, const NAME(sums) *sums) {
  VEC total = SET1(0);
  for (ptrdiff_t s = 0; s < b->K; s++) total += LOAD(row + s * LANES);
  b->bad |= NAME(bits)(sums->bad | ~(total > SET1(0)));
  b->forbidden |= NAME(bits)(sums->forbidden);
  for (int l = 0; l < LANES; l++) {
    b->tops[l] += sums->tops[l];
    b->logs[l] = log(total[l]) + 0.69314718055994530942 * sums->exponents[l];
  }
}

static void NAME(forward)(abreast *b) {
  const ptrdiff_t size = b->K * LANES;
  const INT length = NAME(lengths)(b);
  float *row = b->alpha;
  NAME(sums) sums = {0};
  memcpy(row, b->ahead, size * sizeof(float));
  for (ptrdiff_t v = 1; v < b->L; v++, row += size)
    NAME(forward_row)(b, length > (int32_t)v, b->ahead + v * size, row, row + size, &sums);
  NAME(add_up)(b, row, &sums);
}

static void NAME(partition)(abreast *b) {
  const ptrdiff_t size = b->K * LANES;
  const INT length = NAME(lengths)(b);
  float *row = b->alpha, *other = row + size;
  NAME(sums) sums = {0};
  for (ptrdiff_t v = 0; v < b->L; v++) {
    const INT on = length > (int32_t)v;
    NAME(weigh_row)(b, v, on, b->scores, v ? b->ahead : row, &sums);
    if (v == 0) continue;
    NAME(forward_row)(b, on, b->ahead, row, other, &sums);
    float *last = row;
    row = other, other = last;
  }
  NAME(add_up)(b, row, &sums);
}

INLINE void NAME(backward_tile)(const int N, ptrdiff_t c, ptrdiff_t K, const float *turned,
                                const float *alpha, float *ahead, float *scores, INT on, VEC *mass,
                                VEC *mean, VEC *most, VEC *least) {
  VEC x[9];
  NAME(columns)(N, K, ahead + K * LANES, turned + c, x);
  for (int k = 0; k < N; k++) {
    const ptrdiff_t j = (c + k) * LANES;
    const VEC beta = CHOOSE(on, x[k], SET1(1)); /* the last node has no successor */
    const VEC p = beta * LOAD(alpha + j), y = beta * LOAD(ahead + j);
    *mass += p;
    *mean = MULADD(p, LOAD(scores + j), *mean);
    *most = MAXV(y, *most);
    *least = CHOOSE(y == SET1(0), *least, MINV(y, *least));
    STORE(scores + j, p);
    STORE(ahead + j, y);
  }
}

static void NAME(backward)(abreast *b, int nodes) {
  const ptrdiff_t K = b->K, size = K * LANES, L = b->L;
  const INT length = NAME(lengths)(b);
  const float *alpha = b->alpha + L * size;
  float *ahead = b->ahead + L * size, *scores = b->scores + L * size;
  WIDE means = {0};
  INT bad = {0};
  memset(ahead, 0, size * sizeof(float));
  for (ptrdiff_t v = L - 1; v >= 0; v--) {
    VEC mass = SET1(0), mean = SET1(0), most = SET1(0), least = SET1(INFINITY);
    const INT in = length > (int32_t)v, on = length > (int32_t)v + 1;
    alpha -= size, ahead -= size, scores -= size;
    ABREAST_TILES(NAME(backward_tile), K, b->turned, alpha, ahead, scores, on, &mass, &mean, &most,
                  &least)
    bad |= in & (~(least >= SET1(0x1p-60f)) | ~(mass >= SET1(0x1p-40f)));
    const VEC share = CHOOSE(in, SET1(1) / mass, SET1(0));
    means += TO_WIDE(CHOOSE(in, mean * share, SET1(0)));
    if (nodes)
      for (ptrdiff_t s = 0; s < K; s++) STORE(scores + s * LANES, LOAD(scores + s * LANES) * share);
    /* The row behind belongs to the edge behind, whose marginals have the sum 1. */
    if (v < L - 1)
      for (ptrdiff_t s = 0; s < size; s += LANES)
        STORE(ahead + size + s, CHOOSE(on, LOAD(ahead + size + s) * share, SET1(0)));
    NAME(rescale)(K, ahead, most);
  }
  b->bad |= NAME(bits)(bad);
  for (int l = 0; l < LANES; l++) b->mean[l] = means[l];
}

INLINE void NAME(outer_tile)(const int R, const int C, ptrdiff_t K, ptrdiff_t n, const float *alpha,
                             const float *ahead, const float *factors, float *out) {
  const ptrdiff_t size = K * LANES;
  VEC sums[ROWS][COLUMNS];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) sums[r][c] = SET1(0);
  for (ptrdiff_t v = 0; v < n; v++, alpha += size, ahead += size)
    for (int r = 0; r < R; r++) {
      const VEC a = LOAD(alpha + r * LANES);
      for (int c = 0; c < C; c++) sums[r][c] = MULADD(a, LOAD(ahead + c * LANES), sums[r][c]);
    }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++)
      STORE(out + (r * K + c) * LANES, sums[r][c] * factors[r * K + c]);
}

#define ABREAST_OUTER(R, C)                                                                        \
  NAME(outer_tile)(R, C, K, b->L - 1, b->alpha + s * LANES, b->ahead + (K + t) * LANES,            \
                   b->factors + s * K + t, b->pairs + (s * K + t) * LANES)
#define ABREAST_OUTER_ROWS(R)                                                                      \
  for (t = 0; t + COLUMNS <= K; t += COLUMNS) ABREAST_OUTER(R, COLUMNS);                           \
  for (; t + 2 <= K; t += 2) ABREAST_OUTER(R, 2);                                                  \
  if (t < K) ABREAST_OUTER(R, 1);

static void NAME(outer)(abreast *b) {
  const ptrdiff_t K = b->K;
  ptrdiff_t s = 0, t;
  for (; s + ROWS <= K; s += ROWS) {
    ABREAST_OUTER_ROWS(ROWS)
  }
  for (; s + 2 <= K; s += 2) {
    ABREAST_OUTER_ROWS(2)
  }
  if (s < K) {
    ABREAST_OUTER_ROWS(1)
  }
}

/* out[t] = sum_s previous[s] (mean[s] table[s, t] + along[s, t]) for N columns. */
INLINE void NAME(mean_columns)(const int N, ptrdiff_t K, const float *previous, const float *mean,
                               const float *table, const float *along, VEC *out) {
  for (int k = 0; k < N; k++) out[k] = SET1(0);
  for (ptrdiff_t s = 0; s < K; s++) {
    const VEC x = LOAD(previous + s * LANES), y = x * LOAD(mean + s * LANES);
    for (int k = 0; k < N; k++) {
      out[k] = MULADD(y, SET1(table[s * K + k]), out[k]);
      out[k] = MULADD(x, SET1(along[s * K + k]), out[k]);
    }
  }
}

/* out <- means given each state of a node, of what is on one side of it: sums over that side times
 * the message of the other side, over the marginal.  Returns the mean of all. */
INLINE void NAME(mean_tile)(const int N, ptrdiff_t c, ptrdiff_t K, const float *previous,
                            const float *before, const float *table, const float *along,
                            const float *other, const float *p, float *out, VEC *mean) {
  VEC x[9];
  NAME(mean_columns)(N, K, previous, before, table + c, along + c, x);
  for (int k = 0; k < N; k++) {
    const ptrdiff_t j = (c + k) * LANES;
    const VEC mass = LOAD(p + j), y = x[k] * LOAD(other + j) / (mass + SET1(1e-37f));
    *mean = MULADD(mass, y, *mean);
    STORE(out + j, y);
  }
}

INLINE VEC NAME(expected)(ptrdiff_t K, const float *p, const float *x) {
  VEC mean = SET1(0);
  for (ptrdiff_t s = 0; s < K * LANES; s += LANES) mean = MULADD(LOAD(p + s), LOAD(x + s), mean);
  return mean;
}

INLINE void NAME(slope_tile)(const int R, const int C, ptrdiff_t K, ptrdiff_t n, const float *alpha,
                             const float *left, const float *ahead, const float *right,
                             const float *table, const float *factors, float *out) {
  const ptrdiff_t size = K * LANES;
  VEC sums[2][COLUMNS];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) sums[r][c] = SET1(0);
  for (ptrdiff_t v = 0; v < n; v++, alpha += size, left += size, ahead += size, right += size)
    for (int r = 0; r < R; r++) {
      const VEC a = LOAD(alpha + r * LANES), b = LOAD(left + r * LANES);
      for (int c = 0; c < C; c++) {
        sums[r][c] = MULADD(a, LOAD(right + c * LANES), sums[r][c]);
        sums[r][c] = MULADD(b, LOAD(ahead + c * LANES), sums[r][c]);
      }
    }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) {
      const ptrdiff_t k = r * K + c;
      const VEC moved = LOAD(out + k * LANES) * table[k];
      STORE(out + k * LANES, MULADD(sums[r][c], SET1(factors[k]), moved));
    }
}

/* Covariances with f = <d, parts>: a part of marginal p has p (E[f | part] - E f).  Means are kept
 * less their own means, so that the differences lose no digits. */
static void NAME(slope)(abreast *b, const float *table, float *d) {
  const ptrdiff_t K = b->K, size = K * LANES, L = b->L, all = K * K;
  const float *alpha = b->alpha, *ahead = b->ahead;
  float *p = b->scores, *before = d + (L + 1) * size, *after = d + L * size;
  for (ptrdiff_t v = 0; v < L; v++, before += size) {
    float *x = d + v * size;
    VEC mean = SET1(0);
    if (v)
      ABREAST_TILES(NAME(mean_tile), K, alpha + (v - 1) * size, before - size, b->factors,
                    table + all, ahead + v * size, p + v * size, before, &mean)
    else
      memset(before, 0, size * sizeof(float));
    mean += NAME(expected)(K, p + v * size, x);
    for (ptrdiff_t s = 0; s < size; s += LANES)
      STORE(before + s, LOAD(before + s) + LOAD(x + s) - mean);
  }
  memset(after, 0, size * sizeof(float));
  for (ptrdiff_t v = L - 1; v >= 0; v--) {
    float *x = d + v * size, *q = p + v * size;
    const float *a = alpha + v * size, *next = ahead + (v + 1) * size;
    VEC mean = SET1(0), own;
    before -= size;
    if (v < L - 1) {
      ABREAST_TILES(NAME(mean_tile), K, next, x + size, b->turned, table + 2 * all, a, q, after,
                    &mean)
      for (ptrdiff_t s = size; s < 2 * size; s += LANES)
        STORE(x + s, LOAD(x + s) * LOAD(next + s - size));
    }
    own = NAME(expected)(K, q, x);
    for (ptrdiff_t s = 0; s < size; s += LANES) {
      const VEC ahead_of = LOAD(after + s) - mean, behind = LOAD(before + s);
      STORE(x + s, LOAD(x + s) - own + ahead_of);
      STORE(q + s, LOAD(q + s) * (behind + ahead_of));
      STORE(before + s, LOAD(a + s) * (behind - mean)); /* edges have this mean */
    }
  }
#define ABREAST_SLOPE(R, C)                                                                        \
  NAME(slope_tile)(R, C, K, L - 1, alpha + s * LANES, before + s * LANES, ahead + (K + t) * LANES, \
                   d + (K + t) * LANES, table + s * K + t, b->factors + s * K + t,                 \
                   b->pairs + (s * K + t) * LANES)
  for (ptrdiff_t s = 0, t; s < K; s += 2) {
    const int one = s + 1 == K;
    for (t = 0; t + COLUMNS <= K; t += COLUMNS)
      if (one) ABREAST_SLOPE(1, COLUMNS);
      else ABREAST_SLOPE(2, COLUMNS);
    for (; t < K; t++)
      if (one) ABREAST_SLOPE(1, 1);
      else ABREAST_SLOPE(2, 1);
  }
#undef ABREAST_SLOPE
}

static void NAME(mean_pairs)(const abreast *b, const float *table, double *sums) {
  WIDE total = {0};
  for (ptrdiff_t s = 0; s < b->K; s++) {
    VEC row = SET1(0);
    for (ptrdiff_t t = s * b->K; t < (s + 1) * b->K; t++)
      row += LOAD(b->pairs + t * LANES) * table[t];
    total += TO_WIDE(row);
  }
  for (int l = 0; l < LANES; l++) sums[l] = total[l];
}

static const abreast_loops NAME(table) = {
    LANES, NAME(weigh), NAME(forward), NAME(partition), NAME(backward), NAME(outer),
    NAME(mean_pairs), NAME(slope), NAME(scatter),
};

#undef NAME
#undef LANES
#undef ROWS
#undef COLUMNS
#undef VEC
#undef INT
#undef WIDE
#undef INLINE
#undef LOAD
#undef STORE
#undef SET1
#undef CHOOSE
#undef MULADD
#undef MAXV
#undef MINV
#undef ANY
#undef TO_WIDE
#undef ABREAST_TILES
#undef ABREAST_OUTER
#undef ABREAST_OUTER_ROWS
