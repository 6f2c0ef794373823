/* What one core reaches at most: sums and fused products in registers, and a triad in memory. */
#include <stdint.h>

typedef double vec __attribute__((vector_size(64)));

#define EACH(do) do(a) do(b) do(c) do(d) do(e) do(f) do(g) do(h) do(i) do(j) do(k) do(l)
#define START(x) vec x = (vec){0} + 1;
#define TOTAL(x) total += x;
/* Without the empty assembly the compiler would join rounds. */
#define SUM(x) x = x + step; __asm__ volatile("" : "+v"(x));
#define PRODUCT(x) x = x * step + step; __asm__ volatile("" : "+v"(x));
#define LOOP(name, next)                                \
    double name(int64_t rounds, double one) {           \
        vec step = (vec){0} + one, total = {0};         \
        EACH(START)                                     \
        for (int64_t r = 0; r < rounds; r++) { EACH(next) } \
        EACH(TOTAL)                                     \
        return total[0] + total[1];                     \
    }

/* 96 numbers a round: a sum each, or a product and a sum. */
LOOP(sums, SUM)
LOOP(products, PRODUCT)

/* a = b + s c: two numbers read, one written. */
void triad(double *restrict a, const double *restrict b, const double *restrict c, double s,
           int64_t n) {
    for (int64_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}
