/* SPDX-License-Identifier: Apache-2.0 */

/* A burst is open until no record of it came for BURST_APART. One that is closed stays in the list
 * as a trouble that was told, until the log says that it is over or others need its place. While it
 * is open, that it is over is not told yet: a port that flaps is one burst.
 *
 * The file is written when a burst begins or ends, never for a further record of it: together with
 * the number of the last record that it is about, it lets a restart read the rest again, and count
 * it the same way. */

#include "agent/troubles.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/node_message.h"

#include <fcntl.h>
#include <string.h>

#define VERSION    1
#define OVERS_MAX  32
#define FILE_BYTES ((size_t)1 << 20)

struct trouble {
    struct node_fact fact; /* of the burst's first record */
    uint32_t count;
    usec_t last_us; /* by the records' clock */
    usec_t heard;   /* monotonic */
    bool open;
};

struct troubles {
    char *path, *boot;
    troubles_tell_fn tell;
    void *ctx;
    VEC(struct trouble) list;
    VEC(struct node_fact) overs; /* to be told when their bursts are closed */
    uint64_t untold;
    bool news; /* that the file does not have */
};

static bool is_same(const struct node_fact *a, const struct node_fact *b)
{
    const struct signal *s = &a->signal, *t = &b->signal;

    return a->code == b->code && a->job == b->job && streq(s->signature, t->signature) &&
           streq(s->who.peer, t->who.peer);
}

/* One that names no device is about the same as one that does, a moment before: the driver says in
 * several records what happened. */
static struct trouble *find(struct troubles *t, const struct node_fact *f)
{
    struct trouble *near = NULL;

    VEC_FOREACH (&t->list, x) {
        if (!is_same(&x->fact, f))
            continue;
        if (streq(x->fact.signal.who.device, f->signal.who.device))
            return x;
        if (x->open && f->signal.who.device[0] == '\0')
            near = x;
    }
    return near;
}

static void close_burst(struct troubles *t, struct trouble *x)
{
    struct node_fact all = x->fact;

    x->open = false;
    t->news = true;
    all.count = x->count;
    if (x->count > 1)
        t->tell(t->ctx, &all);
}

static void open_burst(struct troubles *t, struct trouble *x, const struct node_fact *f,
                       usec_t boot_us, usec_t now)
{
    *x = (struct trouble){.fact = *f, .count = 1, .last_us = boot_us, .heard = now, .open = true};
    x->fact.count = 1;
    t->news = true;
    t->tell(t->ctx, &x->fact);
}

static int weight_of(const struct trouble *x)
{
    return x->open ? 1 + 2 * (int)x->fact.isolation + (x->fact.code > 0) : 0;
}

/* A place for it: of one that is closed, or of less weight. NULL: there is none. */
static struct trouble *make_room(struct troubles *t, const struct node_fact *f)
{
    const struct trouble next = {.fact = *f, .open = true};
    struct trouble *least = NULL;

    if (t->list.n < TROUBLES_MAX)
        return VEC_PUSH(&t->list);
    VEC_FOREACH (&t->list, x)
        if (!least || weight_of(x) < weight_of(least) ||
            (weight_of(x) == weight_of(least) && x->heard < least->heard))
            least = x;
    if (weight_of(least) >= weight_of(&next)) {
        t->untold++;
        return NULL;
    }
    if (least->open)
        close_burst(t, least);
    return least;
}

/* By a signature or a family, of the same device and other end where both name one. */
static bool is_over(const struct node_fact *over, const struct node_fact *f)
{
    const struct entity *a = &over->signal.who, *b = &f->signal.who;

    return signature_matches(over->signal.clears, f->signal.signature) &&
           (!a->device[0] || !b->device[0] || streq(a->device, b->device)) &&
           (!a->peer[0] || !b->peer[0] || streq(a->peer, b->peer));
}

static void forget_overs(struct troubles *t, const struct node_fact *f)
{
    for (size_t i = t->overs.n; i-- > 0;)
        if (is_over(&t->overs.v[i], f)) {
            VEC_REMOVE(&t->overs, i);
            t->news = true;
        }
}

void troubles_add(struct troubles *t, const struct node_fact *f, usec_t boot_us, usec_t now)
{
    struct trouble *x = find(t, f);

    forget_overs(t, f);
    if (x && x->open && boot_us - x->last_us < BURST_APART) {
        x->count += x->count < UINT32_MAX;
        x->last_us = usec_max(x->last_us, boot_us);
        x->heard = now;
        return;
    }
    if (x && x->open)
        close_burst(t, x);
    if (!x)
        x = make_room(t, f);
    if (x)
        open_burst(t, x, f, boot_us, now);
}

/* Whether any of what it is about has an open burst; *ret_any: whether there is any. */
static bool is_open(const struct troubles *t, const struct node_fact *over, bool *ret_any)
{
    bool open = false;

    *ret_any = false;
    VEC_FOREACH (&t->list, x) {
        if (!is_over(over, &x->fact))
            continue;
        *ret_any = true;
        open |= x->open;
    }
    return open;
}

static void tell_over(struct troubles *t, const struct node_fact *over)
{
    for (size_t i = t->list.n; i-- > 0;)
        if (is_over(over, &t->list.v[i].fact))
            VEC_REMOVE(&t->list, i);
    t->news = true;
    t->tell(t->ctx, over);
}

void troubles_over(struct troubles *t, const struct node_fact *f, usec_t now)
{
    struct node_fact over = *f;
    bool any, open;

    over.cleared = true;
    over.isolation = ISOLATION_NONE;
    over.count = 1;
    open = is_open(t, &over, &any);
    if (!any)
        return;
    if (!open) {
        tell_over(t, &over);
        return;
    }
    VEC_FOREACH (&t->overs, x)
        if (is_same(x, &over) && streq(x->signal.who.device, over.signal.who.device))
            return;
    if (t->overs.n == OVERS_MAX)
        VEC_REMOVE(&t->overs, 0);
    *VEC_PUSH(&t->overs) = over;
    t->news = true;
}

usec_t troubles_settle(struct troubles *t, usec_t now)
{
    usec_t due = USEC_NEVER;
    bool any;

    VEC_FOREACH (&t->list, x) {
        if (x->open && now >= x->heard + BURST_APART)
            close_burst(t, x);
        else if (x->open)
            due = usec_min(due, x->heard + BURST_APART);
    }
    for (size_t i = 0; i < t->overs.n;) {
        struct node_fact over = t->overs.v[i];

        if (is_open(t, &over, &any)) {
            i++;
            continue;
        }
        VEC_REMOVE(&t->overs, i);
        if (any)
            tell_over(t, &over);
    }
    return due;
}

/* The file */

static json_t *fact_json(const struct node_fact *f)
{
    struct node_message m = {.kind = NODE_MESSAGE_FACT, .fact = *f};

    STR_COPY(m.node, f->node);
    return node_message_to_json(&m);
}

static bool read_fact(const json_t *j, struct node_fact *ret)
{
    struct node_message m;

    if (node_message_from_json(j, &m, NULL) < 0 || m.kind != NODE_MESSAGE_FACT)
        return false;
    *ret = m.fact;
    return true;
}

static json_t *state_json(const struct troubles *t, int64_t seq)
{
    json_t *list = json_array(), *overs = json_array();

    VEC_FOREACH (&t->list, x)
        json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:b}", "fact", fact_json(&x->fact),
                                              "count", (json_int_t)x->count, "last",
                                              (json_int_t)x->last_us, "open", x->open));
    VEC_FOREACH (&t->overs, over)
        json_array_append_new(overs, fact_json(over));
    return json_pack("{s:i, s:s, s:I, s:o, s:o}", "v", VERSION, "boot", t->boot, "seq",
                     (json_int_t)seq, "troubles", list, "over", overs);
}

int troubles_save(struct troubles *t, int64_t seq, bool always)
{
    _cleanup_(freep) char *text = NULL;
    json_t *j;
    int r;

    if (!t->path || (!t->news && !always))
        return 0;
    j = state_json(t, seq);
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    r = file_replace(AT_FDCWD, t->path, text, strlen(text));
    t->news = r < 0;
    return r;
}

static void recall_trouble(struct troubles *t, const json_t *j, usec_t now)
{
    int64_t count = json_integer_value(json_object_get(j, "count"));
    int64_t last = json_integer_value(json_object_get(j, "last"));
    struct trouble x = {.heard = now, .open = json_is_true(json_object_get(j, "open"))};

    if (t->list.n == TROUBLES_MAX || !read_fact(json_object_get(j, "fact"), &x.fact) || count < 1 ||
        count > UINT32_MAX || last < 0 || last > INT64_MAX / 2)
        return;
    x.count = (uint32_t)count;
    x.last_us = last;
    *VEC_PUSH(&t->list) = x;
}

int64_t troubles_recall(struct troubles *t, usec_t now)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    json_t *j = NULL, *item;
    const char *boot;
    int64_t seq = -1;
    size_t i;

    if (t->path && file_read(t->path, FILE_BYTES, &text, NULL) == 0)
        j = json_loadb(strbuf_str(&text), text.len, 0, NULL);
    boot = json_string_value(json_object_get(j, "boot"));
    if (json_integer_value(json_object_get(j, "v")) == VERSION && boot && streq(boot, t->boot)) {
        json_array_foreach (json_object_get(j, "troubles"), i, item)
            recall_trouble(t, item, now);
        json_array_foreach (json_object_get(j, "over"), i, item) {
            struct node_fact over;

            if (t->overs.n < OVERS_MAX && read_fact(item, &over))
                *VEC_PUSH(&t->overs) = over;
        }
        seq = json_integer_value(json_object_get(j, "seq"));
    }
    json_decref(j);
    return seq;
}

struct troubles *troubles_new(const char *path, const char *boot, troubles_tell_fn tell, void *ctx)
{
    struct troubles *t = xnew(struct troubles);

    t->path = path ? xstrdup(path) : NULL;
    t->boot = xstrdup(boot);
    t->tell = tell;
    t->ctx = ctx;
    return t;
}

struct troubles *troubles_free(struct troubles *t)
{
    if (!t)
        return NULL;
    VEC_DONE(&t->list);
    VEC_DONE(&t->overs);
    free(t->path);
    free(t->boot);
    free(t);
    return NULL;
}

uint64_t troubles_untold(const struct troubles *t)
{
    return t->untold;
}
