/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/gather.h"

#include "base/hash.h"
#include "base/str.h"

#include <assert.h>
#include <sys/types.h>

/* Each stream counts its steps forward (`advance`); a hit remembers the count at which it was
 * seen, and when the same line comes again at a higher count the hit starts anew. So at the end
 * the hits at the final count are the terminal episode (algorithms b.2.3), and the older ones tell
 * what the job has survived.
 *
 * Bounds: when the table of hits is full, one that was survived makes room, noise first; only when
 * all of them are current are further ones counted and dropped, because the first error matters
 * and not the loudest. */

const struct stream *evidence_stream(const struct evidence *e, uint32_t file)
{
    return &e->streams.v[file < STREAMS_MAX ? file : STREAMS_MAX - 1];
}

const struct signature_facts *evidence_signature(const struct evidence *e, const char *id)
{
    VEC_FOREACH (&e->signatures, g)
        if (streq(g->id, id))
            return g;
    return NULL;
}

static struct signature_facts *signature_of(struct evidence *e, const char *id)
{
    struct signature_facts *g = (struct signature_facts *)evidence_signature(e, id);

    if (g || e->signatures.n == SIGNATURES_MAX)
        return g;
    g = VEC_PUSH(&e->signatures);
    STR_COPY(g->id, id);
    return g;
}

static void note_signature(struct signature_facts *g, const struct signal *s, int64_t advance)
{
    g->count++;
    if (g->advance < advance) {
        g->advance = advance;
        intset_clear(&g->ranks);
    }
    if (s->who.rank != RANK_NONE)
        intset_add(&g->ranks, s->who.rank);
}

/* Lines of one signature and entity are one hit; a job's lines only when they read the same but
 * for their numbers, because one signature may stand for many texts. */
static uint64_t hit_key(const struct signal *s)
{
    uint64_t h = HASH_INIT;

    h = hash_bytes(h, s->signature, strlen(s->signature) + 1);
    h = hash_bytes(h, &s->file, sizeof(s->file));
    h = hash_bytes(h, &s->who.rank, sizeof(s->who.rank));
    h = hash_bytes(h, s->who.node, strlen(s->who.node) + 1);
    h = hash_bytes(h, s->who.device, strlen(s->who.device) + 1);
    h = hash_bytes(h, s->who.peer, strlen(s->who.peer) + 1);
    h = hash_bytes(h, s->who.tasks, strlen(s->who.tasks) + 1);
    return s->layer == LAYER_JOB ? fingerprint_template(h, s) : h;
}

static struct hit *find_hit(struct evidence *e, uint64_t key)
{
    assert(e->keys.n == e->hits.n);
    VEC_FOREACH (&e->keys, k)
        if (*k == key)
            return &e->hits.v[k - e->keys.v];
    return NULL;
}

static bool is_survived(const struct evidence *e, const struct hit *h)
{
    return h->advance < evidence_stream(e, h->s.file)->advance;
}

static bool is_weak(enum role role)
{
    return role != ROLE_ROOT && role != ROLE_SYMPTOM;
}

/* How willingly a hit is given up: survived weak ones, survived others, current weak ones; 0 =
 * not at all. */
static int eviction_rank(const struct evidence *e, const struct hit *h)
{
    if (is_survived(e, h))
        return is_weak(h->s.role) ? 3 : 2;
    return is_weak(h->s.role) ? 1 : 0;
}

/* A place in the full table, or -1. A flood must not cost a search for each of its lines: after one
 * in vain, weak lines are dropped until there was progress again. */
static ssize_t make_room(struct evidence *e, const struct signal *s)
{
    size_t victim = 0;
    int best = 0;

    if (is_weak(s->role) && e->full_at == e->advances)
        return -1;
    for (size_t i = 0; i < e->hits.n && best < 3; i++) {
        int rank = eviction_rank(e, &e->hits.v[i]);

        if (rank > best) {
            best = rank;
            victim = i;
        }
    }
    if (best <= 1)
        e->full_at = e->advances;
    if (best == 0 || (best == 1 && is_weak(s->role)))
        return -1;
    return (ssize_t)victim;
}

static struct hit *new_hit(struct evidence *e, const struct signal *s)
{
    struct signature_facts *g;
    ssize_t i;

    assert(e->keys.n == e->hits.n && e->hits.n <= HITS_MAX);
    if (e->hits.n < HITS_MAX) {
        VEC_PUSH(&e->keys);
        return VEC_PUSH(&e->hits);
    }
    i = make_room(e, s);
    if (i < 0)
        return NULL;
    g = signature_of(e, e->hits.v[i].s.signature);
    if (g && g->kept > 0)
        g->kept--;
    memset(&e->hits.v[i], 0, sizeof(e->hits.v[i]));
    return &e->hits.v[i];
}

static void restart_hit(struct evidence *e, struct hit *h, const struct signal *s,
                        const struct stream *stream, usec_t now)
{
    if (now != USEC_UNKNOWN && (e->hits_us == USEC_UNKNOWN || now > e->hits_us))
        e->hits_us = now;
    h->s = *s;
    h->order = e->order;
    h->time_us = now;
    h->place_us = now != USEC_UNKNOWN ? now : e->hits_us;
    h->advance = stream->advance;
}

static struct hit *open_hit(struct evidence *e, const struct signal *s, uint64_t key, usec_t now)
{
    struct signature_facts *g = signature_of(e, s->signature);
    uint32_t most = s->role == ROLE_ROOT ? ROOTS_PER_SIGNATURE : HITS_PER_SIGNATURE;
    struct hit *h = g && g->kept >= most ? NULL : new_hit(e, s);

    if (!h) {
        e->dropped++;
        return NULL;
    }
    h->key = key;
    h->advance = -1;
    h->first_us = now;
    h->begun_us = s->uptime ? s->time_us : now;
    e->keys.v[h - e->hits.v] = key;
    if (g)
        g->kept++;
    return h;
}

/* Steps do not refute a report of slowness, or of numbers that are lost: while it comes again and
 * again, the first counts. */
#define LASTING_STEPS 100 /* between two of them, at most */

static bool is_lasting(const struct signal *s)
{
    return s->straggler || s->cause == CAUSE_NUMERICAL;
}

void gather_hit(struct evidence *e, const struct signal *s, const struct stream *stream, usec_t now)
{
    struct signature_facts *g = signature_of(e, s->signature);
    uint64_t key = hit_key(s);
    struct hit *h = find_hit(e, key);

    if (g)
        note_signature(g, s, stream->advance);
    if (!h)
        h = open_hit(e, s, key, now);
    if (!h)
        return;
    if (h->count == 0 || stream->advance - h->advance > (is_lasting(s) ? LASTING_STEPS : 0))
        restart_hit(e, h, s, stream, now);
    else
        h->advance = stream->advance;
    h->last_us = now;
    if (h->begun_us != USEC_UNKNOWN && (s->uptime || now != USEC_UNKNOWN))
        h->lasted = (s->uptime ? s->time_us : now) - h->begun_us;
    h->last_order = e->order;
    h->count++;
}

static bool may_be_same(const char *a, const char *b)
{
    return !*a || !*b || streq(a, b);
}

static bool is_cleared_by(const struct hit *h, const struct signal *s)
{
    return h->s.file == s->file && signature_matches(s->clears, h->s.signature) &&
           may_be_same(h->s.who.node, s->who.node) && may_be_same(h->s.who.peer, s->who.peer) &&
           may_be_same(h->s.who.device, s->who.device);
}

static bool same_family(const char *a, const char *b)
{
    size_t n = strcspn(a, ".");

    return strncmp(a, b, n) == 0 && b[n] == '.';
}

bool evidence_healed(const struct evidence *e, const char *signature, const char *node)
{
    for (uint32_t i = 0; i < e->n_healed; i++)
        if (same_family(e->healed[i].what, signature) && may_be_same(e->healed[i].node, node))
            return true;
    return false;
}

static void note_healed(struct evidence *e, const struct signal *s)
{
    struct healed *h;

    for (uint32_t i = 0; i < e->n_healed; i++)
        if (same_family(e->healed[i].what, s->clears) && streq(e->healed[i].node, s->who.node))
            return;
    if (e->n_healed == HEALED_MAX)
        return;
    h = &e->healed[e->n_healed++];
    STR_COPY(h->what, s->clears);
    STR_COPY(h->node, s->who.node);
}

/* "The server answers again": what was said of it before is no evidence any more. */
void gather_cleared(struct evidence *e, const struct signal *s)
{
    size_t kept = 0;

    note_healed(e, s);
    for (size_t i = 0; i < e->hits.n; i++) {
        struct signature_facts *g;

        if (!is_cleared_by(&e->hits.v[i], s)) {
            if (kept < i)
                e->hits.v[kept] = e->hits.v[i];
            e->keys.v[kept++] = e->keys.v[i];
            continue;
        }
        g = signature_of(e, e->hits.v[i].s.signature);
        if (g && g->kept > 0)
            g->kept--;
    }
    e->hits.n = e->keys.n = kept;
}
