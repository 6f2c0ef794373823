/* Steps of kernel models: one row of the kernel matrix added to some columns of scores. */
#ifndef STRUCTSOLVE_KERNEL_COLUMNS_H
#define STRUCTSOLVE_KERNEL_COLUMNS_H

#include <stddef.h>
#include <stdlib.h>

/* Wider vectors if the processor has them.  Products are rounded before they are added, so every
   version gives the same numbers.  Sanitizers do not support the resolvers. */
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

/* F[:, cols[c]] += coefs[c] * (k + bias).  Two columns are handled at once, so k is read half as
   often. */
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

/* out[j] = scale * |x - x_j|^2 for the n rows x_j, where x is row i of them.  columns holds the
   rows' features, column by column, n_padded apart; squares holds |x_j|^2, as ss_squares sums them,
   so that a row is at distance 0 from itself.  Every value is one sum in the order of features. */
SS_WIDE static void ss_distances(ptrdiff_t n_padded, ptrdiff_t n_features,
                                 const double *SS_RESTRICT columns,
                                 const double *SS_RESTRICT squares, ptrdiff_t i, double scale,
                                 double *SS_RESTRICT out) {
  enum { TOGETHER = 512 };
  const double own = squares[i];
  for (ptrdiff_t from = 0; from < n_padded; from += TOGETHER) {
    const ptrdiff_t size = n_padded - from < TOGETHER ? n_padded - from : TOGETHER;
    double *SS_RESTRICT sums = out + from;
    ptrdiff_t f = 0;
    for (ptrdiff_t j = 0; j < size; j++) sums[j] = 0;
    for (; f + 4 <= n_features; f += 4) {
      const double *SS_RESTRICT p = columns + f * n_padded + from;
      const double *SS_RESTRICT q = p + n_padded, *SS_RESTRICT r = q + n_padded;
      const double *SS_RESTRICT s = r + n_padded;
      const double a = columns[f * n_padded + i], b = columns[(f + 1) * n_padded + i];
      const double c = columns[(f + 2) * n_padded + i], d = columns[(f + 3) * n_padded + i];
      for (ptrdiff_t j = 0; j < size; j++)
        sums[j] = (((sums[j] + a * p[j]) + b * q[j]) + c * r[j]) + d * s[j];
    }
    for (; f < n_features; f++) {
      const double *SS_RESTRICT p = columns + f * n_padded + from;
      const double a = columns[f * n_padded + i];
      for (ptrdiff_t j = 0; j < size; j++) sums[j] += a * p[j];
    }
    for (ptrdiff_t j = 0; j < size; j++) {
      const double distance = (own + squares[from + j]) - 2 * sums[j];
      sums[j] = scale * (distance > 0 ? distance : 0);
    }
  }
}

SS_WIDE static void ss_squares(ptrdiff_t n_padded, ptrdiff_t n_features,
                               const double *SS_RESTRICT columns, double *SS_RESTRICT squares) {
  for (ptrdiff_t j = 0; j < n_padded; j++) squares[j] = 0;
  for (ptrdiff_t f = 0; f < n_features; f++) {
    const double *SS_RESTRICT p = columns + f * n_padded;
    for (ptrdiff_t j = 0; j < n_padded; j++) squares[j] += p[j] * p[j];
  }
}

#endif
