/* A cache line that will be read soon; nothing where the compiler has no word for it. */
#ifndef STRUCTSOLVE_PREFETCH_H
#define STRUCTSOLVE_PREFETCH_H

#if defined(__GNUC__)
#define SS_PREFETCH(address) __builtin_prefetch(address)
#else
#define SS_PREFETCH(address) ((void)(address))
#endif

#endif
