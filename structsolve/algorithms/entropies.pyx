"""Entropies of marginals and their slopes, for line searches: many logarithms at a time."""

cdef extern from *:
    r"""
    /* Vectors of GCC and Clang, compiled for AVX-512, AVX2 and what the build is for; chosen once
     * per process, as loops.h does (STRUCTSOLVE_SIMD asks for a lesser one).  Others: log(). */
    #include <float.h>
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    typedef double (*ss_entropy_function)(ptrdiff_t, const double *);
    typedef double (*ss_slope_function)(ptrdiff_t, const double *, const double *, double, int *);
    typedef void (*ss_log_function)(ptrdiff_t, const double *, double, double *);

    static double ss_tail_log(double x) { return log(x > DBL_MIN ? x : DBL_MIN); }

    #if defined(__GNUC__)
    #define SS_VECTORS(N, BYTES)                                                                  \
      typedef double ss_d##N __attribute__((vector_size(BYTES)));                                 \
      typedef int64_t ss_i##N __attribute__((vector_size(BYTES)));                                \
      typedef uint64_t ss_w##N __attribute__((vector_size(BYTES)));                               \
      typedef double ss_u##N __attribute__((vector_size(BYTES), aligned(8), may_alias));
    SS_VECTORS(2, 16)
    SS_VECTORS(4, 32)
    SS_VECTORS(8, 64)

    /* log x as fdlibm has it: x = 2^k (1 + f), s = f / (2 + f).  About -709 for 0 and for numbers
     * below DBL_MIN; neither NaN nor negative numbers come here. */
    #define SS_LOG(N, x, out)                                                                     \
      {                                                                                           \
        const ss_w##N bits_ = (ss_w##N)(x) + (0x3ff0000000000000ULL - 0x3fe6a09e00000000ULL);     \
        const ss_d##N k_ = (ss_d##N)((bits_ >> 52) | 0x4330000000000000ULL) - 4503599627371519.0; \
        const ss_w##N m_ = (bits_ & 0x000fffffffffffffULL) + 0x3fe6a09e00000000ULL;               \
        const ss_d##N f_ = (ss_d##N)m_ - 1.0;                                                     \
        const ss_d##N s_ = f_ / (f_ + 2.0), z_ = s_ * s_, w_ = z_ * z_, h_ = 0.5 * f_ * f_;       \
        const ss_d##N t1_ = w_ * (3.999999999940941908e-01 + w_ * (2.222219843214978396e-01 +     \
                                 w_ * 1.531383769920937332e-01));                                 \
        const ss_d##N t2_ = z_ * (6.666666666666735130e-01 + w_ * (2.857142874366239149e-01 +     \
                           w_ * (1.818357216161805012e-01 + w_ * 1.479819860511658591e-01)));     \
        (out) = k_ * 6.93147180369123816490e-01 -                                                 \
                ((h_ - (s_ * (h_ + t1_ + t2_) + k_ * 1.90821492927058770002e-10)) - f_);          \
      }
    #define SS_ENTROPIES(N, SUFFIX, TARGET)                                                       \
      TARGET static double ss_entropy_##SUFFIX(ptrdiff_t n, const double *x) {                    \
        ss_d##N sum = {0};                                                                        \
        double total = 0;                                                                         \
        ptrdiff_t j = 0;                                                                          \
        for (; j + N <= n; j += N) {                                                              \
          const ss_d##N v = *(const ss_u##N *)(x + j);                                            \
          ss_d##N logs;                                                                           \
          SS_LOG(N, v, logs)                                                                      \
          sum += v * logs;                                                                        \
        }                                                                                         \
        for (; j < n; j++) total += x[j] * ss_tail_log(x[j]);                                     \
        for (int k = 0; k < N; k++) total += sum[k];                                              \
        return -total;                                                                            \
      }                                                                                           \
      TARGET static double ss_slope_##SUFFIX(ptrdiff_t n, const double *a, const double *b,       \
                                             double gamma, int *stuck) {                          \
        ss_d##N sum = {0};                                                                        \
        ss_i##N still = {0};                                                                      \
        double total = 0;                                                                         \
        int any = 0;                                                                              \
        ptrdiff_t j = 0;                                                                          \
        for (; j + N <= n; j += N) {                                                              \
          const ss_d##N u = *(const ss_u##N *)(a + j), v = *(const ss_u##N *)(b + j);             \
          const ss_d##N x = (1 - gamma) * u + gamma * v, d = v - u;                               \
          ss_d##N logs;                                                                           \
          SS_LOG(N, x, logs)                                                                      \
          still |= (x == 0.0) & (d != 0.0);                                                       \
          sum += d * logs;                                                                        \
        }                                                                                         \
        for (int k = 0; k < N; k++) any |= still[k] != 0;                                         \
        for (; j < n; j++) {                                                                      \
          const double x = (1 - gamma) * a[j] + gamma * b[j], d = b[j] - a[j];                    \
          any |= x == 0 && d != 0;                                                                \
          total += d * ss_tail_log(x);                                                            \
        }                                                                                         \
        *stuck |= any;                                                                            \
        for (int k = 0; k < N; k++) total += sum[k];                                              \
        return -total;                                                                            \
      }                                                                                           \
      TARGET static void ss_logs_##SUFFIX(ptrdiff_t n, const double *x, double add,               \
                                          double *out) {                                          \
        ptrdiff_t j = 0;                                                                          \
        for (; j + N <= n; j += N) {                                                              \
          const ss_d##N v = *(const ss_u##N *)(x + j);                                            \
          ss_d##N logs;                                                                           \
          ss_w##N bits;                                                                           \
          SS_LOG(N, v, logs)                                                                      \
          /* Zeros to -inf, NaN stays; no other number below DBL_MIN comes here. */               \
          bits = (ss_w##N)(logs + add) & (ss_w##N)(v >= DBL_MIN);                                 \
          bits |= (ss_w##N)(v == 0.0) & 0xfff0000000000000ULL;                                    \
          bits |= (ss_w##N)(v != v) & 0x7ff8000000000000ULL;                                      \
          *(ss_u##N *)(out + j) = (ss_d##N)bits;                                                  \
        }                                                                                         \
        for (; j < n; j++) out[j] = log(x[j]) + add;                                              \
      }
    #if defined(__x86_64__)
    SS_ENTROPIES(8, avx512, __attribute__((target("avx512f"))))
    SS_ENTROPIES(4, avx2, __attribute__((target("avx2"))))
    #endif
    SS_ENTROPIES(2, plain, )
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
    static void ss_logs_plain(ptrdiff_t n, const double *x, double add, double *out) {
      for (ptrdiff_t j = 0; j < n; j++) out[j] = log(x[j]) + add;
    }
    #endif

    static void ss_choose_entropies(ss_entropy_function *entropy, ss_slope_function *slope,
                                    ss_log_function *logs) {
      *entropy = ss_entropy_plain;
      *slope = ss_slope_plain;
      *logs = ss_logs_plain;
    #if defined(__GNUC__) && defined(__x86_64__)
      const char *wish = getenv("STRUCTSOLVE_SIMD");
      if (wish && strcmp(wish, "plain") == 0) return;
      __builtin_cpu_init();
      if (__builtin_cpu_supports("avx2")) {
        *entropy = ss_entropy_avx2;
        *slope = ss_slope_avx2;
        *logs = ss_logs_avx2;
      }
      if (wish && strcmp(wish, "avx2") == 0) return;
      if (__builtin_cpu_supports("avx512f")) {
        *entropy = ss_entropy_avx512;
        *slope = ss_slope_avx512;
        *logs = ss_logs_avx512;
      }
    #endif
    }
    """
    ctypedef double (*ss_entropy_function)(Py_ssize_t, const double*) noexcept nogil
    ctypedef double (*ss_slope_function)(Py_ssize_t, const double*, const double*, double,
                                         int*) noexcept nogil
    ctypedef void (*ss_log_function)(Py_ssize_t, const double*, double, double*) noexcept nogil
    void ss_choose_entropies(ss_entropy_function*, ss_slope_function*,
                             ss_log_function*) noexcept nogil

cdef ss_entropy_function _entropy
cdef ss_slope_function _slope
cdef ss_log_function _logs
ss_choose_entropies(&_entropy, &_slope, &_logs)


cdef double entropy(Py_ssize_t n, const double* x) noexcept nogil:
    return _entropy(n, x)


cdef double entropy_slope(Py_ssize_t n, const double* a, const double* b, double gamma,
                          int* stuck) noexcept nogil:
    return _slope(n, a, b, gamma, stuck)


cdef void logarithms(Py_ssize_t n, const double* x, double add, double* out) noexcept nogil:
    _logs(n, x, add, out)
