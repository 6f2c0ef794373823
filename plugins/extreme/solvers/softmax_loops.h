/* Float loops of softmax regression, and a barrier for threads that share its weights.
 *
 * Each sum adds sixteen partial sums in a fixed order, so that every instruction set gives the same
 * bits (the build forbids contraction). */
#ifndef STRUCTSOLVE_SOFTMAX_LOOPS_H
#define STRUCTSOLVE_SOFTMAX_LOOPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "structsolve/simd/clones.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

enum { SS_LANES = 16 };

/* Zeros that free() takes; on Linux they begin with a cache line, and many lie in large pages, where
 * fewer addresses have to be looked up. */
static inline void *ss_zeroed(size_t n, size_t size) {
#ifdef __linux__
  const size_t bytes = n * size, large = (size_t)1 << 21;
  void *p = NULL;
  if (size && bytes / size != n) return NULL;
  if (posix_memalign(&p, bytes < 2 * large ? 64 : large, bytes ? bytes : 1)) return NULL;
  if (bytes >= 2 * large) madvise(p, bytes, MADV_HUGEPAGE);
  return memset(p, 0, bytes);
#else
  return calloc(n ? n : 1, size);
#endif
}

/* Nobody reads the flags of floating point exceptions, for whose sake the exponentials would be
 * computed one by one: a sixth of the speed. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

/* out += a w */
SS_CLONES static void ss_add(ptrdiff_t n, float a, const float *w, float *out) {
  for (ptrdiff_t j = 0; j < n; j++) out[j] += a * w[j];
}

/* x := scale x + bias + more */
SS_CLONES static void ss_shift(ptrdiff_t n, float scale, const float *bias, float more, float *x) {
  for (ptrdiff_t j = 0; j < n; j++) x[j] = scale * x[j] + bias[j] + more;
}

/* exp(x) for x <= 0, within 2 units in the last place; 0 below -87 */
static inline float ss_exp(float x) {
  const float bound = x < -87.0f ? -87.0f : x, whole = floorf(bound * 1.44269504f + 0.5f);
  const float r = (bound - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  /* A mask instead of a branch, so that loops over it use vectors. */
  const int32_t bits = (((int32_t)whole + 127) << 23) & -(int32_t)(x >= -87.0f);
  float power;
  memcpy(&power, &bits, 4);
  return p * power;
}

/* x := softmax(x) over n entries, n a multiple of SS_LANES (-inf in the padding); returns the
 * logarithm of the sum of exponentials. */
SS_CLONES static float ss_softmax(ptrdiff_t n, float *x) {
  float top[SS_LANES], sum[SS_LANES];
  for (int l = 0; l < SS_LANES; l++) top[l] = -INFINITY, sum[l] = 0;
  for (ptrdiff_t j = 0; j < n; j += SS_LANES)
    for (int l = 0; l < SS_LANES; l++) top[l] = x[j + l] > top[l] ? x[j + l] : top[l];
  float most = top[0], total = 0;
  for (int l = 1; l < SS_LANES; l++) most = top[l] > most ? top[l] : most;
  for (ptrdiff_t j = 0; j < n; j += SS_LANES)
    for (int l = 0; l < SS_LANES; l++) {
      const float e = ss_exp(x[j + l] - most);
      x[j + l] = e;
      sum[l] += e;
    }
  for (int l = 0; l < SS_LANES; l++) total += sum[l];
  const float inverse = 1.0f / total;
  for (ptrdiff_t j = 0; j < n; j++) x[j] *= inverse;
  return most + logf(total);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* Number of weights with |scale w| > least. */
SS_CLONES static ptrdiff_t ss_above(ptrdiff_t n, const float *w, float scale, double least) {
  int32_t many = 0; /* a pass is over at most 2^31 classes */
  for (ptrdiff_t j = 0; j < n; j++) many += fabsf(scale * w[j]) > least;
  return many;
}

/* Writes these weights by class, of which place[j] is the j-th's place; without branches, as few are
 * kept.  Both results have room for one more than there are. */
static inline void ss_keep(ptrdiff_t n, const int32_t *place, const float *w, float scale,
                           double least, int32_t *number, float *value) {
  ptrdiff_t k = 0;
  for (ptrdiff_t j = 0; j < n; j++) {
    const float v = scale * w[place[j]];
    number[k] = (int32_t)j, value[k] = v;
    k += fabsf(v) > least;
  }
}

/* Sum of min(x, most) over SS_LANES entries, by halves. */
static inline float ss_clipped(const float *x, float most) {
  float sum[SS_LANES];
  for (int l = 0; l < SS_LANES; l++) sum[l] = x[l] < most ? x[l] : most;
  for (int l = 0; l < 8; l++) sum[l] += sum[l + 8];
  for (int l = 0; l < 4; l++) sum[l] += sum[l + 4];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* Counter-based random numbers: the result depends on the three arguments only. */
static inline uint64_t ss_draw(uint64_t seed, uint64_t row, uint64_t purpose) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (2 * row + purpose + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A barrier for threads; waiting threads yield their cores. */
#ifdef _MSC_VER
#include <windows.h>
typedef volatile LONG ss_count;
static inline long ss_load(ss_count *x) { return InterlockedCompareExchange(x, 0, 0); }
static inline long ss_step(ss_count *x) { return InterlockedIncrement(x); }
static inline void ss_store(ss_count *x, long value) { InterlockedExchange(x, value); }
static inline void ss_rest(void) { SwitchToThread(); }
#else
#include <sched.h>
typedef long ss_count;
static inline long ss_load(ss_count *x) { return __atomic_load_n(x, __ATOMIC_ACQUIRE); }
static inline long ss_step(ss_count *x) { return __atomic_add_fetch(x, 1, __ATOMIC_ACQ_REL); }
static inline void ss_store(ss_count *x, long value) { __atomic_store_n(x, value, __ATOMIC_RELEASE); }
static inline void ss_rest(void) { sched_yield(); }
#endif

typedef struct {
  ss_count waiting, phase;
} ss_barrier;

static inline void ss_wait(ss_barrier *b, long threads) {
  if (threads < 2) return;
  const long phase = ss_load(&b->phase);
  if (ss_step(&b->waiting) == threads) {
    ss_store(&b->waiting, 0);
    ss_step(&b->phase);
    return;
  }
  for (long spins = 0; ss_load(&b->phase) == phase; spins++)
    if (spins > 200) ss_rest();
}

#endif
