/* Sum-product over chains in float32, one chain per lane of a vector (abreast_impl.h): for AVX-512
 * and for AVX2 with FMA.  All chains share one table of pairs.  A lane's numbers do not depend on
 * what the other lanes hold.
 *
 * Node scores less the largest of their node, and pairs' scores less the largest, become factors of
 * at most 1; those that are not 0 are at least e^-ABREAST_SPAN = 2^-32.  Messages other than 0 stay
 * above 2^-60, so no product underflows, and 0 always means "forbidden".  Lanes that leave these
 * ranges are marked as bad: their chains are for the loops in doubles. */
#ifndef STRUCTSOLVE_ABREAST_H
#define STRUCTSOLVE_ABREAST_H

#include <stddef.h>
#include <stdint.h>

#define ABREAST_MOST 16
#define ABREAST_SPAN 22.0f

/* A block of chains.  Rows of lanes are indexed [node][state][lane]. */
typedef struct {
  ptrdiff_t n, K, L;                  /* chains, states, nodes of the longest */
  ptrdiff_t length[ABREAST_MOST];     /* beyond n, that of the first chain, as are rows */
  const float *rows[ABREAST_MOST];    /* node scores, K each */
  const float *start, *end;           /* scores of the first and last state; NULL: 0 */
  const float *factors, *turned;      /* exponentials of pairs' scores, (K, K), and transposed */
  float *scores, *ahead, *alpha;      /* rows of lanes */
  float *pairs;                       /* (K, K) of lanes: marginals of pairs, summed over edges */
  double tops[ABREAST_MOST];          /* the sum of what was subtracted from node scores */
  double logs[ABREAST_MOST];          /* log-partitions of what is left, without pairs' largest */
  double mean[ABREAST_MOST];          /* expectation of `scores` over nodes */
  uint32_t bad, forbidden;            /* bits of lanes; `forbidden`: some node score is -inf */
} abreast;

typedef struct {
  ptrdiff_t lanes;
  /* ahead <- exponentials of what the rows hold, and of the first and last state, less the largest
   * of each node, which tops gain; scores <- these differences, 0 where forbidden */
  void (*weigh)(abreast *b);
  /* alpha <- forward messages; logs */
  void (*forward)(abreast *b);
  /* logs and tops as after both, in the memory of one row of scores and ahead, and two of alpha */
  void (*partition)(abreast *b);
  /* scores <- marginals of nodes, ahead <- messages times factors, such that alpha[v, s]
   * factors[s, t] ahead[v + 1, t] are marginals of an edge; mean, of what scores held.  `nodes`: 0
   * leaves scores undefined. */
  void (*backward)(abreast *b, int nodes);
  /* pairs, after backward() */
  void (*outer)(abreast *b);
  /* sums[lane] <- the expectation of a table of pairs, after outer() */
  void (*mean_pairs)(const abreast *b, const float *table, double *sums);
  /* scores, pairs <- covariances of parts, whose marginals they held after outer(), with the sum of
   * rows d of nodes, which it overwrites, as 2 L + 1 rows, and of a table of pairs.  Behind the
   * table: times factors, and its transpose. */
  void (*slope)(abreast *b, const float *table, float *d);
  /* out[lane] <- the numbers of each lane: `width` for each of its nodes, of one node if `once` */
  void (*scatter)(const abreast *b, const float *lanes, ptrdiff_t width, int once,
                  float *const *out);
} abreast_loops;

#endif
