/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept out of the next attempt: of a scheduler's job, the nodes at fault. On one machine
 * that can only be a GPU, and only for a job that does with fewer: so the policy must allow it. All
 * that is proven guilty is kept out, or, when too little would be left, nothing.
 *
 * A verdict that names something which cannot be kept out leaves a person with something to do;
 * then the decision says what. */

#include "core/policy/exclude.h"

#include "base/hostlist.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

struct names {
    const char (*v)[DEVICE_NAME_LEN];
    uint32_t n;
};

static bool has(struct names list, const char *name)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (streq(list.v[i], name))
            return true;
    return false;
}

static struct names culprits_of(const struct job *j)
{
    const struct culprits *c = &j->attempt.incident.culprits;

    return (struct names){c->devices, c->n_devices};
}

static struct names used_by(const struct job *j)
{
    return (struct names){j->devices, j->n_devices};
}

static struct names kept_out(const struct decision_facts *d)
{
    return (struct names){d->without, d->n_without};
}

/* "GPU 0000:4d:00", "GPU 0000:4d:00 and 2 more" */
static const char *name_them(struct names list, char *ret, size_t size)
{
    if (list.n > 1)
        str_printf(ret, size, "GPU %s and %" PRIu32 " more", list.v[0], list.n - 1);
    else
        str_printf(ret, size, "GPU %s", list.v[0]);
    return ret;
}

/* Of the job's devices, those that are neither kept out already nor to be. */
static uint32_t count_left(const struct job *j, const struct decision_facts *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->n_devices; i++)
        n += !has(kept_out(d), j->devices[i]) && !has(culprits_of(j), j->devices[i]);
    return n;
}

static uint32_t count_new(const struct job *j, const struct decision_facts *d)
{
    struct names guilty = culprits_of(j);
    uint32_t n = 0;

    for (uint32_t i = 0; i < guilty.n; i++)
        n += has(used_by(j), guilty.v[i]) && !has(kept_out(d), guilty.v[i]);
    return n;
}

static void add_new(const struct job *j, struct decision_facts *d)
{
    struct names guilty = culprits_of(j);

    for (uint32_t i = 0; i < guilty.n && d->n_without < DEVICES_MAX; i++)
        if (has(used_by(j), guilty.v[i]) && !has(kept_out(d), guilty.v[i]))
            STR_COPY(d->without[d->n_without++], guilty.v[i]);
}

/* Only devices can be kept out; what else is named stays in. */
static void exclude_none(const struct job *j, struct decision_facts *d)
{
    const struct culprits *c = &j->attempt.incident.culprits;

    if (c->n_ranks > 0)
        decision_add(d, "; which GPU rank %" PRId32 " has is not known, so it stays in: test them",
                     c->ranks[0]);
    else
        decision_add(d,
                     "; this machine is to blame, and is the only one: test it, or move the job");
}

static void exclude_devices(const struct model *m, const struct job *j, struct decision_facts *d)
{
    uint32_t fresh = count_new(j, d), left = count_left(j, d);
    uint32_t least = policy_of(m, j)->min_devices > 0 ? policy_of(m, j)->min_devices : 1;
    char names[64];

    name_them(culprits_of(j), names, sizeof(names));
    if (!policy_of(m, j)->exclude_devices) {
        decision_add(d, "; %s stays in (exclude_devices is false): test it, or leave it out",
                     names);
    } else if (j->n_devices == 0) {
        decision_add(d, "; %s stays in: which GPUs the job has is not known; leave it out", names);
    } else if (fresh == 0) {
        decision_add(d, "; %s is not among those the job has", names);
    } else if (left < least) {
        decision_add(d,
                     "; %s stays in: %" PRIu32 " of %" PRIu32
                     " would be left, min_devices is %" PRIu32 "; replace it",
                     names, left, j->n_devices, least);
    } else {
        add_new(j, d);
        d->action = ACTION_RESTART_EXCLUDING;
        decision_add(d, "; without %s, %" PRIu32 " of %" PRIu32 " are left", names, left,
                     j->n_devices);
    }
}

/* Nodes, of a job that a scheduler starts: those that it ran on, whatever its text says of others.
 * They are kept out of this job alone. What cannot be left out because too few nodes would remain
 * is known to the scheduler, and shows when it is asked. */

static bool may_keep_out(const struct model *m, const char *node)
{
    uint32_t limit = m->brakes.exclusions_per_node_hour;

    return model_room_at(m, DEED_EXCLUDED, node, USEC_PER_HOUR, limit) <= m->now;
}

static bool is_kept_out(const struct model *m, const struct job *j, const char *node)
{
    for (uint32_t i = 0; i < j->sched.n_kept; i++)
        if (streq(j->sched.kept[i].node, node) && sched_keeps_out(m, j, i))
            return true;
    return false;
}

/* ... by a job before this one, so that each node is counted once. */
static bool is_kept_out_before(const struct model *m, size_t job, const char *node)
{
    for (size_t i = 0; i < job; i++)
        if (is_kept_out(m, m->jobs.v[i], node))
            return true;
    return false;
}

/* Nodes that are kept out of any job now, and whether this is one of them. */
static uint32_t count_kept_out(const struct model *m, const char *node, bool *ret_known)
{
    uint32_t n = 0;

    *ret_known = is_kept_out_before(m, m->jobs.n, node);
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct sched *s = &m->jobs.v[i]->sched;

        for (uint32_t k = 0; k < s->n_kept; k++)
            n += is_kept_out(m, m->jobs.v[i], s->kept[k].node) &&
                 !is_kept_out_before(m, i, s->kept[k].node);
    }
    return n;
}

static bool is_listed(const struct decision_facts *d, const char *node)
{
    for (uint32_t i = 0; i < d->n_nodes; i++)
        if (streq(d->nodes[i], node))
            return true;
    return false;
}

static void list_node(struct decision_facts *d, const char *node)
{
    if (d->n_nodes < KEPT_OUT_MAX && !is_listed(d, node))
        STR_COPY(d->nodes[d->n_nodes++], node);
}

/* All exclusions of all jobs together; new: those that this decision adds. */
static bool has_share_left(const struct model *m, const struct decision_facts *d, const char *node)
{
    uint32_t n, new = 0, limit = m->brakes.max_excluded;
    bool known;

    if (limit == 0 || is_listed(d, node))
        return true;
    n = count_kept_out(m, node, &known);
    for (uint32_t i = 0; i < d->n_nodes; i++)
        new += !is_kept_out_before(m, m->jobs.n, d->nodes[i]);
    return known || n + new < limit;
}

static void exclude_node(const struct model *m, const struct job *j, const char *node,
                         struct decision_facts *d)
{
    if (!hostlist_has(j->sched.ran_on, node)) {
        decision_add(d, "; it did not run on %.64s, which stays in", node);
    } else if (sched_requires(j, node)) {
        decision_add(d, "; its user requires %.64s, which stays in: look at it", node);
    } else if (!may_keep_out(m, node)) {
        decision_add(d,
                     "; within the hour %.64s was kept out of %u jobs, which is all that "
                     "brakes.exclusions_per_node_hour allows, so it stays in: look at it",
                     node, m->brakes.exclusions_per_node_hour);
    } else if (!has_share_left(m, d, node)) {
        decision_add(d,
                     "; max_excluded allows no more than %u nodes to be kept out of jobs, so %.64s "
                     "stays in: look at it, drain it, or raise max_excluded",
                     m->brakes.max_excluded, node);
    } else {
        list_node(d, node);
        d->action = ACTION_RESTART_EXCLUDING;
        decision_add(d, "; without %.64s", node);
    }
}

static void exclude_nodes(const struct model *m, const struct job *j, struct decision_facts *d)
{
    const struct incident *i = &j->attempt.incident;

    for (uint32_t k = 0; k < j->sched.n_kept; k++)
        if (j->sched.kept[k].until > m->now && !sched_requires(j, j->sched.kept[k].node))
            list_node(d, j->sched.kept[k].node);
    if (j->state != JOB_JUDGED || i->advice != ADVICE_RESTART_EXCLUDING)
        return;
    for (uint32_t n = 0; n < i->culprits.n_nodes; n++)
        exclude_node(m, j, i->culprits.nodes[n], d);
}

void exclude_culprits(const struct model *m, const struct job *j, struct decision_facts *d)
{
    if (j->scheduled) {
        exclude_nodes(m, j, d);
        return;
    }
    d->n_without = j->n_without;
    memcpy(d->without, j->without, sizeof(d->without));
    if (j->state != JOB_JUDGED || j->attempt.incident.advice != ADVICE_RESTART_EXCLUDING)
        return;
    if (culprits_of(j).n > 0)
        exclude_devices(m, j, d);
    else
        exclude_none(j, d);
}
