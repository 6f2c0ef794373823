# Scans of one row of an assignment problem; rows are whole multiples of 8 doubles.
#
# The AVX2 forms give the same bits as the plain ones: minima and differences round alike.
cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdlib.h>
    #include <string.h>
    #if defined(__GNUC__) && defined(__x86_64__) && !defined(STRUCTSOLVE_PLAIN)
    #define SS_SCAN_AVX2 1
    #include <immintrin.h>
    #endif

    typedef struct {
      /* The two smallest c[j] - v[j]; returns the first j of the smallest, -1 if all are NaN. */
      ptrdiff_t (*two)(ptrdiff_t n, const double *c, const double *v, double *least);
      /* d[j] <- min(d[j], c[j] - v[j] - h); returns the new least.  `next` is read soon after. */
      double (*relax)(ptrdiff_t n, const double *c, const double *v, double h, double *d,
                      const double *next);
      /* d[j] <- least of d[j] and rows of n costs; from[j] <- first row of it, which counts from
       * `row`. */
      void (*lower)(ptrdiff_t rows, ptrdiff_t n, const double *cost, double row, double *d,
                    double *from);
      /* First j >= start with d[j] <= m; n if there is none. */
      ptrdiff_t (*reach)(ptrdiff_t n, const double *d, double m, ptrdiff_t start);
      /* First j >= start with c[j] - v[j] == m; n if there is none. */
      ptrdiff_t (*equal)(ptrdiff_t n, const double *c, const double *v, double m, ptrdiff_t start);
      /* Rows of `cols` scores times sign to rows of `ld`, infinite beyond and where it is NaN. */
      void (*load)(ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld, const double *scores,
                   ptrdiff_t stride, double sign, double *cost);
    } ss_scans;

    static ptrdiff_t ss_plain_two(ptrdiff_t n, const double *c, const double *v, double *least) {
      double a = INFINITY, b = INFINITY;
      ptrdiff_t best = -1;
      for (ptrdiff_t j = 0; j < n; j++) {
        const double x = c[j] - v[j];
        if (x < a) { b = a; a = x; best = j; }
        else if (x < b) b = x;
      }
      least[0] = a; least[1] = b;
      return best;
    }

    static double ss_plain_relax(ptrdiff_t n, const double *c, const double *v, double h,
                                 double *d, const double *next) {
      double least = INFINITY;
      (void)next;
      for (ptrdiff_t j = 0; j < n; j++) {
        const double x = c[j] - v[j] - h;
        if (x < d[j]) d[j] = x;
        if (d[j] < least) least = d[j];
      }
      return least;
    }

    static void ss_plain_lower(ptrdiff_t rows, ptrdiff_t n, const double *cost, double row,
                               double *d, double *from) {
      for (; rows > 0; rows--, cost += n, row += 1)
        for (ptrdiff_t j = 0; j < n; j++)
          if (cost[j] < d[j]) { d[j] = cost[j]; from[j] = row; }
    }

    static ptrdiff_t ss_plain_reach(ptrdiff_t n, const double *d, double m, ptrdiff_t start) {
      for (; start < n; start++) if (d[start] <= m) return start;
      return n;
    }

    static ptrdiff_t ss_plain_equal(ptrdiff_t n, const double *c, const double *v, double m,
                                    ptrdiff_t start) {
      for (; start < n; start++) if (c[start] - v[start] == m) return start;
      return n;
    }

    static void ss_plain_load(ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld, const double *scores,
                              ptrdiff_t stride, double sign, double *cost) {
      for (; rows > 0; rows--, scores += stride, cost += ld) {
        for (ptrdiff_t j = 0; j < cols; j++) {
          const double x = sign * scores[j];
          cost[j] = x < INFINITY ? x : INFINITY;
        }
        for (ptrdiff_t j = cols; j < ld; j++) cost[j] = INFINITY;
      }
    }

    static const ss_scans ss_plain_scans = {ss_plain_two, ss_plain_relax, ss_plain_lower,
                                            ss_plain_reach, ss_plain_equal, ss_plain_load};

    #ifdef SS_SCAN_AVX2
    __attribute__((target("avx2")))
    static ptrdiff_t ss_avx2_two(ptrdiff_t n, const double *c, const double *v, double *least) {
      __m256d a0 = _mm256_set1_pd(INFINITY), a1 = a0, b0 = a0, b1 = a0;
      for (ptrdiff_t j = 0; j < n; j += 8) {
        const __m256d x = _mm256_sub_pd(_mm256_loadu_pd(c + j), _mm256_loadu_pd(v + j));
        const __m256d y = _mm256_sub_pd(_mm256_loadu_pd(c + j + 4), _mm256_loadu_pd(v + j + 4));
        b0 = _mm256_min_pd(_mm256_max_pd(x, a0), b0); a0 = _mm256_min_pd(x, a0);
        b1 = _mm256_min_pd(_mm256_max_pd(y, a1), b1); a1 = _mm256_min_pd(y, a1);
      }
      /* Pairs (smallest, second smallest) merge without an unpredictable branch. */
      __m256d a = _mm256_min_pd(a0, a1);
      __m256d b = _mm256_min_pd(_mm256_max_pd(a0, a1), _mm256_min_pd(b0, b1));
      a0 = _mm256_permute2f128_pd(a, a, 1); b0 = _mm256_permute2f128_pd(b, b, 1);
      b = _mm256_min_pd(_mm256_max_pd(a, a0), _mm256_min_pd(b, b0)); a = _mm256_min_pd(a, a0);
      a0 = _mm256_permute_pd(a, 5); b0 = _mm256_permute_pd(b, 5);
      b = _mm256_min_pd(_mm256_max_pd(a, a0), _mm256_min_pd(b, b0)); a = _mm256_min_pd(a, a0);
      least[0] = _mm256_cvtsd_f64(a); least[1] = _mm256_cvtsd_f64(b);
      if (!(least[0] < INFINITY)) return -1;
      const __m256d m = _mm256_set1_pd(least[0]);
      for (ptrdiff_t j = 0; j < n; j += 8) {
        const __m256d x = _mm256_sub_pd(_mm256_loadu_pd(c + j), _mm256_loadu_pd(v + j));
        const __m256d y = _mm256_sub_pd(_mm256_loadu_pd(c + j + 4), _mm256_loadu_pd(v + j + 4));
        const int hit = _mm256_movemask_pd(_mm256_cmp_pd(x, m, _CMP_EQ_OQ))
                        | _mm256_movemask_pd(_mm256_cmp_pd(y, m, _CMP_EQ_OQ)) << 4;
        if (hit) return j + __builtin_ctz((unsigned)hit);
      }
      return -1;
    }

    __attribute__((target("avx2")))
    static double ss_avx2_relax(ptrdiff_t n, const double *c, const double *v, double h,
                                double *d, const double *next) {
      const __m256d shift = _mm256_set1_pd(h);
      __m256d l0 = _mm256_set1_pd(INFINITY), l1 = l0;
      for (ptrdiff_t j = 0; j < n; j += 8) {
        __m256d x = _mm256_sub_pd(_mm256_loadu_pd(c + j), _mm256_loadu_pd(v + j));
        __m256d y = _mm256_sub_pd(_mm256_loadu_pd(c + j + 4), _mm256_loadu_pd(v + j + 4));
        _mm_prefetch((const char *)(next + j), _MM_HINT_T0);
        /* min gives the second where the first is NaN.  No branch: it would be unpredictable. */
        x = _mm256_min_pd(_mm256_sub_pd(x, shift), _mm256_loadu_pd(d + j));
        y = _mm256_min_pd(_mm256_sub_pd(y, shift), _mm256_loadu_pd(d + j + 4));
        _mm256_storeu_pd(d + j, x); _mm256_storeu_pd(d + j + 4, y);
        l0 = _mm256_min_pd(x, l0); l1 = _mm256_min_pd(y, l1);
      }
      l0 = _mm256_min_pd(l0, l1);
      l0 = _mm256_min_pd(l0, _mm256_permute2f128_pd(l0, l0, 1));
      return _mm256_cvtsd_f64(_mm256_min_pd(l0, _mm256_permute_pd(l0, 5)));
    }

    __attribute__((target("avx2")))
    static void ss_avx2_lower(ptrdiff_t rows, ptrdiff_t n, const double *cost, double row,
                              double *d, double *from) {
      for (; rows >= 4; rows -= 4, cost += 4 * n, row += 4) {
        const __m256d ra = _mm256_set1_pd(row), rb = _mm256_set1_pd(row + 1),
                      rc = _mm256_set1_pd(row + 2), re = _mm256_set1_pd(row + 3);
        for (ptrdiff_t j = 0; j < n; j += 4) {
          const __m256d a = _mm256_loadu_pd(cost + j), b = _mm256_loadu_pd(cost + n + j),
                        c = _mm256_loadu_pd(cost + 2 * n + j),
                        e = _mm256_loadu_pd(cost + 3 * n + j), old = _mm256_loadu_pd(d + j);
          const __m256d ab = _mm256_min_pd(b, a), ce = _mm256_min_pd(e, c);
          const __m256d least = _mm256_min_pd(ce, ab);
          const __m256d rab = _mm256_blendv_pd(ra, rb, _mm256_cmp_pd(b, a, _CMP_LT_OQ)),
                        rce = _mm256_blendv_pd(rc, re, _mm256_cmp_pd(e, c, _CMP_LT_OQ));
          const __m256d r = _mm256_blendv_pd(rab, rce, _mm256_cmp_pd(ce, ab, _CMP_LT_OQ));
          _mm256_storeu_pd(from + j, _mm256_blendv_pd(_mm256_loadu_pd(from + j), r,
                                                      _mm256_cmp_pd(least, old, _CMP_LT_OQ)));
          _mm256_storeu_pd(d + j, _mm256_min_pd(least, old));
        }
      }
      ss_plain_lower(rows, n, cost, row, d, from);
    }

    __attribute__((target("avx2")))
    static ptrdiff_t ss_avx2_reach(ptrdiff_t n, const double *d, double m, ptrdiff_t start) {
      const __m256d top = _mm256_set1_pd(m);
      unsigned wanted = 255u << (start & 7) & 255;
      for (ptrdiff_t j = start & -8; j < n; j += 8, wanted = 255) {
        const unsigned hit = wanted & (unsigned)(
            _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(d + j), top, _CMP_LE_OQ))
            | _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(d + j + 4), top, _CMP_LE_OQ)) << 4);
        if (hit) return j + __builtin_ctz(hit);
      }
      return n;
    }

    __attribute__((target("avx2")))
    static ptrdiff_t ss_avx2_equal(ptrdiff_t n, const double *c, const double *v, double m,
                                   ptrdiff_t start) {
      const __m256d top = _mm256_set1_pd(m);
      unsigned wanted = 255u << (start & 7) & 255;
      for (ptrdiff_t j = start & -8; j < n; j += 8, wanted = 255) {
        const __m256d x = _mm256_sub_pd(_mm256_loadu_pd(c + j), _mm256_loadu_pd(v + j));
        const __m256d y = _mm256_sub_pd(_mm256_loadu_pd(c + j + 4), _mm256_loadu_pd(v + j + 4));
        const unsigned hit = wanted & (unsigned)(
            _mm256_movemask_pd(_mm256_cmp_pd(x, top, _CMP_EQ_OQ))
            | _mm256_movemask_pd(_mm256_cmp_pd(y, top, _CMP_EQ_OQ)) << 4);
        if (hit) return j + __builtin_ctz(hit);
      }
      return n;
    }

    __attribute__((target("avx2")))
    static void ss_avx2_load(ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld, const double *scores,
                             ptrdiff_t stride, double sign, double *cost) {
      static const long long window[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
      const __m256d times = _mm256_set1_pd(sign), top = _mm256_set1_pd(INFINITY);
      const ptrdiff_t whole = cols / 4 * 4;
      const __m256i tail = _mm256_loadu_si256((const __m256i *)(window + 4 - cols % 4));
      for (; rows > 0; rows--, scores += stride, cost += ld) {
        ptrdiff_t j = 0;
        for (; j < whole; j += 4)
          _mm256_storeu_pd(cost + j, _mm256_min_pd(  /* the second where the first is NaN */
              _mm256_mul_pd(times, _mm256_loadu_pd(scores + j)), top));
        if (cols != whole) {
          const __m256d x = _mm256_mul_pd(times, _mm256_maskload_pd(scores + j, tail));
          _mm256_storeu_pd(cost + j, _mm256_blendv_pd(top, _mm256_min_pd(x, top),
                                                      _mm256_castsi256_pd(tail)));
          j += 4;
        }
        for (; j < ld; j += 4) _mm256_storeu_pd(cost + j, top);
      }
    }

    static const ss_scans ss_avx2_scans = {ss_avx2_two, ss_avx2_relax, ss_avx2_lower,
                                           ss_avx2_reach, ss_avx2_equal, ss_avx2_load};
    #endif

    static const ss_scans *ss_pick_scans(void) {
    #ifdef SS_SCAN_AVX2
      const char *wish = getenv("STRUCTSOLVE_SIMD");
      __builtin_cpu_init();
      if (!(wish && strcmp(wish, "plain") == 0) && __builtin_cpu_supports("avx2"))
        return &ss_avx2_scans;
    #endif
      return &ss_plain_scans;
    }
    """
    ctypedef struct ss_scans:
        Py_ssize_t two(Py_ssize_t n, const double* c, const double* v,
                       double* least) noexcept nogil
        double relax(Py_ssize_t n, const double* c, const double* v, double h, double* d,
                     const double* next) noexcept nogil
        void lower(Py_ssize_t rows, Py_ssize_t n, const double* cost, double row, double* d,
                   double* origin) noexcept nogil
        Py_ssize_t reach(Py_ssize_t n, const double* d, double m,
                         Py_ssize_t start) noexcept nogil
        Py_ssize_t equal(Py_ssize_t n, const double* c, const double* v, double m,
                         Py_ssize_t start) noexcept nogil
        void load(Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t ld, const double* scores,
                  Py_ssize_t stride, double sign, double* cost) noexcept nogil
    const ss_scans* ss_pick_scans() noexcept nogil
