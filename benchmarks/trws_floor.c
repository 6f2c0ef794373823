/* The "floor" of TRW-S on grids, a limit and not a peer: one shared table, 16 states, which are one
 * register of AVX-512, neighbours by arithmetic, neither a bound nor a labeling.  Prints nanoseconds
 * for each cell of a general table and for each message of a Potts one.  Elsewhere than on AVX-512
 * the compiler makes of the vectors what it can. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { K = 16, SIDE = 128 };
typedef float row __attribute__((vector_size(64)));
static row *unary, *message, table[K];

static inline row larger(row a, row b)
{
    for (int q = 0; q < K; q++)
        a[q] = a[q] > b[q] ? a[q] : b[q];
    return a;
}

static inline float top_of(row a)
{
    float top = a[0];
    for (int q = 1; q < K; q++)
        top = a[q] > top ? a[q] : top;
    return top;
}

#ifdef __AVX512F__
#include <immintrin.h>
#define larger(a, b) ((row)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define top_of(a) _mm512_reduce_max_ps((__m512)(a))
#endif

static inline void send(int potts, row own, float share, row *m)
{
    row s = own * share - *m, best;
    if (potts) {
        const float top = top_of(s);
        *m = larger(s, (row){} + (top - 1)) - top;
        return;
    }
    best = table[0] + s[0];
    for (int k = 1; k < K; k++)
        best = larger(best, table[k] + s[k]);
    *m = best - top_of(best);
}

static void pass(int potts, int forward)
{
    const long n = (long)SIDE * SIDE;
    for (long j = 0; j < n; j++) {
        const long v = forward ? j : n - 1 - j;
        const int right = v % SIDE < SIDE - 1, down = v / SIDE < SIDE - 1;
        const int left = v % SIDE > 0, up = v / SIDE > 0;
        const int after = right + down, before = left + up;
        const float share = 1.0f / (after > before ? after : before);
        row own = unary[v];
        if (right) own += message[2 * v];
        if (down) own += message[2 * v + 1];
        if (left) own += message[2 * (v - 1)];
        if (up) own += message[2 * (v - SIDE) + 1];
        if (forward) {
            if (right) send(potts, own, share, message + 2 * v);
            if (down) send(potts, own, share, message + 2 * v + 1);
        } else {
            if (left) send(potts, own, share, message + 2 * (v - 1));
            if (up) send(potts, own, share, message + 2 * (v - SIDE) + 1);
        }
    }
}

int main(void)
{
    const long n = (long)SIDE * SIDE;
    const double messages = 2.0 * 2 * SIDE * (SIDE - 1);
    unary = aligned_alloc(64, n * sizeof(row));
    message = aligned_alloc(64, 2 * n * sizeof(row));
    for (int potts = 0; potts < 2; potts++) {
        double best = INFINITY;
        for (long v = 0; v < 2 * n; v++) message[v] = (row){};
        for (long v = 0; v < n; v++)
            for (int k = 0; k < K; k++) unary[v][k] = rand() / (float)RAND_MAX;
        for (int k = 0; k < K; k++)
            for (int q = 0; q < K; q++) table[k][q] = rand() / (float)RAND_MAX;
        for (int repeat = 0; repeat < 20; repeat++) {
            const clock_t begun = clock();
            pass(potts, 1);
            pass(potts, 0);
            const double seconds = (clock() - begun) / (double)CLOCKS_PER_SEC;
            best = seconds < best ? seconds : best;
        }
        printf("%.4f ", 1e9 * best / messages / (potts ? 1 : K * K));
    }
    return 0;
}
