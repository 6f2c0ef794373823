/* Vectors of four doubles, for loops that are written once; vectors_end.h forgets the names. */
#define VEC __m256d
#define LANES 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, x) _mm256_storeu_pd(p, x)
#define SET1(x) _mm256_set1_pd(x)
#define ADD(a, b) _mm256_add_pd(a, b)
#define SUB(a, b) _mm256_sub_pd(a, b)
#define MUL(a, b) _mm256_mul_pd(a, b)
#define MULADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define MINV(a, b) _mm256_min_pd(a, b)
#define MAXV(a, b) _mm256_max_pd(a, b)
