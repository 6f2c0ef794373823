/* The vector kernels, written once and compiled for each instruction set by kernels.h, which
 * defines NAME(f), VEC, LANES, LOAD, STORE, SET1, ADD, MULADD, MAXV around each inclusion.
 *
 * A tile is NV vectors of columns kept in registers while the rows stream by: the state axis
 * is contiguous and innermost, so one broadcast of a feature or of a previous score serves all
 * states. `width` is a multiple of LANES; kernels.h sends other widths to the plain loops. */

#define SS_SCORE(SUFFIX, T, VALUE, ROW)                                                            \
  static inline __attribute__((always_inline)) void NAME(score_tile_##SUFFIX)(                     \
      const int NV, ptrdiff_t n, const int32_t *index, const T *value, const double *W,            \
      ptrdiff_t stride, double *out) {                                                             \
    VEC acc[MAX_TILE];                                                                             \
    for (int k = 0; k < NV; k++) acc[k] = LOAD(out + k * LANES);                                   \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
      const double *row = W + (ptrdiff_t)(ROW) * stride;                                           \
      const VEC x = SET1((double)(VALUE));                                                         \
      for (int k = 0; k < NV; k++) acc[k] = MULADD(x, LOAD(row + k * LANES), acc[k]);              \
    }                                                                                              \
    for (int k = 0; k < NV; k++) STORE(out + k * LANES, acc[k]);                                   \
    (void)index;                                                                                   \
    (void)value;                                                                                   \
  }                                                                                                \
  static void NAME(score_##SUFFIX)(ptrdiff_t n, const int32_t *index, const T *value,              \
                                   const double *W, ptrdiff_t stride, ptrdiff_t width,             \
                                   double *out) {                                                  \
    ptrdiff_t c = 0;                                                                               \
    for (; c + MAX_TILE * LANES <= width; c += MAX_TILE * LANES)                                   \
      NAME(score_tile_##SUFFIX)(MAX_TILE, n, index, value, W + c, stride, out + c);                \
    for (; c + 4 * LANES <= width; c += 4 * LANES)                                                 \
      NAME(score_tile_##SUFFIX)(4, n, index, value, W + c, stride, out + c);                       \
    for (; c + 2 * LANES <= width; c += 2 * LANES)                                                 \
      NAME(score_tile_##SUFFIX)(2, n, index, value, W + c, stride, out + c);                       \
    for (; c + LANES <= width; c += LANES)                                                         \
      NAME(score_tile_##SUFFIX)(1, n, index, value, W + c, stride, out + c);                       \
  }

SS_SCORE(csr_f64, double, value[j], index[j])
SS_SCORE(csr_f32, float, value[j], index[j])
SS_SCORE(dense_f64, double, value[j], j)
SS_SCORE(dense_f32, float, value[j], j)

/* All values are one: no multiplication. */
static inline __attribute__((always_inline)) void NAME(score_tile_ones)(
    const int NV, ptrdiff_t n, const int32_t *index, const double *W, ptrdiff_t stride,
    double *out) {
  VEC acc[MAX_TILE];
  for (int k = 0; k < NV; k++) acc[k] = LOAD(out + k * LANES);
  for (ptrdiff_t j = 0; j < n; j++) {
    const double *row = W + (ptrdiff_t)index[j] * stride;
    for (int k = 0; k < NV; k++) acc[k] = ADD(acc[k], LOAD(row + k * LANES));
  }
  for (int k = 0; k < NV; k++) STORE(out + k * LANES, acc[k]);
}

static void NAME(score_ones)(ptrdiff_t n, const int32_t *index, const double *W, ptrdiff_t stride,
                             ptrdiff_t width, double *out) {
  ptrdiff_t c = 0;
  for (; c + MAX_TILE * LANES <= width; c += MAX_TILE * LANES)
    NAME(score_tile_ones)(MAX_TILE, n, index, W + c, stride, out + c);
  for (; c + 4 * LANES <= width; c += 4 * LANES)
    NAME(score_tile_ones)(4, n, index, W + c, stride, out + c);
  for (; c + 2 * LANES <= width; c += 2 * LANES)
    NAME(score_tile_ones)(2, n, index, W + c, stride, out + c);
  for (; c + LANES <= width; c += LANES)
    NAME(score_tile_ones)(1, n, index, W + c, stride, out + c);
}

/* next[t] = max_s previous[s] + T[s, t].  Two accumulators a vector hide the latency of max. */
static inline __attribute__((always_inline)) void NAME(maxplus_tile)(
    const int NV, ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,
    double *next) {
  VEC even[MAX_TILE], odd[MAX_TILE];
  for (int k = 0; k < NV; k++) {
    even[k] = ADD(SET1(previous[0]), LOAD(T + k * LANES));
    odd[k] = even[k];
  }
  ptrdiff_t s = 1;
  for (; s + 1 < K; s += 2) {
    const double *row = T + s * stride;
    const VEC a = SET1(previous[s]), b = SET1(previous[s + 1]);
    for (int k = 0; k < NV; k++) {
      even[k] = MAXV(even[k], ADD(a, LOAD(row + k * LANES)));
      odd[k] = MAXV(odd[k], ADD(b, LOAD(row + stride + k * LANES)));
    }
  }
  if (s < K) {
    const double *row = T + s * stride;
    const VEC a = SET1(previous[s]);
    for (int k = 0; k < NV; k++) even[k] = MAXV(even[k], ADD(a, LOAD(row + k * LANES)));
  }
  for (int k = 0; k < NV; k++) STORE(next + k * LANES, MAXV(even[k], odd[k]));
}

static void NAME(maxplus)(ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,
                          ptrdiff_t width, double *next) {
  ptrdiff_t c = 0;
  for (; c + MAXPLUS_TILE * LANES <= width; c += MAXPLUS_TILE * LANES)
    NAME(maxplus_tile)(MAXPLUS_TILE, K, previous, T + c, stride, next + c);
  for (; c + 2 * LANES <= width; c += 2 * LANES)
    NAME(maxplus_tile)(2, K, previous, T + c, stride, next + c);
  for (; c + LANES <= width; c += LANES)
    NAME(maxplus_tile)(1, K, previous, T + c, stride, next + c);
}

static const ss_kernel_table NAME(table) = {
    NAME(score_csr_f64), NAME(score_csr_f32), NAME(score_dense_f64), NAME(score_dense_f32),
    NAME(score_ones),    NAME(maxplus),       LABEL,
};

#undef SS_SCORE
