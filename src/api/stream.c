/* SPDX-License-Identifier: Apache-2.0 */

/* The ring holds the newest events, without a gap, each as the text that every stream sends. What
 * no stream wants is in it without text. A stream whose next event lies before the ring reads a
 * bounded piece of the journal at a time, until it has caught up. */

#include "api/stream.h"

#include "base/str.h"
#include "wire/codec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RING_MAX   1024
#define ROWS_MAX   200
#define SEQS_MAX   ((uint64_t)20000) /* of the journal that are looked at in one go */
#define PIECE_MAX  ((size_t)32 << 10)
#define QUIET_SIGN ":\n\n"

struct entry {
    enum event_kind kind;
    uid_t owner;
    char job[JOB_NAME_LEN];
    char *text; /* NULL: nobody wanted it */
};

struct stream {
    struct streams *all;
    struct asker who;
    struct stream_choice choice;
    uint64_t next; /* seq of the event to be looked at next */
    struct strbuf owed;
    size_t sent; /* of owed */
    bool sleeping, closing, beat;
    void (*wake)(void *ctx);
    void *ctx;
};

struct streams {
    struct store *store;
    VEC(struct stream *) v;
    struct entry ring[RING_MAX]; /* of seqs first..last, at seq % RING_MAX */
    uint64_t first, last;        /* last < first: empty */
    uint64_t kinds;              /* what has text in it */
};

struct streams *streams_new(struct store *store)
{
    struct streams *s = xnew(struct streams);

    s->store = store;
    s->first = 1;
    return s;
}

static void ring_clear(struct streams *s, uint64_t next)
{
    for (uint64_t q = s->first; q <= s->last; q++) {
        free(s->ring[q % RING_MAX].text);
        s->ring[q % RING_MAX].text = NULL;
    }
    s->first = next;
    s->last = next - 1;
}

struct streams *streams_free(struct streams *s)
{
    if (!s)
        return NULL;
    assert(s->v.n == 0);
    ring_clear(s, s->last + 1);
    VEC_DONE(&s->v);
    free(s);
    return NULL;
}

struct stream *stream_new(struct streams *s, const struct asker *who, const struct stream_choice *c,
                          void (*wake)(void *ctx), void *ctx)
{
    struct stream *st;
    size_t same = 0;

    VEC_FOREACH (&s->v, other)
        same += (*other)->who.uid == who->uid;
    if (s->v.n == STREAMS_MAX || (same == STREAMS_PER_USER_MAX && !who->is_operator))
        return NULL;
    if (c->kinds & ~s->kinds) { /* of these the ring has no text */
        ring_clear(s, s->last + 1);
        s->kinds |= c->kinds;
    }
    st = xnew(struct stream);
    *st = (struct stream){.all = s, .who = *who, .choice = *c, .wake = wake, .ctx = ctx};
    st->next = (c->after == UINT64_MAX ? store_model(s->store)->seq : c->after) + 1;
    strbuf_adds(&st->owed, "retry: 2000\n\n");
    *VEC_PUSH(&s->v) = st;
    return st;
}

struct stream *stream_free(struct stream *st)
{
    struct streams *s;

    if (!st)
        return NULL;
    s = st->all;
    for (size_t i = s->v.n; i-- > 0;)
        if (s->v.v[i] == st)
            VEC_REMOVE(&s->v, i);
    if (s->v.n == 0)
        s->kinds = 0;
    strbuf_done(&st->owed);
    free(st);
    return NULL;
}

static void wake(struct stream *st)
{
    if (!st->sleeping)
        return;
    st->sleeping = false;
    st->wake(st->ctx);
}

static char *render(const struct event *e)
{
    json_t *j = codec_event_json(e);
    _cleanup_(freep) char *data = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);

    json_decref(j);
    return xasprintf("id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", e->seq, event_kind_name(e->kind),
                     data ? data : "{}");
}

void streams_happened(struct streams *s, const struct event *e)
{
    struct entry *at;

    if (s->v.n == 0 || e->seq != s->last + 1) {
        ring_clear(s, s->v.n == 0 ? e->seq + 1 : e->seq);
        if (s->v.n == 0)
            return;
    }
    if (s->last - s->first + 1 == RING_MAX) {
        free(s->ring[s->first % RING_MAX].text);
        s->first++;
    }
    s->last = e->seq;
    at = &s->ring[e->seq % RING_MAX];
    *at = (struct entry){.kind = e->kind, .owner = store_owner(s->store, e->job)};
    STR_COPY(at->job, e->job);
    if (s->kinds & UINT64_C(1) << e->kind)
        at->text = render(e);
    VEC_FOREACH (&s->v, st)
        wake(*st);
}

void streams_beat(struct streams *s)
{
    VEC_FOREACH (&s->v, st) {
        (*st)->beat = (*st)->sleeping;
        wake(*st);
    }
}

void streams_close(struct streams *s)
{
    VEC_FOREACH (&s->v, st) {
        (*st)->closing = true;
        wake(*st);
    }
}

static bool wants(const struct stream *st, enum event_kind kind, const char *job, uid_t owner)
{
    if (!(st->choice.kinds & UINT64_C(1) << kind))
        return false;
    if (st->choice.job[0] && !streq(st->choice.job, job))
        return false;
    return access_sees(&st->who, owner);
}

static void read_ring(struct stream *st)
{
    const struct streams *s = st->all;

    while (st->next <= s->last && st->owed.len < PIECE_MAX) {
        const struct entry *e = &s->ring[st->next++ % RING_MAX];

        if (e->text && wants(st, e->kind, e->job, e->owner))
            strbuf_adds(&st->owed, e->text);
    }
}

static void take_row(struct stream *st, const struct event *e)
{
    _cleanup_(freep) char *text = NULL;

    st->next = e->seq + 1;
    if (!wants(st, e->kind, e->job, store_owner(st->all->store, e->job)))
        return;
    text = render(e);
    strbuf_adds(&st->owed, text);
}

/* What lies before `end`. A journal that cannot be read ends the stream: it is asked for again. */
static void read_journal(struct stream *st, uint64_t end)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    struct journal_choice c = {.after = st->next - 1, .kinds = st->choice.kinds, .below = end};
    int r;

    if (c.below > st->next + SEQS_MAX)
        c.below = st->next + SEQS_MAX;
    if (st->choice.kinds == (UINT64_C(1) << EVENT_MAX) - 1)
        c.kinds = 0;
    r = store_select(st->all->store, &c, &cursor, NULL);
    for (int rows = 0; r >= 0; rows++) {
        if (rows == ROWS_MAX || st->owed.len >= PIECE_MAX)
            return;
        r = journal_next(cursor, event, NULL);
        if (r <= 0)
            break;
        take_row(st, event);
    }
    st->closing |= r < 0;
    st->next = c.below;
}

static void fill(struct stream *st)
{
    const struct streams *s = st->all;
    uint64_t last = store_model(s->store)->seq;

    strbuf_reset(&st->owed);
    st->sent = 0;
    if (s->last >= s->first && st->next >= s->first) {
        read_ring(st);
    } else if (st->next <= last) {
        read_journal(st, s->last >= s->first ? s->first : last + 1);
        if (st->owed.len == 0)
            strbuf_adds(&st->owed, QUIET_SIGN); /* nothing for these eyes; go on */
    }
    if (st->owed.len == 0 && st->beat)
        strbuf_adds(&st->owed, QUIET_SIGN);
    st->beat = false;
}

ssize_t stream_read(struct stream *st, char *buf, size_t size)
{
    size_t n;

    if (st->sent == st->owed.len && !st->closing)
        fill(st);
    n = st->owed.len - st->sent;
    if (n == 0) {
        st->sleeping = !st->closing;
        return st->closing ? -ENOENT : 0;
    }
    if (n > size)
        n = size;
    memcpy(buf, st->owed.s + st->sent, n);
    st->sent += n;
    return (ssize_t)n;
}
