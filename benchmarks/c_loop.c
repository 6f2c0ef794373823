/* The "plain C loop" peer: a straightforward block-coordinate Frank-Wolfe on a chain of binary CSR
 * features.  Score, loss-augmented Viterbi with back-pointers,
 * duals p_i in part space (one K x K table per word for the transitions), exact line search,
 * weighted averaging.  c_loop.py compiles it at run time (-O3 -march=native) and drives it;
 * c_floor.c holds the hand-tuned lower limit.
 *
 * Notation of the estimator: w = 1/(alpha n) sum_i Phi_i' p_i, p_i = mu(y_i) - mu(y),
 * objective alpha/2 |w|^2 + mean hinge, unnormalised Hamming loss.
 *
 * With -DSTATES=26 the number of states is known to the compiler and Viterbi is the vectorised
 * kernel without back-pointers: the "tuned C loop". */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef STATES
#define STATES_OF(p) ((int64_t)STATES)
#define VITERBI viterbi_jouter
#else
#define STATES_OF(p) ((p)->K)
#define VITERBI viterbi_textbook
#endif

typedef struct {
    int64_t n, D, K, max_length;
    const int64_t *word;    /* n + 1: first letter of each word */
    const int64_t *indptr;  /* letters + 1: CSR rows, every stored value is 1 */
    const int32_t *indices;
    const int32_t *y;
    double alpha;
    double *w;              /* D x K weights, then K x K transitions */
    double *node;           /* letters x K duals */
    double *edge;           /* n x K x K duals */
    double *b;              /* n losses of the duals */
    double *avg;            /* averaged w, or NULL: no averaging */
    double b_mean, avg_b;   /* mean of b, and its average */
    int64_t steps;
    uint64_t seed;
} Plain;

double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* xorshift64*: a uniform integer below n */
static inline int64_t below(uint64_t *s, int64_t n)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return (int64_t)(((*s * 2685821657736338717ULL) >> 33) % (uint64_t)n);
}

static void score(const Plain *p, const double *w, int64_t first, int64_t L, double *theta)
{
    const int64_t K = STATES_OF(p);
    for (int64_t t = 0; t < L; t++) {
        double *out = theta + t * K;
        memset(out, 0, K * sizeof(double));
        for (int64_t e = p->indptr[first + t]; e < p->indptr[first + t + 1]; e++) {
            const double *row = w + p->indices[e] * K;
            for (int64_t k = 0; k < K; k++)
                out[k] += row[k];
        }
    }
}

/* The textbook loop: best predecessor of each state, back-pointers, trace back. */
double viterbi_textbook(const double *theta, const double *T, int64_t L, int64_t K, double *work,
                        int32_t *back, int32_t *path)
{
    double *old = work, *new = work + K;
    memcpy(old, theta, K * sizeof(double));
    for (int64_t t = 1; t < L; t++) {
        for (int64_t k = 0; k < K; k++) {
            double best = old[0] + T[k];
            int32_t arg = 0;
            for (int64_t j = 1; j < K; j++) {
                double s = old[j] + T[j * K + k];
                if (s > best) {
                    best = s;
                    arg = (int32_t)j;
                }
            }
            new[k] = best + theta[t * K + k];
            back[t * K + k] = arg;
        }
        double *swap = old;
        old = new;
        new = swap;
    }
    int32_t last = 0;
    for (int64_t k = 1; k < K; k++)
        if (old[k] > old[last])
            last = (int32_t)k;
    double value = old[last];
    for (int64_t t = L - 1; t >= 0; t--) {
        path[t] = last;
        if (t)
            last = back[t * K + last];
    }
    return value;
}

/* From-state outermost, so that the inner loop runs along a row of T and vectorises; no
 * back-pointers, the argmax is searched again on the path.  work holds L x K. */
double viterbi_jouter(const double *theta, const double *T, int64_t L, int64_t K, double *work,
                      int32_t *back, int32_t *path)
{
    (void)back;
    memcpy(work, theta, K * sizeof(double));
    for (int64_t t = 1; t < L; t++) {
        const double *old = work + (t - 1) * K;
        double *restrict new = work + t * K;
        for (int64_t k = 0; k < K; k++)
            new[k] = old[0] + T[k];
        for (int64_t j = 1; j < K; j++) {
            const double a = old[j];
            const double *row = T + j * K;
            for (int64_t k = 0; k < K; k++) {
                double s = a + row[k];
                new[k] = s > new[k] ? s : new[k];
            }
        }
        for (int64_t k = 0; k < K; k++)
            new[k] += theta[t * K + k];
    }
    const double *last = work + (L - 1) * K;
    int32_t state = 0;
    for (int64_t k = 1; k < K; k++)
        if (last[k] > last[state])
            state = (int32_t)k;
    double value = last[state];
    path[L - 1] = state;
    for (int64_t t = L - 1; t > 0; t--) {
        const double *old = work + (t - 1) * K;
        int32_t arg = 0;
        double best = old[0] + T[state];
        for (int64_t j = 1; j < K; j++)
            if (old[j] + T[j * K + state] > best) {
                best = old[j] + T[j * K + state];
                arg = (int32_t)j;
            }
        path[t - 1] = state = arg;
    }
    return value;
}

static double augmented_viterbi(const Plain *p, const double *w, int64_t first, int64_t L,
                                double *theta, double *work, int32_t *back, int32_t *path)
{
    const int64_t K = STATES_OF(p);
    for (int64_t t = 0; t < L; t++) {
        for (int64_t k = 0; k < K; k++)
            theta[t * K + k] += 1.0;
        theta[t * K + p->y[first + t]] -= 1.0;
    }
    return VITERBI(theta, w + p->D * K, L, K, work, back, path);
}

/* `steps` block steps, drawn uniformly; returns CPU seconds. */
double plain_steps(Plain *p, int64_t steps)
{
    const int64_t K = STATES_OF(p), D = p->D, KK = K * K, size = D * K + KK;
    double *theta = malloc(2 * p->max_length * K * sizeof(double));
    double *d_node = theta + p->max_length * K;
    double *work = malloc((p->max_length + 2) * K * sizeof(double));
    double *restrict v = malloc(size * sizeof(double)), *d_edge = v + D * K;
    double *restrict w = p->w, *restrict avg = p->avg;
    int32_t *back = malloc(p->max_length * K * sizeof(int32_t));
    int32_t *path = malloc(p->max_length * sizeof(int32_t));
    const double scale = 1.0 / (p->alpha * p->n);
    const double start = cpu_seconds();

    for (int64_t step = 0; step < steps; step++) {
        const int64_t i = below(&p->seed, p->n), first = p->word[i], L = p->word[i + 1] - first;
        const int32_t *y = p->y + first;
        double *node = p->node + first * K, *edge = p->edge + i * KK;

        score(p, w, first, L, theta);
        augmented_viterbi(p, w, first, L, theta, work, back, path);

        /* d = mu(y_i) - mu(path) - p_i and the loss of the new vertex */
        double loss = 0.0;
        for (int64_t e = 0; e < L * K; e++)
            d_node[e] = -node[e];
        for (int64_t e = 0; e < KK; e++)
            d_edge[e] = -edge[e];
        for (int64_t t = 0; t < L; t++) {
            d_node[t * K + y[t]] += 1.0;
            d_node[t * K + path[t]] -= 1.0;
            loss += path[t] != y[t];
            if (t) {
                d_edge[y[t - 1] * K + y[t]] += 1.0;
                d_edge[path[t - 1] * K + path[t]] -= 1.0;
            }
        }

        /* v = Phi_i' d, its norm and its product with w */
        memset(v, 0, D * K * sizeof(double));
        for (int64_t t = 0; t < L; t++)
            for (int64_t e = p->indptr[first + t]; e < p->indptr[first + t + 1]; e++) {
                double *row = v + p->indices[e] * K;
                for (int64_t k = 0; k < K; k++)
                    row[k] += d_node[t * K + k];
            }
        double norm = 0.0, slope = 0.0;
#pragma omp simd reduction(+ : norm, slope)
        for (int64_t e = 0; e < size; e++) {
            norm += v[e] * v[e];
            slope += v[e] * w[e];
        }

        double gamma = 0.0, gap = loss - p->b[i] - slope;
        if (norm > 0.0) {
            gamma = gap / (scale * norm);
            gamma = gamma < 0.0 ? 0.0 : gamma > 1.0 ? 1.0 : gamma;
        }
        for (int64_t e = 0; e < L * K; e++)
            node[e] += gamma * d_node[e];
        for (int64_t e = 0; e < KK; e++)
            edge[e] += gamma * d_edge[e];
        p->b_mean += gamma * (loss - p->b[i]) / p->n;
        p->b[i] += gamma * (loss - p->b[i]);

        const double a = gamma * scale;
        p->steps++;
        if (avg) {
            const double rho = 2.0 / (p->steps + 1.0);
            for (int64_t e = 0; e < size; e++) {
                w[e] += a * v[e];
                avg[e] += rho * (w[e] - avg[e]);
            }
            p->avg_b += rho * (p->b_mean - p->avg_b);
        } else {
            for (int64_t e = 0; e < size; e++)
                w[e] += a * v[e];
        }
    }
    double seconds = cpu_seconds() - start;
    free(theta), free(work), free(v), free(back), free(path);
    return seconds;
}

/* Mean hinge at fixed weights: one oracle call per word. */
double plain_mean_hinge(const Plain *p, const double *w)
{
    const int64_t K = STATES_OF(p);
    double *theta = malloc(p->max_length * K * sizeof(double));
    double *work = malloc((p->max_length + 2) * K * sizeof(double));
    int32_t *back = malloc(p->max_length * K * sizeof(int32_t));
    int32_t *path = malloc(p->max_length * sizeof(int32_t));
    const double *T = w + p->D * K;
    double total = 0.0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t first = p->word[i], L = p->word[i + 1] - first;
        const int32_t *y = p->y + first;
        double truth = 0.0;
        score(p, w, first, L, theta);
        for (int64_t t = 0; t < L; t++)
            truth += theta[t * K + y[t]] + (t ? T[y[t - 1] * K + y[t]] : 0.0);
        total += augmented_viterbi(p, w, first, L, theta, work, back, path) - truth;
    }
    free(theta), free(work), free(back), free(path);
    return total / p->n;
}

/* Share of letters that plain Viterbi gets wrong. */
double plain_error(const Plain *p, const double *w)
{
    const int64_t K = STATES_OF(p);
    double *theta = malloc(p->max_length * K * sizeof(double));
    double *work = malloc((p->max_length + 2) * K * sizeof(double));
    int32_t *back = malloc(p->max_length * K * sizeof(int32_t));
    int32_t *path = malloc(p->max_length * sizeof(int32_t));
    int64_t wrong = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t first = p->word[i], L = p->word[i + 1] - first;
        score(p, w, first, L, theta);
        VITERBI(theta, w + p->D * K, L, K, work, back, path);
        for (int64_t t = 0; t < L; t++)
            wrong += path[t] != p->y[first + t];
    }
    free(theta), free(work), free(back), free(path);
    return (double)wrong / p->word[p->n];
}

/* Scaled forward pass: exp once, then one multiply-add per cell.  E = exp(T). */
double forward_scaled(const double *theta, const double *E, int64_t L, int64_t K, double *work)
{
    double *old = work, *restrict new = work + K, log_z = 0.0;
    for (int64_t t = 0; t < L; t++) {
        const double *row = theta + t * K;
        double top = row[0], sum = 0.0;
        for (int64_t k = 1; k < K; k++)
            top = row[k] > top ? row[k] : top;
        if (t == 0) {
            for (int64_t k = 0; k < K; k++)
                new[k] = 1.0;
        } else {
            for (int64_t k = 0; k < K; k++)
                new[k] = 0.0;
            for (int64_t j = 0; j < K; j++)
                for (int64_t k = 0; k < K; k++)
                    new[k] += old[j] * E[j * K + k];
        }
        for (int64_t k = 0; k < K; k++)
            new[k] *= exp(row[k] - top);
#pragma omp simd reduction(+ : sum)
        for (int64_t k = 0; k < K; k++)
            sum += new[k];
        for (int64_t k = 0; k < K; k++)
            new[k] /= sum;
        log_z += top + log(sum);
        double *swap = old;
        old = new;
        new = swap;
    }
    return log_z;
}

/* Forward pass by log-sum-exp, the textbook way. */
double forward_logsumexp(const double *theta, const double *T, int64_t L, int64_t K, double *work)
{
    double *old = work, *new = work + K, *term = work + 2 * K;
    memcpy(old, theta, K * sizeof(double));
    for (int64_t t = 1; t < L; t++) {
        for (int64_t k = 0; k < K; k++) {
            double top = -INFINITY, sum = 0.0;
            for (int64_t j = 0; j < K; j++) {
                term[j] = old[j] + T[j * K + k];
                top = term[j] > top ? term[j] : top;
            }
            for (int64_t j = 0; j < K; j++)
                sum += exp(term[j] - top);
            new[k] = top + log(sum) + theta[t * K + k];
        }
        double *swap = old;
        old = new;
        new = swap;
    }
    double top = old[0], sum = 0.0;
    for (int64_t k = 1; k < K; k++)
        top = old[k] > top ? old[k] : top;
    for (int64_t k = 0; k < K; k++)
        sum += exp(old[k] - top);
    return top + log(sum);
}
