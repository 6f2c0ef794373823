/* The loops of abreast.h for each instruction set.  _abreast.pyx alone includes this file. */
#ifndef STRUCTSOLVE_ABREAST_LOOPS_H
#define STRUCTSOLVE_ABREAST_LOOPS_H

#include <math.h>
#include <string.h>

#include "structsolve/batch/abreast.h"
#include "structsolve/simd/targets.h"

#ifdef SS_X86
SS_TARGET("avx2,fma")
#define NAME(f) abreast_##f##_8
#define LANES 8
#define ROWS 3
#define COLUMNS 4
#define MULADD(a, b, c) ((VEC)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define MAXV(a, b) ((VEC)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define MINV(a, b) ((VEC)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define ANY(mask) (!_mm256_testz_si256((__m256i)(mask), (__m256i)(mask)))
#include "abreast_impl.h"
SS_TARGET_END
SS_TARGET("avx512f,avx512dq")
#define NAME(f) abreast_##f##_16
#define LANES 16
#define ROWS 4
#define COLUMNS 6
#define MULADD(a, b, c) ((VEC)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define MAXV(a, b) ((VEC)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define MINV(a, b) ((VEC)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define ANY(mask) (_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#include "abreast_impl.h"
SS_TARGET_END
#endif

/* The loops of processors whose loops of simd/loops.h have this name; NULL if there are none. */
static const abreast_loops *abreast_of(const char *name) {
#ifdef SS_X86
  if (!strcmp(name, "avx512") && __builtin_cpu_supports("avx512dq")) return &abreast_table_16;
  if (!strcmp(name, "avx512") || !strcmp(name, "avx2")) return &abreast_table_8;
#endif
  (void)name;
  return NULL;
}

#endif
