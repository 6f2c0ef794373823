/* Passes of TRW-S in single precision, see passes_impl.h: versions by the width of vectors.
 *
 * 16 lanes (AVX-512), 8 (AVX2 and FMA) and 4 (any processor).  The number of lanes selects one.
 * Rows of scores and messages are padded to a multiple of it. */
#ifndef STRUCTSOLVE_MRF_PASSES_H
#define STRUCTSOLVE_MRF_PASSES_H

#include "../tables/transforms.h"

#include "structsolve/simd/targets.h"

#include <string.h>

/* Score of a padded state: far below all others, and sums of such numbers stay finite. */
#define MRF_PADDING (-1e30f)

typedef struct {
  int u, v, table;
  float weight;
  ptrdiff_t message;
} mrf_edge;

typedef struct {
  ptrdiff_t n;
  const int *states;
  const ptrdiff_t *near_at;
  const int *near;
  const mrf_edge *edges;
  const mrf_table *tables;
  const float *pair, *unary, *share; /* copies, scaled; what a node gives to each later one */
  const ptrdiff_t *row_at;           /* of nodes in `unary`, rows of whole vectors */
  ptrdiff_t width;                   /* of all rows, 0 if they differ */
  float *message;                    /* one per edge, in the direction of the last pass */
  float *own, *sent, *guess, *spare; /* of one node; spare: two rows */
  int *trial;                        /* the labeling of a pass forward */
} mrf_passes;

/* A pass over the nodes in rising order, which takes a labeling, or in falling order.  Returns the
 * sum of the maxima, a bound up to rounding. */
typedef double (*mrf_pass)(const mrf_passes *p, int forward);

#ifdef SS_X86

SS_TARGET("avx2,fma")
static inline float mrf_top8(__m256 x) {
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_shuffle_ps(y, y, 1)));
}
#define NAME(f) f##_8
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, x) _mm256_storeu_ps(p, x)
#define SET1(x) _mm256_set1_ps(x)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define MAXV(a, b) _mm256_max_ps(a, b)
#define MULADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MULSUB(a, b, c) _mm256_fmsub_ps(a, b, c)
#define TOP(x) mrf_top8(x)
#define EQUAL_BITS(a, b) ((unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)))
#include "passes_impl.h"
SS_TARGET_END
SS_TARGET("avx512f")
static inline float mrf_top16(__m512 x) {
  const __m512 y = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  __m128 z = _mm512_castps512_ps128(_mm512_max_ps(y, _mm512_shuffle_f32x4(y, y, 0xb1)));
  z = _mm_max_ps(z, _mm_movehl_ps(z, z));
  return _mm_cvtss_f32(_mm_max_ss(z, _mm_shuffle_ps(z, z, 1)));
}
#define NAME(f) f##_16
#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define SET1(x) _mm512_set1_ps(x)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MAXV(a, b) _mm512_max_ps(a, b)
#define MULADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MULSUB(a, b, c) _mm512_fmsub_ps(a, b, c)
#define TOP(x) mrf_top16(x)
#define EQUAL_BITS(a, b) ((unsigned)_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ))
#include "passes_impl.h"
SS_TARGET_END
#endif

/* Four lanes in plain C, which compilers turn into the vectors that every processor has. */
typedef struct {
  float x[4];
} mrf_four;
static inline mrf_four mrf_load(const float *p) {
  mrf_four y;
  memcpy(y.x, p, sizeof y.x);
  return y;
}
static inline void mrf_store(float *p, mrf_four y) { memcpy(p, y.x, sizeof y.x); }
#define MRF_LANEWISE(FUNCTION, ARGUMENTS, VALUE)                                                   \
  static inline mrf_four FUNCTION ARGUMENTS {                                                      \
    mrf_four y;                                                                                    \
    for (int q = 0; q < 4; q++) y.x[q] = VALUE;                                                    \
    return y;                                                                                      \
  }
MRF_LANEWISE(mrf_set1, (float a), a)
MRF_LANEWISE(mrf_add, (mrf_four a, mrf_four b), a.x[q] + b.x[q])
MRF_LANEWISE(mrf_sub, (mrf_four a, mrf_four b), a.x[q] - b.x[q])
MRF_LANEWISE(mrf_max, (mrf_four a, mrf_four b), a.x[q] > b.x[q] ? a.x[q] : b.x[q])
MRF_LANEWISE(mrf_muladd, (mrf_four a, mrf_four b, mrf_four c), a.x[q] * b.x[q] + c.x[q])
MRF_LANEWISE(mrf_mulsub, (mrf_four a, mrf_four b, mrf_four c), a.x[q] * b.x[q] - c.x[q])
#undef MRF_LANEWISE
static inline float mrf_top4(mrf_four y) {
  const float a = y.x[0] > y.x[1] ? y.x[0] : y.x[1], b = y.x[2] > y.x[3] ? y.x[2] : y.x[3];
  return a > b ? a : b;
}
#define NAME(f) f##_4
#define VEC mrf_four
#define LANES 4
#define LOAD(p) mrf_load(p)
#define STORE(p, x) mrf_store(p, x)
#define SET1(x) mrf_set1(x)
#define ADD(a, b) mrf_add(a, b)
#define SUB(a, b) mrf_sub(a, b)
#define MAXV(a, b) mrf_max(a, b)
#define MULADD(a, b, c) mrf_muladd(a, b, c)
#define MULSUB(a, b, c) mrf_mulsub(a, b, c)
#define TOP(x) mrf_top4(x)
#include "passes_impl.h"

static mrf_pass mrf_pass_of(int lanes) {
#ifdef SS_X86
  if (lanes == 16) return pass_16;
  if (lanes == 8) return pass_8;
#endif
  return pass_4;
}

/* Lanes for rows of `states` entries, by the name of the processor's loops (simd/loops.h). */
static int mrf_lanes(const char *name, int states) {
#ifdef SS_X86
  if (states > 8 && !strcmp(name, "avx512")) return 16;
  if (states > 4 && strcmp(name, "plain")) return 8;
#endif
  (void)name;
  (void)states;
  return 4;
}

#endif
