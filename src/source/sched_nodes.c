/* SPDX-License-Identifier: Apache-2.0 */

/* Sorted by name. Beside the table stand short lists of those in trouble and of those whose trouble
 * came or went, because a job is compared with these, never with all nodes. */

#include "source/sched_nodes.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hostlist.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdlib.h>

#define NEWS_MAX 512 /* beyond, every node counts as changed */

struct node {
    char *name, *address;
    char *reason, *who; /* NULL = none is given */
    int64_t since, booted;
    json_t *partitions; /* array */
    bool usable, down, silent, drain;
};

typedef VEC(struct node) node_vec;
typedef VEC(char *) names;

struct sched_nodes {
    node_vec nodes; /* by name */
    names down, silent, news;
    bool all_news;
};

struct sched_nodes *sched_nodes_new(void)
{
    return xnew(struct sched_nodes);
}

static void node_done(struct node *n)
{
    free(n->name);
    free(n->address);
    free(n->reason);
    free(n->who);
    json_decref(n->partitions);
}

static void nodes_done(node_vec *v)
{
    VEC_FOREACH (v, n)
        node_done(n);
    VEC_DONE(v);
}

static void names_clear(names *v)
{
    VEC_FOREACH (v, s)
        free(*s);
    VEC_DONE(v);
}

struct sched_nodes *sched_nodes_free(struct sched_nodes *t)
{
    if (!t)
        return NULL;
    nodes_done(&t->nodes);
    names_clear(&t->down);
    names_clear(&t->silent);
    names_clear(&t->news);
    free(t);
    return NULL;
}

/* First position whose name is not below `name`. */
static size_t position(const node_vec *v, const char *name)
{
    return VEC_BISECT(v, node, strcmp(node->name, name) < 0);
}

static struct node *find(const node_vec *v, const char *name)
{
    size_t i = position(v, name);

    return i < v->n && streq(v->v[i].name, name) ? &v->v[i] : NULL;
}

static bool lists(const json_t *array, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach (array, i, v)
        if (json_is_string(v) && streq(json_string_value(v), name))
            return true;
    return false;
}

static char *text_of(const json_t *record, const char *key)
{
    const char *s = json_string_value(json_object_get(record, key));

    return s && *s ? xstrdup(s) : NULL;
}

static bool node_of(const json_t *record, struct node *ret)
{
    const char *name = json_string_value(json_object_get(record, "name"));
    const char *address = json_string_value(json_object_get(record, "address"));
    const char *state = json_string_value(json_object_get(record, "state"));
    const json_t *flags = json_object_get(record, "flags");

    if (!name || !*name)
        return false;
    *ret = (struct node){
        .name = xstrdup(name),
        .address = xstrdup(address ? address : ""),
        .reason = text_of(record, "reason"),
        .who = text_of(record, "reason_user"),
        .since = json_integer_value(json_object_get(record, "reason_time")),
        .partitions = json_incref(json_object_get(record, "partitions")),
        .usable = json_is_true(json_object_get(record, "usable")),
        .down = (state && streq(state, "down")) || lists(flags, "fail"),
        .silent = lists(flags, "not-responding"),
        .drain = lists(flags, "drain"),
        .booted = json_integer_value(json_object_get(record, "boot")),
    };
    return true;
}

/* News */

static void names_drop(names *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (streq(v->v[i], name)) {
            free(v->v[i]);
            VEC_REMOVE(v, i);
            return;
        }
}

static void names_change(names *v, const char *name, bool was, bool is)
{
    if (is && !was)
        *VEC_PUSH(v) = xstrdup(name);
    else if (was && !is)
        names_drop(v, name);
}

/* was, is: NULL = there is no such node. One that is well and was never heard of is no news. */
static void note(struct sched_nodes *t, const char *name, const struct node *was,
                 const struct node *is)
{
    bool was_down = was && was->down, was_silent = was && was->silent;
    bool down = is && is->down, silent = is && is->silent;

    if (down == was_down && silent == was_silent)
        return;
    names_change(&t->down, name, was_down, down);
    names_change(&t->silent, name, was_silent, silent);
    if (t->news.n >= NEWS_MAX)
        t->all_news = true;
    else
        *VEC_PUSH(&t->news) = xstrdup(name);
}

/* The list */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct node *)a)->name, ((const struct node *)b)->name);
}

static void take_full(struct sched_nodes *t, const json_t *list)
{
    node_vec old = t->nodes, fresh = {0};
    struct node n;
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v)
        if (node_of(v, &n))
            *VEC_PUSH(&fresh) = n;
    if (fresh.n > 0)
        qsort(fresh.v, fresh.n, sizeof(fresh.v[0]), by_name);
    VEC_FOREACH (&old, was)
        if (!find(&fresh, was->name))
            note(t, was->name, was, NULL);
    VEC_FOREACH (&fresh, is)
        note(t, is->name, find(&old, is->name), is);
    nodes_done(&old);
    t->nodes = fresh;
}

static void take_one(struct sched_nodes *t, const json_t *record)
{
    struct node n, *was;
    size_t i;

    if (!node_of(record, &n))
        return;
    i = position(&t->nodes, n.name);
    was = i < t->nodes.n && streq(t->nodes.v[i].name, n.name) ? &t->nodes.v[i] : NULL;
    note(t, n.name, was, &n);
    if (was) {
        node_done(was);
        *was = n;
    } else {
        *VEC_INSERT(&t->nodes, i) = n;
    }
}

static void drop(struct sched_nodes *t, const char *name)
{
    struct node *n = name ? find(&t->nodes, name) : NULL;

    if (!n)
        return;
    note(t, name, n, NULL);
    node_done(n);
    VEC_REMOVE(&t->nodes, (size_t)(n - t->nodes.v));
}

void sched_nodes_take(struct sched_nodes *t, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "nodes");
    size_t i;
    json_t *v;

    if (json_is_true(json_object_get(answer, "full"))) {
        take_full(t, list);
        return;
    }
    json_array_foreach (list, i, v)
        take_one(t, v);
    json_array_foreach (json_object_get(answer, "gone"), i, v)
        drop(t, json_string_value(v));
}

/* Questions */

size_t sched_nodes_count(const struct sched_nodes *t)
{
    return t->nodes.n;
}

const char *sched_nodes_address(const struct sched_nodes *t, const char *name)
{
    const struct node *n = find(&t->nodes, name);

    return n ? n->address : NULL;
}

static usec_t time_of(int64_t seconds)
{
    return seconds > 0 && seconds < EVENT_TIME_MAX / USEC_PER_SEC ? seconds * USEC_PER_SEC : 0;
}

static struct sched_node_word word_of(const struct node *n)
{
    return (struct sched_node_word){.reason = n->reason ? n->reason : "",
                                    .who = n->who ? n->who : "",
                                    .since = time_of(n->since),
                                    .usable = n->usable,
                                    .drain = n->drain,
                                    .booted = time_of(n->booted)};
}

bool sched_nodes_word(const struct sched_nodes *t, const char *name, struct sched_node_word *ret)
{
    const struct node *n = find(&t->nodes, name);

    if (n)
        *ret = word_of(n);
    return n != NULL;
}

void sched_nodes_each(const struct sched_nodes *t,
                      void (*fn)(void *ctx, const char *name, const struct sched_node_word *word),
                      void *ctx)
{
    VEC_FOREACH (&t->nodes, n) {
        struct sched_node_word word = word_of(n);

        fn(ctx, n->name, &word);
    }
}

static bool is_without(const struct intent_facts *without, const char *name)
{
    for (uint32_t i = 0; i < without->n_nodes; i++)
        if (streq(without->nodes[i], name))
            return true;
    return false;
}

static int usable_in(const struct sched_nodes *t, const char *partition, const json_t *exclude,
                     const struct intent_facts *without)
{
    int n = 0;

    VEC_FOREACH (&t->nodes, x)
        n += x->usable && lists(x->partitions, partition) && !lists(exclude, x->name) &&
             !is_without(without, x->name);
    return n;
}

int sched_nodes_usable(const struct sched_nodes *t, const char *partitions, const json_t *exclude,
                       const struct intent_facts *without)
{
    int most = 0;

    if (t->nodes.n == 0)
        return -1;
    for (const char *at = partitions;; at++) {
        size_t length = strcspn(at, ",");
        _cleanup_(freep) char *one = strndup(at, length);
        int n = usable_in(t, one, exclude, without);

        most = n > most ? n : most;
        at += length;
        if (!*at)
            return most;
    }
}

json_t *sched_nodes_listed(const struct sched_nodes *t, const char *hosts,
                           const struct intent_facts *without)
{
    json_t *list = json_array();

    VEC_FOREACH (&t->nodes, x)
        if (hostlist_has(hosts, x->name) && !is_without(without, x->name))
            json_array_append_new(list, json_string(x->name));
    return list;
}

static const char *one_of(const names *v, const char *hosts)
{
    VEC_FOREACH (v, name)
        if (hostlist_has(hosts, *name))
            return *name;
    return "";
}

const char *sched_nodes_down_of(const struct sched_nodes *t, const char *hosts)
{
    return one_of(&t->down, hosts);
}

static bool is_one_of(const char *hosts, const char *name)
{
    return hostlist_has(hosts, name) || hostlist_is_cut(hosts);
}

/* Better to wait for a node in vain than to run beside itself: so one that is not in a list that
 * was cut may be meant, and one of which nothing is known has not come back. */
const char *sched_nodes_silent_of(const struct sched_nodes *t, const char *hosts,
                                  const struct job *j)
{
    const char *before = j ? j->sched.look.lost_node : "", *fenced = "";

    if (*before && !find(&t->nodes, before) && is_one_of(hosts, before))
        return before;
    VEC_FOREACH (&t->silent, name) {
        if (!is_one_of(hosts, *name))
            continue;
        if (!j || !sched_is_fenced(j, *name))
            return *name;
        fenced = *name;
    }
    return fenced;
}

bool sched_nodes_has_news(const struct sched_nodes *t)
{
    return t->all_news || t->news.n > 0;
}

bool sched_nodes_news_of(const struct sched_nodes *t, const char *hosts)
{
    return t->all_news || (t->news.n > 0 && hostlist_is_cut(hosts)) ||
           one_of(&t->news, hosts)[0] != '\0';
}

void sched_nodes_news_done(struct sched_nodes *t)
{
    names_clear(&t->news);
    t->all_news = false;
}
