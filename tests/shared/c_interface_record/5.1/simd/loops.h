
#ifndef STRUCTSOLVE_LOOPS_H
#define STRUCTSOLVE_LOOPS_H
#include <stddef.h>
#include <stdint.h>
typedef struct {
  
  void (*score[5])(ptrdiff_t n, const int32_t *index, const void *values, const double *W,
                   ptrdiff_t stride, ptrdiff_t width, double constant, const double *last,
                   double *out);
  
  void (*maxplus)(ptrdiff_t K, const double *previous, const double *T, ptrdiff_t stride,
                  ptrdiff_t width, const double *add, double *next);
  
  void (*maxdots)(ptrdiff_t rows, const double *T, ptrdiff_t stride, ptrdiff_t width,
                  const double *x, double *out);
  
  void (*sumprod)(ptrdiff_t K, const double *previous, const double *E, ptrdiff_t stride,
                  ptrdiff_t width, double *next);
  
  void (*dots)(ptrdiff_t rows, const double *E, ptrdiff_t stride, ptrdiff_t width,
               const double *x, double *out);
  
  void (*outer)(ptrdiff_t n, ptrdiff_t K, const double *a, const double *b, const double *E,
                ptrdiff_t stride, ptrdiff_t width, double *out);
  
  void (*exp_rows)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns,
                   double shift, double *out);
  
  void (*range)(ptrdiff_t rows, const double *x, ptrdiff_t stride, ptrdiff_t columns, double skip,
                double *low, double *top);
  
  void (*mul_range)(ptrdiff_t width, const double *factor, double *row, double *low, double *top);
  
  ptrdiff_t (*reach)(ptrdiff_t K, const double *previous, const double *row, double add,
                     double target);
  
  void (*viterbi)(ptrdiff_t L, ptrdiff_t K, const double *T, ptrdiff_t stride, const double *add,
                  double *alpha);
  
  ptrdiff_t (*first_best)(ptrdiff_t K, const double *row, double *top);
  
  double (*total)(ptrdiff_t n, const double *x);
  const char *name;
} ss_loop_table;
#endif
