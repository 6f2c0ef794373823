/* Messages of linear and quadratic scores in O(K) (Felzenszwalb and Huttenlocher 2006); REAL is
 * float or double.  Only transforms.h includes this. */

/* out[t] = max_s x[s] - slope |s - t|, in two sweeps. */
static inline void NAME(mrf_linear)(int K, const REAL *x, REAL slope, REAL *out) {
  out[0] = x[0];
  for (int t = 1; t < K; t++) {
    const REAL step = out[t - 1] - slope;
    out[t] = x[t] > step ? x[t] : step;
  }
  for (int t = K - 2; t >= 0; t--) {
    const REAL step = out[t + 1] - slope;
    out[t] = out[t] > step ? out[t] : step;
  }
}

/* out[t] = max_s x[s] - slope (s - t)^2, slope > 0, by the upper envelope of the parabolas.
 * `from` and `tip` have room for K numbers: where each parabola of the envelope begins, its s. */
static inline void NAME(mrf_quadratic)(int K, const REAL *x, REAL slope, REAL *out, REAL *from,
                                REAL *tip) {
  int last = 0;
  tip[0] = 0;
  for (int s = 1; s < K; s++, last++) {
    REAL meet;
    for (;; last--) {
      const int r = (int)tip[last];
      meet = ((REAL)(s + r) + (x[r] - x[s]) / (slope * (REAL)(s - r))) / 2;
      if (last == 0 || meet > from[last]) break;
    }
    /* The first parabola begins at minus infinity: nothing takes its place. */
    from[last + 1] = meet;
    tip[last + 1] = (REAL)s;
  }
  for (int t = 0, k = 0; t < K; t++) {
    while (k < last && from[k + 1] <= (REAL)t) k++;
    out[t] = x[(int)tip[k]] - slope * ((REAL)t - tip[k]) * ((REAL)t - tip[k]);
  }
}
