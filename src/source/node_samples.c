/* SPDX-License-Identifier: Apache-2.0 */

/* The agents look at their own times. A round is over when every node has spoken; one that has
 * spoken twice by then has its work counted twice, over twice the time. */

#include "source/node_samples.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"

#include <string.h>

#define NODES_MAX 20000

struct sample {
    char node[NODE_NAME_LEN];
    struct activity_fact fact;
};

struct node_samples {
    usec_t begun;
    VEC(struct sample *) samples; /* by node */
};

struct node_samples *node_samples_new(void)
{
    return xnew(struct node_samples);
}

static void clear(struct node_samples *s)
{
    VEC_FOREACH (&s->samples, x)
        free(*x);
    s->samples.n = 0;
}

struct node_samples *node_samples_free(struct node_samples *s)
{
    if (!s)
        return NULL;
    clear(s);
    VEC_DONE(&s->samples);
    free(s);
    return NULL;
}

/* Where it is, or belongs. */
static size_t position(const struct node_samples *s, const char *node)
{
    return VEC_BISECT(&s->samples, x, strcmp((*x)->node, node) < 0);
}

/* Of nobody's numbers, however many, may come one that core refuses. */
static int64_t sum_of(int64_t a, int64_t b, int64_t max)
{
    return a > max - b ? max : a + b;
}

static int64_t sum_io(int64_t a, int64_t b)
{
    if (a == NUMBER_NONE || b == NUMBER_NONE)
        return NUMBER_NONE;
    return sum_of(a, b < 0 ? 0 : b < NUMBER_MAX ? b : NUMBER_MAX, NUMBER_MAX);
}

static int32_t sum_count(int32_t a, int32_t b)
{
    return (int32_t)sum_of(a, b, INT32_MAX);
}

/* The same node again, later. */
static void extend(struct activity_fact *f, const struct activity_fact *more)
{
    usec_t interval = sum_of(f->interval, more->interval, NUMBER_MAX);
    usec_t cpu = sum_of(f->cpu, more->cpu, NUMBER_MAX);
    int64_t io = sum_io(f->io, more->io);

    *f = *more; /* what is so now */
    f->interval = interval;
    f->cpu = cpu;
    f->io = io;
}

static void take(struct node_samples *s, const char *node, const struct activity_fact *f)
{
    size_t i = position(s, node);
    struct sample *x;

    if (i < s->samples.n && streq(s->samples.v[i]->node, node)) {
        extend(&s->samples.v[i]->fact, f);
        return;
    }
    if (s->samples.n >= NODES_MAX)
        return;
    x = xnew(struct sample);
    STR_COPY(x->node, node);
    x->fact = *f;
    *VEC_INSERT(&s->samples, i) = x;
}

/* CPU time and I/O as of one interval, the mean of all. */
static struct activity_fact sum(const struct node_samples *s)
{
    struct activity_fact whole = {0};

    VEC_FOREACH (&s->samples, x) {
        const struct activity_fact *f = &(*x)->fact;

        whole.interval = sum_of(whole.interval, f->interval, NUMBER_MAX);
        whole.cpu = sum_of(whole.cpu, f->cpu, NUMBER_MAX);
        whole.io = sum_io(whole.io, f->io);
        whole.processes = sum_count(whole.processes, f->processes);
        whole.stopped = sum_count(whole.stopped, f->stopped);
        whole.blocked = sum_count(whole.blocked, f->blocked);
    }
    whole.interval /= (usec_t)s->samples.n;
    return whole;
}

bool node_samples_add(struct node_samples *s, const char *node, const struct activity_fact *f,
                      uint32_t nodes, usec_t now, struct activity_fact *ret)
{
    if (s->samples.n > 0 && now > s->begun + NODE_SAMPLES_AGE)
        clear(s);
    if (s->samples.n == 0)
        s->begun = now;
    take(s, node, f);
    if (nodes == 0 || s->samples.n < nodes)
        return false;
    *ret = sum(s);
    clear(s);
    return true;
}
