"""Line searches over the cuts of one example: pairwise and Frank-Wolfe steps on their simplex."""

from libc.math cimport INFINITY


cdef bint line_searches(CutHead** heads, Py_ssize_t m, const double* gram, Py_ssize_t side,
                        double* slopes, double* drift, double share, bint pairwise, int max_steps,
                        double tol, double min_gain, double* rise) noexcept nogil:
    cdef Py_ssize_t j, k, best, worst
    cdef double free, gain, first_gain = 0, curvature, gamma, room, best_slope, worst_slope, x
    cdef int step
    free = 1
    for j in range(m):
        free -= heads[j].weight
    for step in range(max_steps):
        if free < 1e-15:
            free = 0
        # The truth (-1) has slope 0 and the rest of the weight.
        best, best_slope = -1, 0
        worst, worst_slope = -1, (0 if free > 0 else INFINITY)
        for j in range(m):
            if slopes[j] > best_slope:
                best, best_slope = j, slopes[j]
            if heads[j].weight > 0 and slopes[j] < worst_slope:
                worst, worst_slope = j, slopes[j]
        if pairwise:
            gain = best_slope - worst_slope
            curvature = 0
            if best >= 0:
                curvature += gram[best * side + best]
            if worst >= 0:
                curvature += gram[worst * side + worst]
            if best >= 0 and worst >= 0:
                curvature -= 2 * gram[best * side + worst]
            room = free if worst < 0 else heads[worst].weight
        else:
            gain, curvature = best_slope, 0
            for j in range(m):
                x = (1.0 if j == best else 0.0) - heads[j].weight
                gain -= heads[j].weight * slopes[j]
                drift[j] = 0
                for k in range(m):
                    drift[j] += gram[j * side + k] * ((1.0 if k == best else 0.0) - heads[k].weight)
                curvature += x * drift[j]
            room = 1
        if step == 0:
            first_gain = gain
        if gain <= tol * first_gain * (step > 0) or gain <= min_gain or best == worst:
            return step > 0
        gamma = room
        if share * curvature * room > gain:
            gamma = gain / (share * curvature)
        rise[0] += gamma * (gain - 0.5 * gamma * share * curvature)
        if pairwise:
            if best >= 0:
                heads[best].weight += gamma
                for j in range(m):
                    slopes[j] -= share * gamma * gram[best * side + j]
            else:
                free += gamma
            if worst >= 0:
                heads[worst].weight = 0 if gamma == room else heads[worst].weight - gamma
                for j in range(m):
                    slopes[j] += share * gamma * gram[worst * side + j]
            else:
                free -= gamma
        else:
            for j in range(m):
                slopes[j] -= share * gamma * drift[j]
                heads[j].weight *= 1 - gamma
            free *= 1 - gamma
            if best >= 0:
                heads[best].weight += gamma
            else:
                free += gamma
    return max_steps > 0
