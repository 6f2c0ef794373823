/* Integers that threads share: loads, stores, sums and exchanges, each in one order for all; a clock. */
#ifndef SS_TEAM_H
#define SS_TEAM_H

#include <stdint.h>
#include <time.h>

/* A clock, in seconds. */
static inline double ss_seconds(void) {
  struct timespec now;
#if defined(CLOCK_MONOTONIC)
  clock_gettime(CLOCK_MONOTONIC, &now);
#else
  timespec_get(&now, TIME_UTC);
#endif
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
static __inline int64_t ss_load(volatile int64_t *place) {
  return _InterlockedCompareExchange64(place, 0, 0);
}
static __inline void ss_store(volatile int64_t *place, int64_t value) {
  _InterlockedExchange64(place, value);
}
/* The sum, after the addition. */
static __inline int64_t ss_add(volatile int64_t *place, int64_t value) {
  return _InterlockedExchangeAdd64(place, value) + value;
}
/* Writes `fresh` where `old` is; says whether it was. */
static __inline int ss_swap(volatile int64_t *place, int64_t old, int64_t fresh) {
  return _InterlockedCompareExchange64(place, fresh, old) == old;
}
static __inline void ss_relax(void) {
#if defined(_M_IX86) || defined(_M_X64)
  _mm_pause();
#else
  __yield();
#endif
}
#else
static inline int64_t ss_load(volatile int64_t *place) {
  return __atomic_load_n(place, __ATOMIC_SEQ_CST);
}
static inline void ss_store(volatile int64_t *place, int64_t value) {
  __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
}
static inline int64_t ss_add(volatile int64_t *place, int64_t value) {
  return __atomic_add_fetch(place, value, __ATOMIC_SEQ_CST);
}
static inline int ss_swap(volatile int64_t *place, int64_t old, int64_t fresh) {
  return __atomic_compare_exchange_n(place, &old, fresh, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
static inline void ss_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ __volatile__("yield");
#endif
}
#endif

#endif
