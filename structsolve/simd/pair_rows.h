/* Choice of the next rows of a kernel model to change: those where a dual step gains most.
 *
 * There are three versions of each loop, chosen like those of loops_tables.h.  They round every
 * operation, and choose the first row of equal gains, so their answers are bit-identical. */
#ifndef STRUCTSOLVE_PAIR_ROWS_H
#define STRUCTSOLVE_PAIR_ROWS_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

/* Columns are padded to a multiple of this, on every machine. */
enum { SS_STRIP = 8 };
/* Determinants are at least this share of the product of two curvatures: steps of rows that are
   equal up to rounding then oppose each other as far as their masses allow. */
#define SS_SAME_ROW 1e-12

/* The step of a row that moves mass from one label to another: slope, curvature, its inverse, and
   how far the step may go either way. */
typedef struct {
  double slope, curvature, inverse, least, most;
} ss_move;

/* A row has one number per label, and a label one column of `ld` rows, a multiple of SS_STRIP.  The
 * numbers are scores (loss added) and masses (weight times the row's share u / alpha).  Rows after
 * the last have no mass. */
typedef struct {
  /* The row whose best step gains most, and that gain over alpha.  The step moves mass y from the
   * lowest label that has some to the highest; it gains y (high - low - y curvature / 2), with
   * y = (high - low) * inverse or all that mass. */
  ptrdiff_t (*best_row)(ptrdiff_t ld, ptrdiff_t labels, const double *score, const double *mass,
                        const double *curvature, const double *inverse, double *gain);
  /* The row among the first n whose step between two labels gains most together with step a, of the
   * row whose kernel values are k; both steps go to x and y.  high, low and their masses are the
   * columns of the labels. */
  ptrdiff_t (*best_partner)(ptrdiff_t n, const double *k, double bias, const double *high,
                            const double *low, const double *high_mass, const double *low_mass,
                            const double *curvature, const double *inverse, const ss_move *a,
                            double *gain, double *x, double *y);
  /* The sum over rows and their labels of mass times how much the label scores below the best. */
  double (*mass_gap)(ptrdiff_t ld, ptrdiff_t labels, const double *score, const double *mass);
} ss_pair_table;

/* Returns the first row with the largest of the gains of all lanes. */
static ptrdiff_t ss_first_of_lanes(int lanes, const double *gains, const double *rows) {
  int top = 0;
  for (int j = 1; j < lanes; j++)
    if (gains[j] > gains[top] || (gains[j] == gains[top] && rows[j] + j < rows[top] + top)) top = j;
  return top;
}

#define NAME(f) ss_plain_##f
#define VEC double
#define MASK int
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(x) ((double)(x))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define LESS(a, b) ((a) < (b))
#define MINV(a, b) ((a) < (b) ? (a) : (b))
#define MAXV(a, b) ((a) > (b) ? (a) : (b))
#define PICK(m, a, b) ((m) ? (a) : (b))
#include "pair_rows_impl.h"

#ifdef SS_X86

SS_TARGET("avx2")
#define NAME(f) ss_avx2_##f
#include "structsolve/simd/doubles_avx2.h"
#define MASK __m256d
#define DIV(a, b) _mm256_div_pd(a, b)
#define LESS(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define PICK(m, a, b) _mm256_blendv_pd(b, a, m)
#include "pair_rows_impl.h"
SS_TARGET_END
SS_TARGET("avx512f")
#define NAME(f) ss_avx512_##f
#include "structsolve/simd/doubles_avx512.h"
#define MASK __mmask8
#define DIV(a, b) _mm512_div_pd(a, b)
#define LESS(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define PICK(m, a, b) _mm512_mask_blend_pd(m, b, a)
#include "pair_rows_impl.h"
SS_TARGET_END
#endif

/* The loops for this processor, or those that STRUCTSOLVE_SIMD asks for. */
static const ss_pair_table *ss_pair_loops(void) {
  const ss_pair_table *table = &ss_plain_pairs;
#ifdef SS_X86
  const char *wish = getenv("STRUCTSOLVE_SIMD");
  if (wish && strcmp(wish, "plain") == 0) return table;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) table = &ss_avx2_pairs;
  if (wish && strcmp(wish, "avx2") == 0) return table;
  if (__builtin_cpu_supports("avx512f")) table = &ss_avx512_pairs;
#endif
  return table;
}

#endif
