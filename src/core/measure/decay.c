/* SPDX-License-Identifier: Apache-2.0 */

/* Halving by time, without libm: the whole half-lives by division, the rest by the roots of one
 * half, bit by bit. IEEE 754 makes each step exact to the last bit, so all machines agree. */

#include "core/measure/decay.h"

#include <math.h>

#define HALVES_MAX 64 /* beyond, nothing is left */
#define BITS       20

double decay(usec_t age, usec_t half_life)
{
    double left = 1, root = 0.5, rest;

    if (age <= 0)
        return 1;
    if (age / half_life >= HALVES_MAX)
        return 0;
    for (usec_t i = age / half_life; i > 0; i--)
        left /= 2;
    rest = (double)(age % half_life) / (double)half_life;
    for (int i = 0; i < BITS; i++) {
        root = sqrt(root);
        rest *= 2;
        if (rest >= 1) {
            rest -= 1;
            left *= root;
        }
    }
    return left;
}

double decaying_now(const struct decaying *d, usec_t now, usec_t half_life)
{
    return d->sum * decay(now - d->at, half_life);
}

void decaying_add(struct decaying *d, double v, usec_t now, usec_t half_life)
{
    d->sum = decaying_now(d, now, half_life) + v;
    d->at = now;
}
