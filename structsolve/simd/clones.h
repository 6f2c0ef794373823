/* SS_CLONES marks functions that are compiled for several instruction sets; the loader chooses the
 * best for the processor.  Compilers without this feature compile them once.  SS_INLINE marks those
 * that are to become part of every caller. */
#ifndef STRUCTSOLVE_CLONES_H
#define STRUCTSOLVE_CLONES_H

#if defined(_MSC_VER)
#define SS_INLINE __forceinline
#elif defined(__GNUC__)
#define SS_INLINE inline __attribute__((always_inline))
#else
#define SS_INLINE inline
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__ELF__)
#define SS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SS_CLONES
#endif

#endif
