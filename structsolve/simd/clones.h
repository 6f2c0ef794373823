/* A function that is compiled for several instruction sets, of which the loader takes the best that
 * the processor has; once where the compiler cannot. */
#ifndef STRUCTSOLVE_CLONES_H
#define STRUCTSOLVE_CLONES_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__ELF__)
#define SS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SS_CLONES
#endif

#endif
