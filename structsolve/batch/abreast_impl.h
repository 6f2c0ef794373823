/* The loops of abreast.h.  abreast_loops.h defines NAME(f), LANES, MAXV, MINV, and the sizes of
 * tiles, ROWS and COLUMNS, before each inclusion. */

typedef float NAME(floats) __attribute__((vector_size(4 * LANES)));
typedef int32_t NAME(ints) __attribute__((vector_size(4 * LANES)));
typedef double NAME(doubles) __attribute__((vector_size(8 * LANES)));
#define VEC NAME(floats)
#define INT NAME(ints)
#define WIDE NAME(doubles)
#define INLINE static inline __attribute__((always_inline))
#define LOAD(p) (*(const VEC *)(p))
#define STORE(p, x) (*(VEC *)(p) = (x))
#define SET1(x) ((VEC){0} + (x))
/* a where the mask is set, else b */
#define CHOOSE(mask, a, b) ((VEC)(((mask) & (INT)(a)) | (~(mask) & (INT)(b))))
#define TO_WIDE(x) __builtin_convertvector(x, WIDE)

INLINE int NAME(any)(INT mask) {
  int any = 0;
  for (int l = 0; l < LANES; l++) any |= mask[l];
  return any;
}

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

/* exp(x) for -87 <= x <= 0: 2^k times a polynomial (Cephes' expf), k by adding 1.5 2^23. */
INLINE VEC NAME(exp)(VEC x) {
  const VEC whole = x * 1.44269504088896341f + 12582912.0f, k = whole - 12582912.0f;
  const VEC r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  VEC p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return (VEC)((INT)p + ((INT)whole << 23));
}

/* Transposes a square: after the step for h, blocks of h rows and columns are in place. */
INLINE void NAME(transpose)(VEC *x) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 4
  for (int h = LANES / 2; h; h /= 2) {
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

static void NAME(gather)(abreast *b) {
  const ptrdiff_t K = b->K, size = K * LANES, n = NAME(squares)(b);
  for (ptrdiff_t j = 0; j < n; j++) {
    VEC x[LANES];
    for (int l = 0; l < LANES; l++) memcpy(&x[l], b->rows[l] + j * LANES, sizeof(VEC));
    NAME(transpose)(x);
    for (int l = 0; l < LANES; l++) STORE(b->scores + (j * LANES + l) * LANES, x[l]);
  }
  for (int l = 0; l < LANES; l++) {
    const ptrdiff_t rest = b->length[l];
    const float *row = b->rows[l];
    float *x = b->scores + l;
    for (ptrdiff_t j = n * LANES; j < rest * K; j++) x[j * LANES] = row[j];
    for (ptrdiff_t j = rest * K; j < b->L * K; j++) x[j * LANES] = 0;
    if (rest == 0) continue;
    if (b->start) NAME(add)(b, l, b->start, x);
    if (b->end) NAME(add)(b, l, b->end, x + (rest - 1) * size);
  }
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

static void NAME(weigh)(abreast *b) {
  const ptrdiff_t K = b->K;
  const INT length = NAME(lengths)(b);
  WIDE tops = {0};
  INT bad = {0}, forbidden = {0};
  float *x = b->scores, *out = b->ahead;
  for (ptrdiff_t v = 0; v < b->L; v++) {
    VEC top = SET1(-INFINITY), low = SET1(INFINITY);
    for (ptrdiff_t s = 0; s < K; s++) {
      const VEC y = LOAD(x + s * LANES);
      const INT none = y == SET1(-INFINITY);
      top = MAXV(y, top);
      low = CHOOSE(none, low, MINV(y, low));
      forbidden |= none;
      bad |= ~(y < SET1(INFINITY)); /* NaN, too */
    }
    bad |= ~(top - low <= SET1(ABREAST_SPAN));
    for (ptrdiff_t s = 0; s < K; s++) {
      const VEC y = LOAD(x + s * LANES), less = y - top;
      const INT none = y == SET1(-INFINITY);
      STORE(out + s * LANES, CHOOSE(none, SET1(0), NAME(exp)(less)));
      STORE(x + s * LANES, CHOOSE(none, SET1(0), less));
    }
    tops += TO_WIDE(CHOOSE(length > (int32_t)v, top, SET1(0)));
    x += K * LANES, out += K * LANES;
  }
  b->bad |= NAME(bits)(bad), b->forbidden |= NAME(bits)(forbidden);
  for (int l = 0; l < LANES; l++) b->tops[l] += tops[l];
}

/* out[t] = sum_s previous[s] table[s, t] for N columns. */
INLINE void NAME(columns)(const int N, ptrdiff_t K, const float *previous, const float *table,
                          VEC *out) {
  for (int k = 0; k < N; k++) out[k] = SET1(0);
  for (ptrdiff_t s = 0; s < K; s++) {
    const VEC x = LOAD(previous + s * LANES);
    for (int k = 0; k < N; k++) out[k] += x * table[s * K + k];
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
  if (!NAME(any)(left)) return zero;
  INT k = ((INT)most >> 23) - 127;
  k &= left & (most > SET1(0)) & (most < SET1(INFINITY));
  const VEC scale = (VEC)((127 - k) << 23);
  for (ptrdiff_t s = 0; s < K; s++) STORE(row + s * LANES, LOAD(row + s * LANES) * scale);
  return k;
}

INLINE void NAME(forward_tile)(const int N, ptrdiff_t c, ptrdiff_t K, const float *table,
                               const float *factors, float *row, INT on, VEC *most, VEC *least) {
  VEC x[9];
  const float *previous = row - K * LANES;
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

static void NAME(forward)(abreast *b) {
  const ptrdiff_t K = b->K, size = K * LANES;
  const INT length = NAME(lengths)(b);
  const float *factors = b->ahead;
  float *row = b->alpha;
  INT bad = {0}, exponents = {0};
  memcpy(row, factors, size * sizeof(float));
  for (ptrdiff_t v = 1; v < b->L; v++) {
    VEC most = SET1(0), least = SET1(INFINITY);
    const INT on = length > (int32_t)v;
    row += size, factors += size;
    ABREAST_TILES(NAME(forward_tile), K, b->factors, factors, row, on, &most, &least)
    bad |= on & (~(least >= SET1(0x1p-60f)) | ~(most > SET1(0)));
    exponents += NAME(rescale)(K, row, most);
  }
  VEC total = SET1(0);
  for (ptrdiff_t s = 0; s < K; s++) total += LOAD(row + s * LANES);
  b->bad |= NAME(bits)(bad | ~(total > SET1(0)));
  for (int l = 0; l < LANES; l++)
    b->logs[l] = log(total[l]) + 0.69314718055994530942 * exponents[l];
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
    *mean += p * LOAD(scores + j);
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
      for (int c = 0; c < C; c++) sums[r][c] += a * LOAD(ahead + c * LANES);
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
  for (; s < K; s++) {
    ABREAST_OUTER_ROWS(1)
  }
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
    LANES, NAME(gather), NAME(weigh), NAME(forward), NAME(backward), NAME(outer), NAME(mean_pairs),
    NAME(scatter),
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
#undef MAXV
#undef MINV
#undef TO_WIDE
#undef ABREAST_TILES
#undef ABREAST_OUTER
#undef ABREAST_OUTER_ROWS
