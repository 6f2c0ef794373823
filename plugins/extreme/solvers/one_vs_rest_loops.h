/* Dual coordinate descent of sixteen one-vs-rest machines at a time, on the same rows.
 *
 * Each row is read once for all of them, and each of its features has their weights side by side.
 * The build forbids contraction, so every instruction set gives the same bits. */
#ifndef STRUCTSOLVE_ONE_VS_REST_LOOPS_H
#define STRUCTSOLVE_ONE_VS_REST_LOOPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "structsolve/simd/clones.h"

enum { SS_MACHINES = 16 };

typedef struct {
  const int64_t *indptr;
  const int32_t *indices;
  const float *data;
  const float *square, *cost;        /* of each row: squared length with the bias, cost of its loss */
  const signed char *sign;           /* row after row, for each machine 1, -1, or 0 for none */
  float *w, *a, *b;                  /* weights by feature (aligned to 64 bytes), dual variables by
                                        row, weights of the bias */
  int32_t *order;                    /* rows to visit */
  float bias;
  float above[SS_MACHINES];          /* a row at zero rests if all gradients are above these */
} ss_rest;

/* Sixteen numbers, in vectors of a size that compilers keep in registers; one by one where the
 * compiler has no type for that. */
#ifdef __GNUC__
enum { SS_VECTORS = SS_MACHINES / 8 };
typedef float ss_vector __attribute__((vector_size(32)));
typedef int32_t ss_mask __attribute__((vector_size(32)));
#define SS_LARGER(y, keep) ((ss_vector)((((ss_mask)(y) & 0x7FFFFFFF) > (keep)) & (ss_mask)(y)))
#else
enum { SS_VECTORS = SS_MACHINES };
typedef float ss_vector;
static inline float ss_larger(float y, int32_t keep) {
  float size;
  memcpy(&size, &keep, 4);
  return fabsf(y) > size ? y : 0.0f;
}
#define SS_LARGER(y, keep) ss_larger(y, keep)
#endif
typedef struct {
  ss_vector x[SS_VECTORS];
} ss_numbers;

static SS_INLINE void ss_add(ss_numbers *x, float v, const ss_numbers *y) {
  for (int l = 0; l < SS_VECTORS; l++) x->x[l] += v * y->x[l];
}

/* Adds those numbers that are larger than the float whose bits are `keep`. */
static SS_INLINE void ss_add_larger(ss_numbers *x, float v, const ss_numbers *y, int32_t keep) {
  for (int l = 0; l < SS_VECTORS; l++) x->x[l] += v * SS_LARGER(y->x[l], keep);
}

/* Scores of row i, without the bias. */
SS_CLONES static void ss_rest_scores(const ss_rest *r, int64_t i, float *scores) {
  const ss_numbers *w = (const ss_numbers *)r->w;
  ss_numbers z, other;
  memset(&z, 0, sizeof z);
  memset(&other, 0, sizeof z);
  int64_t k = r->indptr[i];
  const int64_t end = r->indptr[i + 1];
  for (; k + 1 < end; k += 2) {      /* two sums, which need not wait for each other */
    ss_add(&z, r->data[k], w + r->indices[k]);
    ss_add(&other, r->data[k + 1], w + r->indices[k + 1]);
  }
  if (k < end) ss_add(&z, r->data[k], w + r->indices[k]);
  ss_add(&z, 1.0f, &other);
  memcpy(scores, &z, sizeof z);
}

/* Scores of row i, and those by weights above a size alone, of which `keep` has the bits. */
SS_CLONES static void ss_rest_both(
    const ss_rest *r, int64_t i, int32_t keep, float *scores, float *scores_kept) {
  const ss_numbers *w = (const ss_numbers *)r->w;
  ss_numbers z, kept;
  memset(&z, 0, sizeof z);
  memset(&kept, 0, sizeof z);
  for (int64_t k = r->indptr[i]; k < r->indptr[i + 1]; k++) {
    ss_add(&z, r->data[k], w + r->indices[k]);
    ss_add_larger(&kept, r->data[k], w + r->indices[k], keep);
  }
  memcpy(scores, &z, sizeof z);
  memcpy(scores_kept, &kept, sizeof z);
}

SS_CLONES static void ss_rest_step(const ss_rest *r, int64_t i, const float *step) {
  ss_numbers *w = (ss_numbers *)r->w, s;
  memcpy(&s, step, sizeof s);
  for (int64_t k = r->indptr[i]; k < r->indptr[i + 1]; k++)
    ss_add(w + r->indices[k], r->data[k], &s);
  for (int l = 0; l < SS_MACHINES; l++) r->b[l] += r->bias * step[l];
}

/* What a visit of one row changes and tells, by machine. */
typedef struct {
  float score[SS_MACHINES], step[SS_MACHINES], most[SS_MACHINES], least[SS_MACHINES];
  int32_t moved[SS_MACHINES], awake[SS_MACHINES];
} ss_rest_visit;

/* Move the dual variables of a row whose scores are known. */
SS_CLONES static void ss_rest_move(ss_rest_visit *restrict v, const ss_rest *restrict r,
                                   const signed char *restrict sign, float *restrict a,
                                   float slack, float inverse) {
  for (int l = 0; l < SS_MACHINES; l++) {
    const float s = sign[l], m = v->score[l] + r->bias * r->b[l];
    const float g = s * m - s * s + slack * a[l], below = g < 0 ? g : 0.0f;
    const float projected = a[l] > 0 ? g : below;
    const float rest = a[l] - g * inverse, next = rest > 0 ? rest : 0.0f;
    v->most[l] = projected > v->most[l] ? projected : v->most[l];
    v->least[l] = projected < v->least[l] ? projected : v->least[l];
    v->awake[l] = (a[l] > 0) | (g < r->above[l]);
    v->step[l] = s * (next - a[l]);
    v->moved[l] = v->step[l] != 0;
    a[l] = next;
  }
}

static inline int32_t ss_rest_any(const int32_t *x) {
  int32_t any = 0;
  for (int l = 0; l < SS_MACHINES; l++) any |= x[l];
  return any;
}

/* Visit the first `active` rows of the order; returns how many stay, with the range of each
 * machine's projected gradients. */
static int64_t ss_rest_pass(ss_rest *r, int64_t active, float *most, float *least) {
  ss_rest_visit v;
  for (int l = 0; l < SS_MACHINES; l++) v.most[l] = -INFINITY, v.least[l] = INFINITY;
  for (int64_t u = 0; u < active;) {
    const int32_t i = r->order[u];
    const int64_t place = (int64_t)SS_MACHINES * i;
    const float slack = 0.5f / r->cost[i], inverse = 1.0f / (r->square[i] + slack);
    ss_rest_scores(r, i, v.score);
    ss_rest_move(&v, r, r->sign + place, r->a + place, slack, inverse);
    if (ss_rest_any(v.moved)) ss_rest_step(r, i, v.step);
    if (ss_rest_any(v.awake)) {
      u++;
    } else {
      active--;
      r->order[u] = r->order[active];
      r->order[active] = i;
    }
  }
  memcpy(most, v.most, sizeof v.most);
  memcpy(least, v.least, sizeof v.least);
  return active;
}

/* Losses of all rows, those by weights above `keep` and a share of the bias, and the dual without
 * its square, by machine. */
SS_CLONES static void ss_rest_values(const ss_rest *restrict r, int64_t n, float keep, float share,
                                     double *restrict loss, double *restrict loss_kept,
                                     double *restrict dual) {
  int32_t bits;
  memcpy(&bits, &keep, 4);
  for (int64_t i = 0; i < n; i++) {
    const signed char *sign = r->sign + (int64_t)SS_MACHINES * i;
    const float *a = r->a + (int64_t)SS_MACHINES * i;
    const double cost = r->cost[i], inverse = 1 / (4 * cost);
    float z[SS_MACHINES], kept[SS_MACHINES];
    ss_rest_both(r, i, bits, z, kept);
    for (int l = 0; l < SS_MACHINES; l++) {
      const double s = sign[l], b = r->bias * r->b[l], m = s * s - s * (z[l] + b);
      const double m_kept = s * s - s * (kept[l] + share * b);
      const double lost = m > 0 ? m : 0.0, lost_kept = m_kept > 0 ? m_kept : 0.0, own = a[l];
      loss[l] += cost * lost * lost;
      loss_kept[l] += cost * lost_kept * lost_kept;
      dual[l] += own - own * own * inverse;
    }
  }
}

/* Clear weights up to `keep` in size; sums of squares before and after, and how many are kept, of
 * each machine. */
SS_CLONES static void ss_rest_prune(ss_rest *restrict r, int64_t d, float keep, double *squares,
                                    double *squares_kept, int64_t *kept) {
  for (int64_t f = 0; f < d; f++) {
    float *restrict w = r->w + SS_MACHINES * f;
    for (int l = 0; l < SS_MACHINES; l++) {
      const float own = fabsf(w[l]) > keep ? w[l] : 0.0f;
      squares[l] += (double)w[l] * w[l];
      squares_kept[l] += (double)own * own;
      kept[l] += own != 0;
      w[l] = own;
    }
  }
}

#endif
