"""Entropies of marginals, as line searches on them ask for: many logarithms at a time."""

import numpy as np

cdef extern from *:
    r"""
    /* Vectors of GCC and Clang, compiled for AVX-512, AVX2 and what the build is for; chosen once
     * per process, as kernels.h does (STRUCTSOLVE_SIMD asks for a lesser one).  Others: log(). */
    #include <float.h>
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    typedef double (*ss_entropy_function)(ptrdiff_t, const double *);
    typedef double (*ss_slope_function)(ptrdiff_t, const double *, const double *, double, int *);

    static double ss_tail_log(double x) { return log(x > DBL_MIN ? x : DBL_MIN); }

    #if defined(__GNUC__)
    typedef double ss_v8d __attribute__((vector_size(64)));
    typedef int64_t ss_v8i __attribute__((vector_size(64)));
    typedef uint64_t ss_v8w __attribute__((vector_size(64)));
    typedef double ss_v8u __attribute__((vector_size(64), aligned(8), may_alias));

    /* log x as fdlibm has it: x = 2^k (1 + f), s = f / (2 + f).  About -709 for 0 and for numbers
     * below DBL_MIN; neither NaN nor negative numbers come here. */
    #define SS_LOG(x, out)                                                                        \
      {                                                                                           \
        const ss_v8w bits_ = (ss_v8w)(x) + (0x3ff0000000000000ULL - 0x3fe6a09e00000000ULL);       \
        const ss_v8d k_ = (ss_v8d)((bits_ >> 52) | 0x4330000000000000ULL) - 4503599627371519.0;  \
        const ss_v8d f_ = (ss_v8d)((bits_ & 0x000fffffffffffffULL) + 0x3fe6a09e00000000ULL) - 1.0; \
        const ss_v8d s_ = f_ / (f_ + 2.0), z_ = s_ * s_, w_ = z_ * z_, h_ = 0.5 * f_ * f_;        \
        const ss_v8d t1_ = w_ * (3.999999999940941908e-01 + w_ * (2.222219843214978396e-01 +      \
                                 w_ * 1.531383769920937332e-01));                                 \
        const ss_v8d t2_ = z_ * (6.666666666666735130e-01 + w_ * (2.857142874366239149e-01 +      \
                           w_ * (1.818357216161805012e-01 + w_ * 1.479819860511658591e-01)));     \
        (out) = k_ * 6.93147180369123816490e-01 -                                                 \
                ((h_ - (s_ * (h_ + t1_ + t2_) + k_ * 1.90821492927058770002e-10)) - f_);          \
      }
    #define SS_SUM8(v) (((v)[0] + (v)[4]) + ((v)[1] + (v)[5]) + ((v)[2] + (v)[6]) + ((v)[3] + (v)[7]))

    #define SS_ENTROPIES(SUFFIX, TARGET)                                                          \
      TARGET static double ss_entropy_##SUFFIX(ptrdiff_t n, const double *x) {                    \
        ss_v8d sum = {0};                                                                         \
        double total = 0;                                                                         \
        ptrdiff_t j = 0;                                                                          \
        for (; j + 8 <= n; j += 8) {                                                              \
          const ss_v8d v = *(const ss_v8u *)(x + j);                                              \
          ss_v8d logs;                                                                            \
          SS_LOG(v, logs)                                                                         \
          sum += v * logs;                                                                        \
        }                                                                                         \
        for (; j < n; j++) total += x[j] * ss_tail_log(x[j]);                                     \
        return -(SS_SUM8(sum) + total);                                                           \
      }                                                                                           \
      TARGET static double ss_slope_##SUFFIX(ptrdiff_t n, const double *a, const double *b,       \
                                             double gamma, int *stuck) {                          \
        ss_v8d sum = {0};                                                                         \
        ss_v8i still = {0};                                                                       \
        double total = 0;                                                                         \
        int any = 0;                                                                              \
        ptrdiff_t j = 0;                                                                          \
        for (; j + 8 <= n; j += 8) {                                                              \
          const ss_v8d u = *(const ss_v8u *)(a + j), v = *(const ss_v8u *)(b + j);                \
          const ss_v8d x = (1 - gamma) * u + gamma * v, d = v - u;                                \
          ss_v8d logs;                                                                            \
          SS_LOG(x, logs)                                                                         \
          still |= (x == 0.0) & (d != 0.0);                                                       \
          sum += d * logs;                                                                        \
        }                                                                                         \
        for (int k = 0; k < 8; k++) any |= still[k] != 0;                                         \
        for (; j < n; j++) {                                                                      \
          const double x = (1 - gamma) * a[j] + gamma * b[j], d = b[j] - a[j];                    \
          any |= x == 0 && d != 0;                                                                \
          total += d * ss_tail_log(x);                                                            \
        }                                                                                         \
        *stuck |= any;                                                                            \
        return -(SS_SUM8(sum) + total);                                                           \
      }
    #if defined(__x86_64__)
    SS_ENTROPIES(avx512, __attribute__((target("avx512f"))))
    SS_ENTROPIES(avx2, __attribute__((target("avx2"))))
    #endif
    SS_ENTROPIES(plain, )
    #else
    static double ss_entropy_plain(ptrdiff_t n, const double *x) {
      double total = 0;
      for (ptrdiff_t j = 0; j < n; j++) total -= x[j] * ss_tail_log(x[j]);
      return total;
    }
    static double ss_slope_plain(ptrdiff_t n, const double *a, const double *b, double gamma,
                                 int *stuck) {
      double total = 0;
      for (ptrdiff_t j = 0; j < n; j++) {
        const double x = (1 - gamma) * a[j] + gamma * b[j], d = b[j] - a[j];
        *stuck |= x == 0 && d != 0;
        total -= d * ss_tail_log(x);
      }
      return total;
    }
    #endif

    static void ss_choose_entropies(ss_entropy_function *entropy, ss_slope_function *slope) {
      *entropy = ss_entropy_plain;
      *slope = ss_slope_plain;
    #if defined(__GNUC__) && defined(__x86_64__)
      const char *wish = getenv("STRUCTSOLVE_SIMD");
      if (wish && strcmp(wish, "plain") == 0) return;
      __builtin_cpu_init();
      if (__builtin_cpu_supports("avx2")) {
        *entropy = ss_entropy_avx2;
        *slope = ss_slope_avx2;
      }
      if (wish && strcmp(wish, "avx2") == 0) return;
      if (__builtin_cpu_supports("avx512f")) {
        *entropy = ss_entropy_avx512;
        *slope = ss_slope_avx512;
      }
    #endif
    }
    """
    ctypedef double (*ss_entropy_function)(Py_ssize_t, const double*) noexcept nogil
    ctypedef double (*ss_slope_function)(Py_ssize_t, const double*, const double*, double,
                                         int*) noexcept nogil
    void ss_choose_entropies(ss_entropy_function*, ss_slope_function*) noexcept nogil

cdef ss_entropy_function _entropy
cdef ss_slope_function _slope
ss_choose_entropies(&_entropy, &_slope)


cdef double entropy(Py_ssize_t n, const double* x) noexcept nogil:
    return _entropy(n, x)


cdef double entropy_slope(Py_ssize_t n, const double* a, const double* b, double gamma,
                          int* stuck) noexcept nogil:
    return _slope(n, a, b, gamma, stuck)


def entropy_of(p):
    """Return ``-sum p log p`` of numbers of at least 0, with ``0 log 0 = 0``.

    Parameters
    ----------
    p : array of float64

    Examples
    --------
    >>> from structsolve.entropies import entropy_of
    >>> round(entropy_of([0.5, 0.5, 0.0]), 6)
    0.693147
    """
    flat = np.ascontiguousarray(p, dtype=np.float64).ravel()
    if not (np.isfinite(flat).all() and (flat >= 0).all()):
        raise ValueError("p: found negative numbers, NaN or infinity, expected numbers of at least 0")
    if not flat.size:
        return 0.0
    cdef const double[::1] view = flat
    return _entropy(view.shape[0], &view[0])


def entropy_slope_of(a, b, double gamma):
    """Return the derivative of the entropy at ``(1 - gamma) a + gamma b`` towards ``b``.

    Parameters
    ----------
    a, b : arrays of float64 of one shape
        At least 0, of the same sum.
    gamma : float
        From 0 to 1; the slope may be infinite at both ends.

    Examples
    --------
    >>> from structsolve.entropies import entropy_slope_of
    >>> entropy_slope_of([0.5, 0.5], [1.0, 0.0], 0.0)
    0.0
    >>> entropy_slope_of([0.5, 0.5], [1.0, 0.0], 1.0)
    -inf
    """
    first = np.ascontiguousarray(a, dtype=np.float64).ravel()
    second = np.ascontiguousarray(b, dtype=np.float64).ravel()
    if first.size != second.size or not (
        np.isfinite([first, second]).all() and min(first.min(initial=0), second.min(initial=0)) >= 0
    ):
        raise ValueError(
            f"a and b: found {first.size} and {second.size} entries, expected equally many numbers "
            "of at least 0"
        )
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}, expected a number from 0 to 1")
    if not first.size:
        return 0.0
    cdef const double[::1] left = first, right = second
    cdef int stuck = 0
    cdef double found = _slope(left.shape[0], &left[0], &right[0], gamma, &stuck)
    return slope_at(found, gamma, stuck)
