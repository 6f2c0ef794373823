/* One step of the primal-dual method (_dual_core.pyx) on one edge.
 *
 * Rows have `columns` doubles, a multiple of four; costs after the last state are far below all
 * others, so that their parts stay 0.  One text serves plain C and AVX2: both sum a row in four
 * lanes, so that both give the same bits.  STRUCTSOLVE_SIMD=plain selects
 * the plain one. */
#ifndef STRUCTSOLVE_DUAL_RELAXATION_EDGE_H
#define STRUCTSOLVE_DUAL_RELAXATION_EDGE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "structsolve/simd/clones.h"

/* Four doubles, as macros: not every compiler may pass such vectors to functions. */
#if defined(__GNUC__)
typedef double ss_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long ss_four_bits __attribute__((vector_size(32), aligned(8)));
#define LOAD(p) (*(const ss_four *)(p))
#define STORE(p, value) (*(ss_four *)(p) = (value))
#define SET(value) ((ss_four){(value), (value), (value), (value)})
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define POSITIVE(a) ((ss_four)((ss_four_bits)(a) & ((a) > SET(0))))
#define TOTAL(a) (((a)[0] + (a)[1]) + ((a)[2] + (a)[3]))
#define TOTALS(a) ((ss_four){TOTAL((a)[0]), TOTAL((a)[1]), TOTAL((a)[2]), TOTAL((a)[3])})
#else
typedef struct {
  double lane[4];
} ss_four;
#define SS_LANES(name, expression)                                                                 \
  static ss_four name(ss_four a, ss_four b) {                                                      \
    for (int l = 0; l < 4; l++) a.lane[l] = expression;                                            \
    return a;                                                                                      \
  }
SS_LANES(ADD, a.lane[l] + b.lane[l])
SS_LANES(SUB, a.lane[l] - b.lane[l])
SS_LANES(MUL, a.lane[l] * b.lane[l])
SS_LANES(SS_POSITIVE, a.lane[l] > 0 ? a.lane[l] : 0)
static ss_four LOAD(const double *p) {
  ss_four a;
  memcpy(&a, p, sizeof a);
  return a;
}
static ss_four SET(double value) {
  const double four[4] = {value, value, value, value};
  return LOAD(four);
}
static void STORE(double *p, ss_four a) { memcpy(p, &a, sizeof a); }
static double TOTAL(ss_four a) { return (a.lane[0] + a.lane[1]) + (a.lane[2] + a.lane[3]); }
static ss_four TOTALS(const ss_four *a) {
  const double four[4] = {TOTAL(a[0]), TOTAL(a[1]), TOTAL(a[2]), TOTAL(a[3])};
  return LOAD(four);
}
#define POSITIVE(a) SS_POSITIVE(a, a)
#endif

typedef struct {
  ptrdiff_t rows, columns, used; /* columns that are states */
  double *total; /* room for the sums of columns and of rows */
  const double *cost;
  /* parts: at the point, at the step from it, where the round began */
  double *x, *next;
  const double *first;
  /* messages: to the rows' node, and behind a multiple of four of them to the columns' */
  double *y, *y_next;
  const double *y_first;
  /* of both nodes: the point beyond the step; and their sums of messages, which grow */
  const double *u, *v;
  double *sum_u, *sum_v;
} ss_edge;

/* next, y_next <- the step; x, y <- the point of the next one: keep (2 step - point) + (1 - keep)
 * first.  moved[0], moved[1] += squares of what the step changed in parts and in messages. */
typedef void (*ss_edge_step)(const ss_edge *edge, double weight, double keep, double *moved);

/* Messages to the states of one end, `count` a multiple of four, whose parts sum up to `total`. */
static SS_INLINE ss_four ss_one_end(ptrdiff_t count, double weight, double keep, const double *node,
                                    const double *total, double *y, double *y_next,
                                    const double *y_first, double *sum) {
  const ss_four step = SET(weight), kept = SET(keep), left = SET(1 - keep);
  ss_four changes = SET(0);
  for (ptrdiff_t b = 0; b < count; b += 4) {
    const ss_four old = LOAD(y + b);
    const ss_four new = SUB(old, MUL(step, SUB(LOAD(node + b), LOAD(total + b))));
    const ss_four d = SUB(new, old);
    const ss_four next = ADD(MUL(kept, ADD(new, d)), MUL(left, LOAD(y_first + b)));
    changes = ADD(changes, MUL(d, d));
    STORE(y_next + b, new);
    STORE(y + b, next);
    STORE(sum + b, ADD(LOAD(sum + b), next));
  }
  return changes;
}

/* `vectors` of a row, or 0: any number. */
static SS_INLINE void ss_one_edge(const int vectors, const ss_edge *edge, double weight,
                                  double keep, double *moved) {
  const ptrdiff_t rows = edge->rows, behind = (rows + 3) / 4 * 4;
  const ptrdiff_t columns = vectors ? 4 * vectors : edge->columns;
  const ss_four step = SET(0.5 / weight), kept = SET(keep), left = SET(1 - keep);
  const double *cost = edge->cost, *first = edge->first, *y_v = edge->y + behind;
  double *x = edge->x, *next = edge->next, *column = edge->total, *row = column + columns;
  ss_four part = SET(0), held[2], sums[4], changes;
  for (ptrdiff_t b = 0; b < columns; b += 4) STORE(column + b, SET(0));
  held[0] = held[1] = SET(0);
  for (ptrdiff_t a = 0; a < rows;) {
    const ptrdiff_t begun = a;
    sums[1] = sums[2] = sums[3] = SET(0);
    for (; a < rows && a < begun + 4; a++) {
      const ss_four shift = SET(edge->y[a]);
      ss_four sum = SET(0);
      for (ptrdiff_t b = 0; b < columns; b += 4) {
        const ss_four old = LOAD(x + b);
        const ss_four slope = SUB(SUB(LOAD(cost + b), shift), LOAD(y_v + b));
        const ss_four new = POSITIVE(ADD(old, MUL(step, slope)));
        const ss_four d = SUB(new, old), beyond = ADD(new, d);
        part = ADD(part, MUL(d, d));
        sum = ADD(sum, beyond);
        if (vectors)
          held[b / 4] = ADD(held[b / 4], beyond);
        else
          STORE(column + b, ADD(LOAD(column + b), beyond));
        STORE(next + b, new);
        STORE(x + b, ADD(MUL(kept, beyond), MUL(left, LOAD(first + b))));
      }
      sums[a - begun] = sum;
      x += columns, next += columns, cost += columns, first += columns;
    }
    /* Whole vectors: the processor waits for four numbers that were written one by one. */
    STORE(row + begun, TOTALS(sums));
  }
  if (vectors)
    for (ptrdiff_t b = 0; b < columns; b += 4) STORE(column + b, held[b / 4]);
  changes = ss_one_end(behind, weight / (double)(1 + edge->used), keep, edge->u, row, edge->y,
                       edge->y_next, edge->y_first, edge->sum_u);
  changes = ADD(changes, ss_one_end(columns, weight / (double)(1 + rows), keep, edge->v, column,
                                    edge->y + behind, edge->y_next + behind,
                                    edge->y_first + behind, edge->sum_v));
  moved[0] += TOTAL(part);
  moved[1] += TOTAL(changes);
}

#define SS_EDGE_STEP(name, target)                                                                 \
  target static void name(const ss_edge *edge, double weight, double keep, double *moved) {        \
    switch (edge->columns) {                                                                       \
      case 4: ss_one_edge(1, edge, weight, keep, moved); break;                                    \
      case 8: ss_one_edge(2, edge, weight, keep, moved); break;                                    \
      default: ss_one_edge(0, edge, weight, keep, moved);                                          \
    }                                                                                              \
  }

SS_EDGE_STEP(ss_edge_step_plain, )
#if defined(__GNUC__) && defined(__x86_64__)
SS_EDGE_STEP(ss_edge_step_avx2, __attribute__((target("avx2"))))
#endif

static ss_edge_step ss_pick_edge_step(void) {
#if defined(__GNUC__) && defined(__x86_64__)
  const char *wish = getenv("STRUCTSOLVE_SIMD");
  __builtin_cpu_init();
  if (!(wish && strcmp(wish, "plain") == 0) && __builtin_cpu_supports("avx2"))
    return ss_edge_step_avx2;
#endif
  return ss_edge_step_plain;
}

#endif
