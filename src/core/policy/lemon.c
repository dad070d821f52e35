/* SPDX-License-Identifier: Apache-2.0 */

/* Whether a node fails so much more often than the others that it is no chance (algorithm b.6): a
 * gamma prior of the rate at which the others fail, and what was seen of this one. It is a lemon
 * when its rate is five times theirs with a probability of 95 %, by three incidents at least, of
 * two jobs and two users: one script that is wrong convicts nothing.
 *
 * The gamma distribution is taken by the cube root that makes it normal (Wilson and Hilferty),
 * which is good to a hundredth from a shape of 1 on. */

#include "core/policy/lemon.h"

#include <math.h>

#define SHAPE     0.2 /* of the prior, by moments: a few nodes have most of the failures of a fleet */
#define TIMES     5
#define Z_95      1.645
#define INCIDENTS 3
#define RATE_MIN  0.001 /* per node and day: of clusters in which next to nothing happened yet */
#define RATE_MAX  1.0

static double weight_of(const struct model *m, const struct node_ledger *l)
{
    double sum = 0;

    VEC_FOREACH (&l->incidents, i)
        sum += i->weight / 1000.0 * decay(m->now - i->at, LEMON_HALF_LIFE);
    return sum;
}

static double used_of(const struct model *m, const struct decaying *d)
{
    return decaying_now(d, m->now, LEMON_HALF_LIFE);
}

/* Of all nodes but that one. */
static double rate_of_others(const struct model *m, const struct node_ledger *l)
{
    double used = used_of(m, &m->nodes.used) - used_of(m, &l->used), weight = 0, rate;

    VEC_FOREACH (&m->nodes.list, other)
        if (*other != l)
            weight += weight_of(m, *other);
    rate = used > 0 ? weight / used : RATE_MAX;
    return rate < RATE_MIN ? RATE_MIN : rate > RATE_MAX ? RATE_MAX : rate;
}

/* Newton's. v > 0 */
static double cube_root(double v)
{
    double y = v > 1 ? v : 1;

    for (int i = 0; i < 80; i++)
        y -= (y * y * y - v) / (3 * y * y);
    return y;
}

/* Whether a gamma variable of that shape and scale 1 is above x with 95 %. */
static bool is_surely_above(double shape, double x)
{
    double mean = 1 - 1 / (9 * shape), deviation = sqrt(1 / (9 * shape));

    return (cube_root(x / shape) - mean) / deviation <= -Z_95;
}

/* What happened while nobody's job ran there can be no job's fault. */
static bool is_new(const struct node_ledger *l, size_t k, bool of_user)
{
    const struct node_incident *i = &l->incidents.v[k];

    for (size_t n = 0; n < k && i->job != 0; n++)
        if (of_user ? l->incidents.v[n].job != 0 && l->incidents.v[n].uid == i->uid
                    : l->incidents.v[n].job == i->job)
            return false;
    return true;
}

static bool is_no_single_script(const struct node_ledger *l)
{
    uint32_t jobs = 0, users = 0;

    for (size_t k = 0; k < l->incidents.n; k++) {
        jobs += is_new(l, k, false);
        users += is_new(l, k, true);
    }
    return l->incidents.n >= INCIDENTS && jobs >= 2 && users >= 2;
}

void lemon_score(const struct model *m, const struct node_ledger *l, struct lemon_score *ret)
{
    double rate, shape, inverse;

    *ret = (struct lemon_score){.incidents = (uint32_t)l->incidents.n};
    if (l->incidents.n == 0)
        return;
    rate = rate_of_others(m, l);
    shape = SHAPE + weight_of(m, l);
    inverse = SHAPE / rate + used_of(m, &l->used);
    ret->percent = (uint32_t)(shape / inverse / rate * 100);
    ret->lemon = is_no_single_script(l) && is_surely_above(shape, TIMES * rate * inverse);
}
