/* What vectors of four lanes do alike with registers of masks and without; small.h includes this for
 * both. */

#include "structsolve/simd/doubles_avx2.h"
#define FIRST(x) _mm256_cvtsd_f64(x)
#define ALL_MIN(x) ss_avx2_all_min(x)
#define ALL_TWO(a, b) ss_avx2_all_two(a, b)
#define WORD(x) ((uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(_mm256_castpd_si256(x))))
#define SET1_WORD(u) _mm256_castsi256_pd(_mm256_set1_epi64x((long long)(u)))
/* Signs of words in lanes where x is m.  (Compares to masks would all wait for one port.) */
#define OPEN_AT(signs, x, m, word)                                                                \
  _mm256_or_pd(signs, _mm256_and_pd(_mm256_cmp_pd(x, m, _CMP_EQ_OQ), word))
#define ANY_SIGN(signs) (_mm256_movemask_pd(signs) != 0)
/* The least lane in every lane, and what goes with it in the first. */
#define ALL_LEAST(a, word)                                                                        \
  do {                                                                                            \
    VEC other_ = _mm256_permute2f128_pd(a, a, 1), its_ = _mm256_permute2f128_pd(word, word, 1);   \
    (word) = PICK(LT(other_, a), its_, word);                                                     \
    (a) = MINV(other_, a);                                                                        \
    other_ = _mm256_permute_pd(a, 5);                                                             \
    its_ = _mm256_permute_pd(word, 5);                                                            \
    (word) = PICK(LT(other_, a), its_, word);                                                     \
    (a) = MINV(other_, a);                                                                        \
  } while (0)
#include "small_impl.h"
