/* Shortest augmenting paths for one kind of vectors; small.h includes this once for each.
 *
 * W vectors hold a row.  Sets of columns and of rows are bits of a word.  All bits are no set of
 * rows left, for of 64 rows one has a column: they say that there is no way. */

#undef NO_WAY
#define NO_WAY (~(ss_set)0)

/* Doubles in a row of costs. */
#undef LD
#define LD(W) (((W) * LANES + 7) / 8 * 8)

/* Least lanes of a row; no lane is NaN.  Pairs of vectors first: what counts is the depth. */
static SS_INLINE VEC NAME(least)(const int W, const VEC *x) {
  VEC a[(SS_SMALL / LANES + 1) / 2];
  SS_UNROLL for (int w = 0; w < W / 2; w++) a[w] = MINV(x[2 * w], x[2 * w + 1]);
  if (W % 2) a[W / 2] = x[W - 1];
  SS_UNROLL for (int w = 1; w < (W + 1) / 2; w++) a[0] = MINV(a[w], a[0]);
  return a[0];
}

/* The two smallest of a row's reduced costs, in every lane. */
static SS_INLINE void NAME(two)(const int W, const VEC *x, VEC *least, VEC *second) {
  VEC a = SET1(INFINITY), b = a;
  SS_UNROLL for (int w = 0; w + 1 < W; w += 2) {
    const VEC low = MINV(x[w], x[w + 1]), high = MAXV(x[w], x[w + 1]);
    b = w ? MINV(MAXV(low, a), MINV(high, b)) : high;
    a = w ? MINV(low, a) : low;
  }
  if (W % 2) {
    b = MINV(MAXV(x[W - 1], a), b);
    a = MINV(x[W - 1], a);
  }
  ALL_TWO(&a, &b);
  *least = a;
  *second = b;
}

static SS_INLINE ss_set NAME(equal)(const int W, const VEC *x, VEC least) {
  ss_set bits = 0;
  SS_UNROLL for (int w = 0; w < W; w++) bits |= BITS(EQ(x[w], least)) << (w * LANES);
  return bits;
}

/* Prices are the least costs of columns, each given to a row where it is; where it is the only
 * one of its row, it falls as far as the row's second best allows.  Returns the rows left, or NO_WAY
 * where a column is infinite. */
static SS_INLINE ss_set NAME(columns)(const int W, ptrdiff_t n, const double *cost, VEC *v,
                                       int *row, int *column, double *paired, ss_set *open) {
  const ptrdiff_t ld = LD(W);
  const ss_set all = *open;
  VEC least_row[SS_SMALL / LANES], name = SET1(0.0);
  const VEC one = SET1(1.0), top = SET1(INFINITY);
  double origin[SS_SMALL];
  ss_set bits = 0, once = 0, more = 0;
  SS_UNROLL for (int w = 0; w < W; w++) {
    v[w] = LOAD(cost + w * LANES);
    least_row[w] = name;
  }
  for (ptrdiff_t i = 1; i < n; i++) {
    name = ADD(name, one);
    SS_UNROLL for (int w = 0; w < W; w++) {
      const VEC x = LOAD(cost + i * ld + w * LANES);
      least_row[w] = PICK(LT(x, v[w]), name, least_row[w]);
      v[w] = MINV(x, v[w]);
    }
  }
  SS_UNROLL for (int w = 0; w < W; w++) {
    const MASK finite = LT(v[w], top);
    bits |= BITS(finite) << (w * LANES);
    v[w] = ONLY(finite, v[w]); /* beyond the columns: 0 */
    STORE(paired + w * LANES, v[w]);
    STORE(origin + w * LANES, least_row[w]);
  }
  if ((bits & all) != all) return NO_WAY;
  for (ptrdiff_t j = 0; j < n; j++) {
    const int i = (int)origin[j];
    column[i] = (int)j;
    more |= once & (ss_set)1 << i;
    once |= (ss_set)1 << i;
  }
  for (ss_set rest = once; rest; rest &= rest - 1) {
    const int i = ss_lowest(rest);
    row[column[i]] = i;
    *open ^= (ss_set)1 << column[i];
  }
  /* Rows look at the prices before any fell: then none waits for another, and what they would
   * allow now is at least that. */
  VEC old[SS_SMALL / LANES];
  SS_UNROLL for (int w = 0; w < W; w++) old[w] = v[w];
  for (ss_set rest = once & ~more; rest; rest &= rest - 1) {
    const int i = ss_lowest(rest), j = column[i];
    VEC least = top;
    SS_UNROLL for (int w = 0; w < W; w++) {
      const VEC x = SUB(LOAD(cost + i * ld + w * LANES), old[w]);
      least = MIN_BUT(least, x, j, w);
    }
    least = ALL_MIN(least);
    least = ONLY(LT(least, top), least);
    SS_UNROLL for (int w = 0; w < W; w++) v[w] = LESS_ONLY(v[w], ONE_HOT(j, w), least);
  }
  return all & ~once;
}

/* Give each of the rows its best column, whose price falls as far as the second best allows.
 * Returns the rows left, or NO_WAY where one has no way.  Rows that lost their column are among
 * them: to let them try at once would make rows that want the same columns bid for long, and a search
 * decides that sooner. */
static SS_INLINE ss_set NAME(rows)(const int W, ss_set rows, const double *cost, VEC *v,
                                    int *row, int *column, double *paired, ss_set *open) {
  const ptrdiff_t ld = LD(W);
  ss_set left = 0;
  for (; rows; rows &= rows - 1) {
    const int i = ss_lowest(rows);
    VEC x[SS_SMALL / LANES], least, second, fall;
    ss_set bits, fit;
    SS_UNROLL for (int w = 0; w < W; w++) x[w] = SUB(LOAD(cost + i * ld + w * LANES), v[w]);
    NAME(two)(W, x, &least, &second);
    bits = NAME(equal)(W, x, least);
    if (!(FIRST(second) < INFINITY)) {
      if (!(FIRST(least) < INFINITY)) return NO_WAY;
      left |= (ss_set)1 << i; /* one way only: no price is low enough, the search decides */
    } else {
      int j;
      /* Where several are best they fall by 0. */
      fall = SUB(second, least);
      SS_UNROLL for (int w = 0; w < W; w++) v[w] = LESS_ONLY(v[w], EQ(x[w], least), fall);
      fit = bits & *open;
      if (fit) {
        j = ss_lowest(fit);
        *open ^= (ss_set)1 << j;
      } else if (bits && FIRST(second) > FIRST(least)) { /* a NaN among them: no bits */
        j = ss_lowest(bits);
        left |= (ss_set)1 << row[j];
      } else {
        left |= (ss_set)1 << i;
        continue;
      }
      row[j] = i;
      column[i] = j;
      paired[j] = cost[i * ld + j];
    }
  }
  return left;
}

/* The least lane of a row, in every lane, and the first lane's word of those that go with it.
 *
 * To find the word on the way, and not by a comparison with the least, saves a quarter of a step
 * of the search.  Lanes are asked in the order 0, 2, 1, 3, each for its first vector. */
static SS_INLINE VEC NAME(nearest)(const int W, const VEC *d, const VEC *words, VEC *word) {
#if LANES == 1
  const VEC least = NAME(least)(W, d);
  const ss_set bits = NAME(equal)(W, d, least);
  ss_set lane = bits & 0x1111111111111111;
  if (!lane) lane = bits & 0x4444444444444444;
  if (!lane) lane = bits & 0x2222222222222222;
  if (!lane) lane = bits;
  *word = words[ss_lowest(lane)];
  return least;
#else
  VEC a[SS_SMALL / LANES], its[SS_SMALL / LANES];
  SS_UNROLL for (int w = 0; w < W; w++) {
    a[w] = d[w];
    its[w] = words[w];
  }
  SS_UNROLL for (int step = 1; step < W; step *= 2) {
    SS_UNROLL for (int w = 0; w + step < W; w += 2 * step) {
      its[w] = PICK(LT(a[w + step], a[w]), its[w + step], its[w]);
      a[w] = MINV(a[w + step], a[w]);
    }
  }
  ALL_LEAST(a[0], its[0]);
  *word = its[0];
  return a[0];
#endif
}

/* Whether an open column, one whose word has a sign, is at the distance `least`. */
static SS_INLINE int NAME(open_at)(const int W, const VEC *d, VEC least, const VEC *words) {
  VEC signs = SET1(0.0);
  SS_UNROLL for (int w = 0; w < W; w++) signs = OPEN_AT(signs, d[w], least, words[w]);
  return ANY_SIGN(signs);
}

/* Data of a pair for a search: offset of the row, its number, and the column.  Columns
 * without a pair have a sign instead. */
#define UNPAIRED ((uint64_t)1 << 63)
static SS_INLINE uint64_t NAME(pair)(const int W, int i, int j) {
  return (uint64_t)(i * LD(W)) << 16 | (uint64_t)i << 8 | (uint64_t)j;
}

/* Assign row `start` along the shortest path to an open column; 0 if there is none.
 *
 * `paired` is the cost of each column's pair, `pairs` its word.  Each step waits for the column
 * that the last one reached, so that little may lie between. */
static SS_INLINE int NAME(augment)(const int W, int start, const double *cost, VEC *v, int *row,
                                   int *column, double *paired, double *pairs, ss_set *open) {
  const ptrdiff_t ld = LD(W);
  const VEC top = SET1(INFINITY), first = SET1_WORD(NAME(pair)(W, start, 0));
  VEC d[SS_SMALL / LANES], origin[SS_SMALL / LANES], price[SS_SMALL / LANES];
  VEC words[SS_SMALL / LANES], least, distance, name;
  double from[SS_SMALL], dual[SS_SMALL], past[SS_SMALL]; /* past: distances of passed columns */
  ss_set ahead = (ss_set)-1;
  int end, i;
  SS_UNROLL for (int w = 0; w < W; w++) {
    d[w] = MINV(SUB(LOAD(cost + start * ld + w * LANES), v[w]), top);
    origin[w] = first;
    price[w] = v[w];
    words[w] = LOAD(pairs + w * LANES);
    STORE(dual + w * LANES, SUB(LOAD(paired + w * LANES), v[w]));
    STORE(past + w * LANES, top);
  }
  least = distance = NAME(nearest)(W, d, words, &name);
  while (1) {
    const uint64_t word = WORD(name), offset = word >> 16;
    const int j = (int)(word & 255);
    VEC h;
    if (!(FIRST(distance) < INFINITY)) return 0;
    if (NAME(open_at)(W, d, distance, words)) {
      end = ss_lowest(NAME(equal)(W, d, distance) & *open);
      break;
    }
    past[j] = FIRST(distance);
    ahead &= ~((ss_set)1 << j);
    h = SUB(SET1(dual[j]), least);
    name = SET1_WORD(word);
    SS_UNROLL for (int w = 0; w < W; w++) {
      VEC x;
      PASS(d[w], price[w], j, w);
      x = SUB(SUB(LOAD(cost + offset + w * LANES), price[w]), h);
      origin[w] = PICK(NEARER(ahead, w, x, d[w]), name, origin[w]);
      d[w] = NEAREST(ahead, w, x, d[w]);
    }
    distance = NAME(nearest)(W, d, words, &name);
    least = MAXV(distance, least);
  }
  SS_UNROLL for (int w = 0; w < W; w++) {
    /* Passed columns are as near as the end, or nearer: their prices fall by the difference. */
    v[w] = ADD(v[w], MINV(SUB(LOAD(past + w * LANES), least), SET1(0.0)));
    STORE(from + w * LANES, origin[w]);
  }
  *open ^= (ss_set)1 << end;
  do {
    i = (int)(ss_word(from[end]) >> 8 & 255);
    const int next = column[i]; /* of `start`: anything */
    row[end] = i;
    column[i] = end;
    paired[end] = cost[i * ld + end];
    pairs[end] = ss_lane(NAME(pair)(W, i, end));
    end = next;
  } while (i != start);
  return 1;
}

static SS_INLINE int NAME(solve)(const int W, ptrdiff_t rows, ptrdiff_t cols, const double *cost,
                                 double *price, int *row, int *column) {
  const ptrdiff_t ld = LD(W);
  VEC v[SS_SMALL / LANES];
  double paired[SS_SMALL], pairs[SS_SMALL];
  ss_set open = (ss_set)-1 >> (SS_SMALL - cols);
  ss_set left = (ss_set)-1 >> (SS_SMALL - rows);
  for (ptrdiff_t j = 0; j < ld; j++) row[j] = -1;
  if (rows == cols) {
    left = NAME(columns)(W, rows, cost, v, row, column, paired, &open);
    if (left == NO_WAY) return 0;
  } else {
    SS_UNROLL for (int w = 0; w < W; w++) {
      v[w] = SET1(0.0);
      STORE(paired + w * LANES, v[w]);
    }
  }
  for (int round = 0; round < 2; round++) {
    left = NAME(rows)(W, left, cost, v, row, column, paired, &open);
    if (left == NO_WAY) return 0;
  }
  if (left) {
    for (int j = 0; j < W * LANES; j++)
      pairs[j] = ss_lane(row[j] < 0 ? UNPAIRED : NAME(pair)(W, row[j], j));
  }
  for (ss_set rest = left; rest; rest &= rest - 1)
    if (!NAME(augment)(W, ss_lowest(rest), cost, v, row, column, paired, pairs, &open)) return 0;
  SS_UNROLL for (int w = 0; w < W; w++) STORE(price + w * LANES, v[w]);
  for (ptrdiff_t j = W * LANES; j < ld; j++) price[j] = 0;
  return 1;
}

#if LANES > 1
#define SS_WIDTH(W)                                                                               \
  case W: return NAME(solve)(W, rows, cols, cost, v, row, column);

static int NAME(any)(ptrdiff_t rows, ptrdiff_t cols, const double *cost,
                     double *v, int *row, int *column) {
  const ptrdiff_t width = (cols + LANES - 1) / LANES;
  switch (width <= 8 ? width : (width + 1) / 2 * 2) { /* rows are padded to even ones */
    SS_WIDTH(1) SS_WIDTH(2) SS_WIDTH(3) SS_WIDTH(4) SS_WIDTH(5) SS_WIDTH(6) SS_WIDTH(7)
    SS_WIDTH(8) SS_WIDTH(10) SS_WIDTH(12) SS_WIDTH(14)
    default: return NAME(solve)(16, rows, cols, cost, v, row, column);
  }
}
#undef SS_WIDTH
#endif

#undef FIRST
#undef LT
#undef EQ
#undef ONLY
#undef BITS
#undef WORD
#undef SET1_WORD
#undef ONE_HOT
#undef RAISED
#undef SUNK
#undef PASS
#undef NEARER
#undef NEAREST
#undef MIN_BUT
#undef LESS_ONLY
#undef OPEN_AT
#undef ANY_SIGN
#undef SOME
#undef WINDOW
#undef UNPAIRED
#undef ALL_LEAST
#undef ALL_MIN
#undef ALL_TWO
#include "structsolve/simd/vectors_end.h"
