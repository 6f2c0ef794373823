/* The "floor": throw-away kernels that show the limit of the machine; not a peer.
 * States padded to 32 doubles (four 512-bit registers), a dense copy of w_i per word as in the
 * BCFW paper (246 MB on nine OCR folds), pixels indexed in advance, a search direction that is
 * never materialised.  Rows of w: D feature rows, then K transition rows, 32 doubles each.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define S 32
#define NEVER (-1e30)

typedef double vec __attribute__((vector_size(64), aligned(64)));

typedef struct {
    int64_t n, D, K, max_length;
    const int64_t *word;
    const int64_t *indptr;
    const int32_t *indices;
    const int32_t *y;
    double alpha;
    double *w;          /* (D + K) x 32, 64-byte aligned */
    double *blocks;     /* n x (D + K) x 32 */
    double *b;
    double b_mean;
    uint64_t seed;
} Floor;

#ifdef __AVX512F__
#include <immintrin.h>
#define VMAX(a, b) ((vec)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#else
static inline vec VMAX(vec a, vec b)
{
    for (int q = 0; q < 8; q++)
        a[q] = a[q] > b[q] ? a[q] : b[q];
    return a;
}
#endif

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static inline int64_t below(uint64_t *s, int64_t n)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return (int64_t)(((*s * 2685821657736338717ULL) >> 33) % (uint64_t)n);
}

/* One step of the recursion, the new scores held in four registers. */
static inline void advance(const double *old, const double *T, const double *theta, int64_t K,
                           double *new)
{
    const vec *rows = (const vec *)T;
    vec a0 = rows[0] + old[0], a1 = rows[1] + old[0], a2 = rows[2] + old[0],
        a3 = rows[3] + old[0];
    for (int64_t j = 1; j < K; j++) {
        const vec *r = rows + 4 * j;
        const double a = old[j];
        a0 = VMAX(a0, r[0] + a);
        a1 = VMAX(a1, r[1] + a);
        a2 = VMAX(a2, r[2] + a);
        a3 = VMAX(a3, r[3] + a);
    }
    const vec *node = (const vec *)theta;
    vec *out = (vec *)new;
    out[0] = a0 + node[0], out[1] = a1 + node[1], out[2] = a2 + node[2], out[3] = a3 + node[3];
}

/* theta and T padded to 32 with anything finite in T and -1e30 in theta; work L x 32. */
double viterbi_floor(const double *theta, const double *T, int64_t L, int64_t K, double *work,
                     int32_t *back, int32_t *path)
{
    (void)back;
    memcpy(work, theta, S * sizeof(double));
    for (int64_t t = 1; t < L; t++)
        advance(work + (t - 1) * S, T, theta + t * S, K, work + t * S);
    const double *last = work + (L - 1) * S;
    int32_t state = 0;
    for (int64_t k = 1; k < K; k++)
        if (last[k] > last[state])
            state = (int32_t)k;
    path[L - 1] = state;
    for (int64_t t = L - 1; t > 0; t--) {
        const double *old = work + (t - 1) * S;
        /* exact: the same sum was rounded the same way in the forward pass */
        const double target = work[t * S + state];
        int32_t arg = 0;
        for (int64_t j = 0; j < K; j++)
            if (old[j] + T[j * S + state] + theta[t * S + state] == target) {
                arg = (int32_t)j;
                break;
            }
        path[t - 1] = state = arg;
    }
    return last[path[L - 1]];
}

/* Scaled forward pass in registers; E = exp(T) padded with zeros, theta with -1e30. */
double forward_floor(const double *theta, const double *E, int64_t L, int64_t K, double *work)
{
    double log_z = 0.0;
    double *old = work, *new = work + S;
    for (int64_t t = 0; t < L; t++) {
        const double *row = theta + t * S;
        double top = row[0], sum = 0.0;
        for (int64_t k = 1; k < K; k++)
            top = row[k] > top ? row[k] : top;
        vec a0, a1, a2, a3;
        if (t) {
            const vec *r = (const vec *)E;
            a0 = r[0] * old[0], a1 = r[1] * old[0], a2 = r[2] * old[0], a3 = r[3] * old[0];
            for (int64_t j = 1; j < K; j++) {
                r += 4;
                a0 += r[0] * old[j], a1 += r[1] * old[j], a2 += r[2] * old[j],
                    a3 += r[3] * old[j];
            }
        } else {
            a0 = a1 = a2 = a3 = (vec){1, 1, 1, 1, 1, 1, 1, 1};
        }
        vec *out = (vec *)new;
        out[0] = a0, out[1] = a1, out[2] = a2, out[3] = a3;
        for (int64_t k = 0; k < K; k++) {
            new[k] *= exp(row[k] - top);
            sum += new[k];
        }
        const double inverse = 1.0 / sum;
        for (int64_t k = 0; k < S; k++)
            new[k] *= inverse;
        log_z += top + log(sum);
        double *swap = old;
        old = new;
        new = swap;
    }
    return log_z;
}

static void score(const Floor *p, int64_t first, int64_t L, double *theta)
{
    for (int64_t t = 0; t < L; t++) {
        vec a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
        for (int64_t e = p->indptr[first + t]; e < p->indptr[first + t + 1]; e++) {
            const vec *row = (const vec *)(p->w + (int64_t)p->indices[e] * S);
            a0 += row[0], a1 += row[1], a2 += row[2], a3 += row[3];
        }
        vec *out = (vec *)(theta + t * S);
        out[0] = a0, out[1] = a1, out[2] = a2, out[3] = a3;
        for (int64_t k = p->K; k < S; k++)
            theta[t * S + k] = NEVER;
    }
}

/* Calls `visit` statements with (entry of w, signed count) for every non-zero of
 * Phi_i'(mu(y) - mu(path)); an entry may come up more than once. */
#define FOR_EACH_ENTRY(VISIT)                                                                  \
    for (int64_t t = 0; t < L; t++) {                                                          \
        if (path[t] != y[t])                                                                   \
            for (int64_t e = p->indptr[first + t]; e < p->indptr[first + t + 1]; e++) {        \
                const int64_t row = (int64_t)p->indices[e] * S;                                \
                VISIT(row + y[t], 1.0);                                                        \
                VISIT(row + path[t], -1.0);                                                    \
            }                                                                                  \
        if (t && (path[t] != y[t] || path[t - 1] != y[t - 1])) {                               \
            VISIT((p->D + y[t - 1]) * S + y[t], 1.0);                                          \
            VISIT((p->D + path[t - 1]) * S + path[t], -1.0);                                   \
        }                                                                                      \
    }

double floor_steps(Floor *p, int64_t steps)
{
    const int64_t size = (p->D + p->K) * S;
    double *theta = aligned_alloc(64, p->max_length * S * sizeof(double));
    double *work = aligned_alloc(64, p->max_length * S * sizeof(double));
    double *scratch = aligned_alloc(64, size * sizeof(double));
    int32_t *path = malloc(p->max_length * sizeof(int32_t));
    const double scale = 1.0 / (p->alpha * p->n);
    memset(scratch, 0, size * sizeof(double));
    const double start = cpu_seconds();

    for (int64_t step = 0; step < steps; step++) {
        const int64_t i = below(&p->seed, p->n), first = p->word[i], L = p->word[i + 1] - first;
        const int32_t *y = p->y + first;
        double *block = p->blocks + i * size, *w = p->w;

        score(p, first, L, theta);
        for (int64_t t = 0; t < L; t++) {
            for (int64_t k = 0; k < S; k++)
                theta[t * S + k] += 1.0;
            theta[t * S + y[t]] -= 1.0;
        }
        viterbi_floor(theta, w + p->D * S, L, p->K, work, NULL, path);

        /* <w, w_i>, |w_i|^2 over the block; those of the new vertex over its entries only */
        double dot = 0.0, norm = 0.0, vertex_dot = 0.0, cross = 0.0, vertex_norm = 0.0, loss = 0.0;
#pragma omp simd reduction(+ : dot, norm)
        for (int64_t e = 0; e < size; e++) {
            dot += w[e] * block[e];
            norm += block[e] * block[e];
        }
        for (int64_t t = 0; t < L; t++)
            loss += path[t] != y[t];
#define MEASURE(entry, c)                                                                      \
    do {                                                                                       \
        const int64_t at = (entry);                                                            \
        vertex_dot += (c) * w[at];                                                             \
        cross += (c) * block[at];                                                              \
        vertex_norm += 2.0 * (c) * scratch[at] + 1.0;                                          \
        scratch[at] += (c);                                                                    \
    } while (0)
        FOR_EACH_ENTRY(MEASURE)
        const double slope = scale * vertex_dot - dot;
        const double square = scale * scale * vertex_norm - 2.0 * scale * cross + norm;
        /* line search of the dual, everything divided by n: gap over alpha |w_s - w_i|^2 */
        const double gap = (loss - p->b[i]) / p->n - p->alpha * slope;
        double gamma = square > 0.0 ? gap / (p->alpha * square) : 0.0;
        gamma = gamma < 0.0 ? 0.0 : gamma > 1.0 ? 1.0 : gamma;

        for (int64_t e = 0; e < size; e++) {
            const double change = gamma * block[e];
            block[e] -= change;
            w[e] -= change;
        }
        const double a = gamma * scale;
#define MOVE(entry, c)                                                                         \
    do {                                                                                       \
        const int64_t at = (entry);                                                            \
        w[at] += (c) * a;                                                                      \
        block[at] += (c) * a;                                                                  \
        scratch[at] = 0.0;                                                                     \
    } while (0)
        FOR_EACH_ENTRY(MOVE)
        p->b_mean += gamma * (loss - p->b[i]) / p->n;
        p->b[i] += gamma * (loss - p->b[i]);
    }
    double seconds = cpu_seconds() - start;
    free(theta), free(work), free(scratch), free(path);
    return seconds;
}

/* Decode every word; returns CPU seconds. */
double floor_decode(const Floor *p, int32_t *out)
{
    double *theta = aligned_alloc(64, p->max_length * S * sizeof(double));
    double *work = aligned_alloc(64, p->max_length * S * sizeof(double));
    const double start = cpu_seconds();
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t first = p->word[i], L = p->word[i + 1] - first;
        score(p, first, L, theta);
        viterbi_floor(theta, p->w + p->D * S, L, p->K, work, NULL, out + first);
    }
    double seconds = cpu_seconds() - start;
    free(theta), free(work);
    return seconds;
}
