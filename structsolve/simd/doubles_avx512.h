/* Vectors of eight doubles, for loops that are written once; vectors_end.h forgets the names. */
#define VEC __m512d
#define LANES 8
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, x) _mm512_storeu_pd(p, x)
#define SET1(x) _mm512_set1_pd(x)
#define ADD(a, b) _mm512_add_pd(a, b)
#define SUB(a, b) _mm512_sub_pd(a, b)
#define MUL(a, b) _mm512_mul_pd(a, b)
#define MULADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define MINV(a, b) _mm512_min_pd(a, b)
#define MAXV(a, b) _mm512_max_pd(a, b)
