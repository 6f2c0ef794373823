/* Functions for instructions that not every processor has: those between SS_TARGET("avx2,fma") and
 * SS_TARGET_END.  Where the compiler can do so, SS_X86 is defined. */
#ifndef STRUCTSOLVE_TARGETS_H
#define STRUCTSOLVE_TARGETS_H

#include "clones.h"

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__)) && !defined(STRUCTSOLVE_PLAIN)
#define SS_X86 1
#include <immintrin.h>
#define SS_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define SS_TARGET(features)                                                                        \
  SS_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define SS_TARGET_END SS_PRAGMA(clang attribute pop)
#else
#define SS_TARGET(features) SS_PRAGMA(GCC push_options) SS_PRAGMA(GCC target(features))
#define SS_TARGET_END SS_PRAGMA(GCC pop_options)
#endif
#endif

#endif
