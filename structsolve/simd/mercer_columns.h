/* Steps of kernel models: one row of the kernel matrix added to some columns of scores. */
#ifndef STRUCTSOLVE_KERNEL_COLUMNS_H
#define STRUCTSOLVE_KERNEL_COLUMNS_H

#include <stddef.h>
#include <stdlib.h>

/* Wider vectors where the processor has them; products are rounded before they are added, so that
   every version gives the same numbers.  Sanitizers do not like the resolvers. */
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SS_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define SS_WIDE
#endif
#if defined(_MSC_VER)
#define SS_RESTRICT __restrict
#else
#define SS_RESTRICT __restrict__
#endif

/* F[:, cols[c]] += coefs[c] * (k + bias).  The columns differ: two are taken at once, so that k is
   read half as often. */
SS_WIDE static void ss_add_kernel_row(ptrdiff_t n, const double *SS_RESTRICT k, double bias,
                                      ptrdiff_t m, const int *cols, const double *coefs,
                                      double *F, ptrdiff_t stride) {
  ptrdiff_t c = 0;
  for (; c + 2 <= m; c += 2) {
    const double a = coefs[c], b = coefs[c + 1];
    double *SS_RESTRICT first = F + cols[c] * stride;
    double *SS_RESTRICT second = F + cols[c + 1] * stride;
    if (cols[c] == cols[c + 1]) { /* parts that were not pooled */
      for (ptrdiff_t v = 0; v < n; v++) first[v] += (a + b) * (k[v] + bias);
      continue;
    }
    for (ptrdiff_t v = 0; v < n; v++) {
      const double x = k[v] + bias;
      first[v] += a * x;
      second[v] += b * x;
    }
  }
  for (; c < m; c++) {
    const double a = coefs[c];
    double *SS_RESTRICT column = F + cols[c] * stride;
    for (ptrdiff_t v = 0; v < n; v++) column[v] += a * (k[v] + bias);
  }
}

#endif
