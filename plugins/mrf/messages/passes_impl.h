/* One pass of TRW-S (Kolmogorov 2006) for one width of vectors; included by passes.h, which defines
 * NAME, VEC, LANES and the operations on vectors.
 *
 * Padded states score MRF_PADDING at nodes; messages are finite there and change nothing. */

/* Rows of one or two vectors (FIXED) stay in registers. */
#define GET(array, row, c) (FIXED ? array[(c) / LANES] : LOAD((row) + (c)))
#define PUT(array, row, c, x)                                                                      \
  do {                                                                                             \
    if (FIXED)                                                                                     \
      array[(c) / LANES] = x;                                                                      \
    else                                                                                           \
      STORE((row) + (c), x);                                                                       \
  } while (0)

/* Scores of the states of w given the state of the other end of e, added to out. */
static SS_INLINE void NAME(add_row)(
    const mrf_passes *p, const mrf_edge *e, int from, int w, ptrdiff_t width, float *out) {
  const mrf_table *table = p->tables + e->table;
  const int x = p->trial[from], K = p->states[w];
  if (table->straight >= 0) {
    const float *row = p->pair + (e->u == from ? table->straight : table->turned) + x * width;
    const VEC weight = SET1(e->weight);
    for (ptrdiff_t c = 0; c < width; c += LANES)
      STORE(out + c, MULADD(weight, LOAD(row + c), LOAD(out + c)));
    return;
  }
  const float cut = e->weight * table->scaled_cut;
  if (table->kind == MRF_POTTS) { /* all states have lost `cut`, but x */
    out[x] += cut;
    return;
  }
  const float slope = e->weight * table->scaled_slope;
  for (int t = 0; t < K; t++) {
    const float d = (float)(t < x ? x - t : t - x);
    const float loss = slope * (table->kind == MRF_LINEAR ? d : d * d);
    out[t] -= loss < cut ? loss : cut;
  }
}

/* Replace the message of e by that of v, whose shared scores are `sent` plus its received
 * messages; less its maximum, which is returned. */
static SS_INLINE float NAME(send)(
    const int FIXED, const mrf_passes *p, const mrf_edge *e, int v, int w, const VEC *held) {
  const float *own = p->own;
  const mrf_table *table = p->tables + e->table;
  const ptrdiff_t mine = FIXED ? FIXED : p->row_at[v + 1] - p->row_at[v];
  const ptrdiff_t theirs = FIXED ? FIXED : p->row_at[w + 1] - p->row_at[w];
  float *message = p->message + e->message, *sent = p->sent;
  const VEC share = SET1(p->share[v]), weight = SET1(e->weight);
  VEC best;
  float top;
  if (table->straight < 0 && table->kind == MRF_POTTS) {
    const float cut = e->weight * table->scaled_cut;
    VEC x[2];
    best = SET1(-INFINITY);
    for (ptrdiff_t c = 0; c < mine; c += LANES) {
      const VEC y = MULSUB(share, GET(held, own, c), LOAD(message + c));
      best = MAXV(best, y);
      PUT(x, message, c, y);
    }
    top = TOP(best);
    for (ptrdiff_t c = 0; c < mine; c += LANES)
      STORE(message + c, SUB(MAXV(GET(x, message, c), SET1(top - cut)), SET1(top)));
    return top;
  }
  for (ptrdiff_t c = 0; c < mine; c += LANES)
    STORE(sent + c, MULSUB(share, GET(held, own, c), LOAD(message + c)));
  if (table->straight >= 0) {
    const int K = p->states[v];
    const float *rows = p->pair + (e->u == v ? table->straight : table->turned);
    best = SET1(MRF_PADDING);
    for (ptrdiff_t c = 0; c < theirs; c += LANES) {
      const float *row = rows + c;
      VEC x = MULADD(weight, LOAD(row), SET1(sent[0])), y = x;
      int s = 1;
      for (; s + 1 < K; s += 2) {
        row += theirs;
        x = MAXV(x, MULADD(weight, LOAD(row), SET1(sent[s])));
        row += theirs;
        y = MAXV(y, MULADD(weight, LOAD(row), SET1(sent[s + 1])));
      }
      if (s < K) y = MAXV(y, MULADD(weight, LOAD(row + theirs), SET1(sent[s])));
      x = MAXV(x, y);
      STORE(message + c, x);
      best = MAXV(best, x);
    }
    /* Padded entries repeat those of state 0, so the maximum is a real one. */
    top = TOP(best);
    for (ptrdiff_t c = 0; c < theirs; c += LANES)
      STORE(message + c, SUB(LOAD(message + c), SET1(top)));
    return top;
  }
  {
    const int K = p->states[v];
    const float slope = e->weight * table->scaled_slope;
    const float cut = e->weight * table->scaled_cut;
    best = LOAD(sent);
    for (ptrdiff_t c = LANES; c < mine; c += LANES) best = MAXV(best, LOAD(sent + c));
    top = TOP(best);
    if (table->kind == MRF_LINEAR || !(slope > 0))
      mrf_linear_float(K, sent, slope, message);
    else
      mrf_quadratic_float(K, sent, slope, message, p->spare, p->spare + mine);
    for (ptrdiff_t t = K; t < mine; t++) message[t] = top;
    for (ptrdiff_t c = 0; c < mine; c += LANES)
      STORE(message + c, SUB(MAXV(LOAD(message + c), SET1(top - cut)), SET1(top)));
  }
  return top;
}

/* Index of the entry `top`, which exists. */
static inline int NAME(first)(const float *row, ptrdiff_t width, float top) {
  for (int c = 0; c < width; c += LANES) {
#ifdef EQUAL_BITS
    const unsigned bits = EQUAL_BITS(LOAD(row + c), SET1(top));
    if (bits) return c + __builtin_ctz(bits);
#else
    for (int s = c; s < c + LANES; s++)
      if (row[s] == top) return s;
#endif
  }
  return 0;
}

static SS_INLINE double NAME(pass_rows)(const int FIXED, const mrf_passes *p, int forward) {
  double total = 0;
  float *own = p->own, *guess = p->guess;
  VEC held[2];
  for (ptrdiff_t i = 0; i < p->n; i++) {
    const int v = (int)(forward ? i : p->n - 1 - i);
    const ptrdiff_t first = p->near_at[v], last = p->near_at[v + 1];
    const ptrdiff_t width = FIXED ? FIXED : p->row_at[v + 1] - p->row_at[v];
    const float *row = p->unary + (FIXED ? FIXED * (ptrdiff_t)v : p->row_at[v]);
    for (ptrdiff_t c = 0; c < width; c += LANES) PUT(held, own, c, LOAD(row + c));
    for (ptrdiff_t j = first; j < last; j++) {
      const mrf_edge *e = p->edges + p->near[j];
      if (forward && e->u + e->v - v < v) continue;
      const float *message = p->message + e->message;
      for (ptrdiff_t c = 0; c < width; c += LANES)
        PUT(held, own, c, ADD(GET(held, own, c), LOAD(message + c)));
    }
    if (forward) {
      VEC best;
      float top;
      for (ptrdiff_t c = 0; c < width; c += LANES) STORE(guess + c, GET(held, own, c));
      for (ptrdiff_t j = first; j < last; j++) {
        const mrf_edge *e = p->edges + p->near[j];
        const int w = e->u + e->v - v;
        if (w > v) continue;
        const float *message = p->message + e->message;
        for (ptrdiff_t c = 0; c < width; c += LANES)
          PUT(held, own, c, ADD(GET(held, own, c), LOAD(message + c)));
        NAME(add_row)(p, e, w, v, width, guess);
      }
      best = LOAD(guess);
      for (ptrdiff_t c = LANES; c < width; c += LANES) best = MAXV(best, LOAD(guess + c));
      top = TOP(best);
      p->trial[v] = NAME(first)(guess, width, top);
    } else {
      VEC best = GET(held, own, 0);
      for (ptrdiff_t c = LANES; c < width; c += LANES) best = MAXV(best, GET(held, own, c));
      const float top = TOP(best);
      total += top;
      for (ptrdiff_t c = 0; c < width; c += LANES)
        PUT(held, own, c, SUB(GET(held, own, c), SET1(top)));
    } /* forward nothing is added up: messages are less their maxima anyway */
    for (ptrdiff_t j = first; j < last; j++) {
      const mrf_edge *e = p->edges + p->near[j];
      const int w = e->u + e->v - v;
      if (forward == (w > v)) total += NAME(send)(FIXED, p, e, v, w, held);
    }
  }
  return total;
}

static double NAME(pass)(const mrf_passes *p, int forward) {
  if (p->width == LANES)
    return forward ? NAME(pass_rows)(LANES, p, 1) : NAME(pass_rows)(LANES, p, 0);
  if (p->width == 2 * LANES)
    return forward ? NAME(pass_rows)(2 * LANES, p, 1) : NAME(pass_rows)(2 * LANES, p, 0);
  return NAME(pass_rows)(0, p, forward);
}

#undef GET
#undef PUT
#undef MULSUB
#undef TOP
#include "structsolve/simd/vectors_end.h"
