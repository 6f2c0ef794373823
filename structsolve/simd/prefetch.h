/* A cache line that will be read soon; no operation if the compiler has no such instruction. */
#ifndef STRUCTSOLVE_PREFETCH_H
#define STRUCTSOLVE_PREFETCH_H

#if defined(__GNUC__)
#define SS_PREFETCH(address) __builtin_prefetch(address)
#else
#define SS_PREFETCH(address) ((void)(address))
#endif

#endif
