/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/evidence.h"

#include "base/hash.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/types.h>

/* Gathering. Nothing is judged here but one thing: what was followed by progress of its own file.
 * Each stream counts its steps forward (`advance`); a hit remembers the count at which it was
 * seen, and when the same line comes again at a higher count the hit starts anew. So at the end
 * the hits at the final count are the terminal episode (algorithms b.2.3), and the older ones tell
 * what the job has survived.
 *
 * Bounds: when the table of hits is full, one that was survived makes room, noise first; only when
 * all of them are current are further ones counted and dropped, because the first error matters
 * and not the loudest. */

struct evidence *evidence_new(void)
{
    struct evidence *e = xnew(struct evidence);

    e->pace.sum = (struct progress_summary){.first_step = STEP_NONE,
                                            .last_step = STEP_NONE,
                                            .total_steps = NUMBER_NONE,
                                            .checkpoint_step = STEP_NONE,
                                            .median_step = NUMBER_NONE};
    e->full_at = UINT64_MAX;
    e->pace.last_us = e->last_us = e->finish_us = USEC_UNKNOWN;
    e->silence_first_us = e->silence_end_us = USEC_UNKNOWN;
    return e;
}

static void free_series(struct series **s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(s[i]);
}

struct evidence *evidence_free(struct evidence *e)
{
    if (!e)
        return NULL;
    VEC_FOREACH (&e->signatures, g)
        intset_done(&g->ranks);
    VEC_DONE(&e->signatures);
    VEC_DONE(&e->hits);
    VEC_DONE(&e->keys);
    VEC_DONE(&e->streams);
    VEC_DONE(&e->tracks);
    VEC_DONE(&e->exits);
    collectives_done(&e->waits);
    free_series(e->loss, e->n_loss);
    free_series(e->time, e->n_time);
    free_series(e->rate, e->n_rate);
    roster_done(&e->roster);
    intset_done(&e->stopped);
    intset_done(&e->blocked);
    free(e);
    return NULL;
}

static struct stream *stream_of(struct evidence *e, uint32_t file)
{
    if (file >= STREAMS_MAX)
        file = STREAMS_MAX - 1;
    while (e->streams.n <= file)
        VEC_PUSH(&e->streams)->time_us = USEC_UNKNOWN;
    return &e->streams.v[file];
}

/* ---- signatures and hits ---- */

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

static uint64_t hit_key(const struct signal *s)
{
    uint64_t h = HASH_INIT;

    h = hash_bytes(h, s->signature, strlen(s->signature) + 1);
    h = hash_bytes(h, &s->file, sizeof(s->file));
    h = hash_bytes(h, &s->who.rank, sizeof(s->who.rank));
    h = hash_bytes(h, s->who.node, strlen(s->who.node) + 1);
    h = hash_bytes(h, s->who.device, strlen(s->who.device) + 1);
    return hash_bytes(h, s->who.peer, strlen(s->who.peer) + 1);
}

static struct hit *find_hit(struct evidence *e, uint64_t key)
{
    VEC_FOREACH (&e->keys, k)
        if (*k == key)
            return &e->hits.v[k - e->keys.v];
    return NULL;
}

static bool is_survived(const struct evidence *e, const struct hit *h)
{
    uint32_t file = h->s.file < STREAMS_MAX ? h->s.file : STREAMS_MAX - 1;

    return h->advance < e->streams.v[file].advance;
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

static void restart_hit(struct hit *h, const struct signal *s, const struct stream *stream,
                        uint64_t order, usec_t now)
{
    h->s = *s;
    h->order = order;
    h->time_us = now;
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
    e->keys.v[h - e->hits.v] = key;
    if (g)
        g->kept++;
    return h;
}

static void add_hit(struct evidence *e, const struct signal *s, const struct stream *stream,
                    usec_t now)
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
    if (h->advance < stream->advance)
        restart_hit(h, s, stream, e->order, now);
    h->last_us = now;
    h->last_order = e->order;
    h->count++;
}

/* ---- trouble that is over ---- */

static bool names_signature(const char *pattern, const char *signature)
{
    size_t n = strlen(pattern);

    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, signature, n - 1) == 0;
    return streq(pattern, signature);
}

static bool may_be_same(const char *a, const char *b)
{
    return !*a || !*b || streq(a, b);
}

static bool is_cleared_by(const struct hit *h, const struct signal *s)
{
    return h->s.file == s->file && names_signature(s->clears, h->s.signature) &&
           may_be_same(h->s.who.node, s->who.node) && may_be_same(h->s.who.peer, s->who.peer) &&
           may_be_same(h->s.who.device, s->who.device);
}

/* "The server answers again": what was said of it before is no evidence any more. */
static void forget_cleared(struct evidence *e, const struct signal *s)
{
    for (size_t i = e->hits.n; i-- > 0;) {
        struct signature_facts *g;

        if (!is_cleared_by(&e->hits.v[i], s))
            continue;
        g = signature_of(e, e->hits.v[i].s.signature);
        if (g && g->kept > 0)
            g->kept--;
        VEC_REMOVE(&e->hits, i);
        VEC_REMOVE(&e->keys, i);
    }
}

/* ---- exits ---- */

#define NAMED_CONFIDENCE 50
#define REPORT_LINES     3 /* a launcher's block: gap between two lines that belong together */

/* Whether the line adds to the report that is being read: it repeats nothing of it. */
static bool continues_report(const struct exit_seen *x, const struct signal *s, bool has_code)
{
    return x->file == s->file && s->line != 0 && s->line - x->last_line <= REPORT_LINES &&
           streq(x->signature, s->signature) == false &&
           (x->who.rank == RANK_NONE || s->who.rank == RANK_NONE) &&
           (!*x->who.node || !*s->who.node) && !(x->has_code && has_code);
}

static void merge_entity(struct entity *dst, const struct entity *src)
{
    if (dst->rank == RANK_NONE)
        dst->rank = src->rank;
    if (dst->local_rank == RANK_NONE)
        dst->local_rank = src->local_rank;
    if (!*dst->node)
        STR_COPY(dst->node, src->node);
    if (!*dst->device)
        STR_COPY(dst->device, src->device);
}

static struct exit_seen *open_report(struct evidence *e, const struct signal *s)
{
    struct exit_seen *x;

    if (e->exits.n == EXITS_MAX)
        return NULL;
    x = VEC_PUSH(&e->exits);
    x->who = (struct entity){.rank = RANK_NONE, .local_rank = RANK_NONE};
    x->provenance = s->provenance;
    x->layer = s->layer;
    x->file = s->file;
    x->line = s->line;
    x->order = e->order;
    STR_COPY(x->signature, s->signature);
    STR_COPY(x->text, s->text);
    return x;
}

static bool is_same_end(const struct exit_seen *x, const struct exit_fact *f)
{
    return x->has_code && x->code == f->code && x->signal == f->signal;
}

/* The same process told of twice, by the agent's log line and in the launcher's summary: its pid
 * says so, or, where it was cut off, its place on the node and its end. */
static struct exit_seen *report_of_process(struct evidence *e, const struct signal *s,
                                           const struct exit_seen *told)
{
    VEC_FOREACH (&e->exits, x) {
        if (x == told || x->file != s->file)
            continue;
        if (s->exit.pid != 0 && x->pid == s->exit.pid)
            return x;
        if (x->who.local_rank != RANK_NONE && x->who.local_rank == told->who.local_rank &&
            (x->who.rank == RANK_NONE || told->who.rank == RANK_NONE) && is_same_end(x, &s->exit))
            return x;
    }
    return NULL;
}

static void set_exit(struct exit_seen *x, const struct exit_fact *f)
{
    x->has_code = true;
    x->pid = f->pid;
    x->code = f->code;
    x->signal = f->signal;
}

static void add_report(struct evidence *e, const struct signal *s, const struct stream *stream,
                       usec_t now)
{
    bool has_code = s->kind == SIGNAL_EXIT;
    struct exit_seen *x = e->exits.n ? &e->exits.v[e->exits.n - 1] : NULL, *same = NULL;

    if (!x || !continues_report(x, s, has_code))
        x = open_report(e, s);
    if (!x)
        return;
    x->last_line = s->line;
    x->advance = stream->advance;
    x->time_us = now;
    if (x->who.rank == RANK_NONE && s->who.rank != RANK_NONE) {
        x->line = s->line;
        STR_COPY(x->text, s->text);
    }
    x->named |= s->blame == BLAME_RANK && s->confidence >= NAMED_CONFIDENCE;
    merge_entity(&x->who, &s->who);
    if (has_code) {
        same = report_of_process(e, s, x);
        set_exit(x, &s->exit);
    }
    if (same) {
        merge_entity(&same->who, &x->who);
        x->has_code = false; /* one process is one exit */
    }
    roster_add(&e->roster, &x->who);
}

/* ---- progress ---- */

static struct track *track_of(struct evidence *e, const struct signal *s)
{
    struct track *t;

    VEC_FOREACH (&e->tracks, have)
        if (have->file == s->file && streq(have->signature, s->signature))
            return have;
    if (e->tracks.n == TRACKS_MAX)
        return &e->tracks.v[TRACKS_MAX - 1];
    t = VEC_PUSH(&e->tracks);
    *t = (struct track){.file = s->file, .highest = STEP_NONE, .total = NUMBER_NONE};
    STR_COPY(t->signature, s->signature);
    return t;
}

#define LATE_LINES 4 /* how far behind a slow rank may print the step that others have left */

/* Whether the step leads further than any rank has been. A counter that falls far back counts a
 * new epoch; one that is a little behind is another rank's line. */
static bool track_advances(struct track *t, int64_t step)
{
    int64_t stride = t->stride > 0 ? t->stride : 1;

    if (step == STEP_NONE || t->highest == STEP_NONE) {
        t->highest = step;
        return true;
    }
    if (step > t->highest) {
        t->stride = step - t->highest;
        t->highest = step;
        return true;
    }
    if (step >= t->highest - LATE_LINES * stride)
        return false;
    t->resets++;
    t->highest = step;
    return true;
}

static struct series *series_for(struct series **list, uint32_t *n, const struct series_rule *rule,
                                 const struct signal *s)
{
    for (uint32_t i = 0; i < *n; i++)
        if (streq(list[i]->signature, s->signature))
            return list[i]->rank == s->who.rank && list[i]->file == s->file ? list[i] : NULL;
    if (*n == SERIES_MAX)
        return NULL;
    list[*n] = xnew(struct series);
    series_init(list[*n], rule, s);
    return list[(*n)++];
}

static void feed_series(struct series **list, uint32_t *n, const struct series_rule *rule,
                        int64_t value, const struct signal *s)
{
    struct series *series;

    if (value == NUMBER_NONE)
        return;
    series = series_for(list, n, rule, s);
    if (series)
        series_add(series, value, s);
}

static void window_push(struct series_window *w, int64_t v)
{
    w->v[w->next] = v;
    w->next = (w->next + 1) % SERIES_WINDOW;
    if (w->n < SERIES_WINDOW)
        w->n++;
}

/* Lines may be far apart, or sampled: what is learned is the time of one step. */
static void note_gap(struct pace *p, const struct signal *s, usec_t now)
{
    usec_t gap;
    int64_t steps = 1;

    if (now == USEC_UNKNOWN || p->last_us == USEC_UNKNOWN || now <= p->last_us)
        return;
    gap = now - p->last_us;
    if (s->step.step != STEP_NONE && p->last.step != STEP_NONE && s->step.step > p->last.step)
        steps = s->step.step - p->last.step;
    window_push(&p->gap, gap / steps);
    if (gap > p->max_gap)
        p->max_gap = gap;
}

/* Whether a progress line leads further than the last one: files of one job are read one after
 * the other, so across files only clocks or step numbers can tell. */
static bool is_latest(const struct pace *p, const struct signal *s, usec_t now)
{
    if (!p->any || s->file == p->last.file)
        return true;
    if (now != USEC_UNKNOWN && p->last_us != USEC_UNKNOWN)
        return now >= p->last_us;
    return s->step.step > p->last.step;
}

/* Silence is counted anew from the last sign of work. */
static void end_silence(struct evidence *e)
{
    e->silence_first_us = e->silence_end_us = USEC_UNKNOWN;
    e->silence_lines = 0;
}

static struct sample sample_at(const struct signal *s)
{
    struct sample p = {.value = METRIC_NAN,
                       .step = s->step.step,
                       .time_us = s->time_us,
                       .file = s->file,
                       .line = s->line,
                       .offset = s->offset};

    STR_COPY(p.text, s->text);
    return p;
}

static void note_progress_line(struct evidence *e, const struct signal *s, usec_t now)
{
    struct pace *p = &e->pace;

    if (!is_latest(p, s, now))
        return;
    note_gap(p, s, now);
    p->last = sample_at(s);
    if (now != USEC_UNKNOWN)
        p->last_us = now;
    p->any = true;
    e->phase = PHASE_STEADY;
    end_silence(e);
}

/* Waits and ends that the same file reported before this step are over. */
static void forget_survived(struct evidence *e, uint32_t file)
{
    if (e->waits.reporters > 0)
        collectives_forget(&e->waits, file);
    if (e->finished && e->finish.file == file)
        e->finished = false;
    intset_clear(&e->stopped);
    intset_clear(&e->blocked);
}

static void note_gradient(struct pace *p, const struct signal *s)
{
    bool nan = s->step.grad_norm == METRIC_NAN || s->step.grad_norm == METRIC_INF;

    if (s->step.grad_norm == NUMBER_NONE)
        return;
    if (nan && p->nan_run == 0)
        p->nan = sample_at(s);
    p->nan_run = nan ? p->nan_run + 1 : 0;
}

static void note_step_numbers(struct pace *p, const struct step_fact *f, bool advanced)
{
    p->sum.steps_seen++;
    if (f->step != STEP_NONE) {
        if (p->sum.first_step == STEP_NONE)
            p->sum.first_step = f->step;
        if (advanced)
            p->sum.last_step = f->step;
    }
    if (f->total != NUMBER_NONE)
        p->sum.total_steps = f->total;
    p->skipped_run = f->skipped ? p->skipped_run + 1 : 0;
}

static void add_step(struct evidence *e, const struct signal *s, struct stream *stream, usec_t now)
{
    struct track *t = track_of(e, s);
    bool advanced = track_advances(t, s->step.step);

    if (s->step.total != NUMBER_NONE)
        t->total = s->step.total;
    note_step_numbers(&e->pace, &s->step, advanced);
    if (!advanced)
        return;
    stream->advance++;
    e->advances++;
    note_progress_line(e, s, now);
    forget_survived(e, s->file);
    note_gradient(&e->pace, s);
    if (s->step.duration != NUMBER_NONE)
        window_push(&e->pace.step, s->step.duration);
    feed_series(e->loss, &e->n_loss, &series_loss, s->step.loss, s);
    feed_series(e->time, &e->n_time, &series_step_time, s->step.duration, s);
    if (s->step.rate != NUMBER_NONE && s->step.rate > 0)
        feed_series(e->rate, &e->n_rate, &series_step_time, -s->step.rate, s);
}

/* ---- the rest ---- */

static void add_checkpoint(struct evidence *e, const struct signal *s)
{
    if (s->checkpoint.edge == EDGE_BEGIN)
        e->phase = PHASE_CHECKPOINT;
    else if (e->phase == PHASE_CHECKPOINT)
        e->phase = PHASE_STEADY;
    if (s->checkpoint.edge == EDGE_END && s->checkpoint.step != STEP_NONE)
        e->pace.sum.checkpoint_step = s->checkpoint.step;
}

/* A sample of the whole job says how many are halted, one of a rank's process who is. */
static void add_activity(struct evidence *e, const struct signal *s, const struct stream *stream,
                         usec_t now)
{
    struct signal named = *s;

    if (s->who.rank == RANK_NONE) {
        if (s->activity.stopped == 0)
            intset_clear(&e->stopped);
        if (s->activity.blocked == 0)
            intset_clear(&e->blocked);
        return;
    }
    if (s->activity.stopped > 0)
        intset_add(&e->stopped, s->who.rank);
    else if (s->activity.blocked > 0)
        intset_add(&e->blocked, s->who.rank);
    else
        return;
    STR_COPY(named.signature, s->activity.stopped > 0 ? "process.stopped" : "process.blocked");
    add_hit(e, &named, stream, now);
}

static void add_finish(struct evidence *e, const struct signal *s, struct stream *stream,
                       usec_t now)
{
    stream->advance++;
    e->advances++;
    e->finished = true;
    e->finish = *s;
    if (now != USEC_UNKNOWN)
        e->finish_us = now;
}

/* Clocks of one file may disagree by hours (UTC beside local time). One that runs far behind what
 * was already seen is not believed: the line then counts as written at the latest time seen. */
#define CLOCK_BACK (15 * USEC_PER_MIN)

static usec_t add_clock(struct evidence *e, const struct signal *s, struct stream *stream)
{
    usec_t now = s->time_us;

    if (now == USEC_UNKNOWN ||
        (stream->time_us != USEC_UNKNOWN && now < stream->time_us - CLOCK_BACK))
        return stream->time_us;
    if (stream->time_us == USEC_UNKNOWN || now > stream->time_us)
        stream->time_us = now;
    if (s->layer == LAYER_KERNEL)
        return now;
    if (e->last_us == USEC_UNKNOWN || now > e->last_us)
        e->last_us = now;
    e->silence_lines++;
    if (e->silence_first_us == USEC_UNKNOWN)
        e->silence_first_us = e->silence_end_us = now;
    if (now > e->silence_end_us)
        e->silence_end_us = now;
    return now;
}

static void add_by_role(struct evidence *e, const struct signal *s, struct stream *stream,
                        usec_t now)
{
    if (*s->clears)
        forget_cleared(e, s);
    if (s->role == ROLE_FINISH)
        add_finish(e, s, stream, now);
    else if (s->role == ROLE_CONFIRM || s->kind == SIGNAL_EXIT)
        add_report(e, s, stream, now);
    if (s->role < ROLE_NOISE && *s->signature)
        add_hit(e, s, stream, now);
}

void evidence_add(struct evidence *e, const struct signal *s)
{
    struct stream *stream = stream_of(e, s->file);
    usec_t now;

    e->order++;
    e->seen++;
    now = add_clock(e, s, stream);
    roster_add(&e->roster, &s->who);
    switch (s->kind) {
    case SIGNAL_STEP:
        add_step(e, s, stream, now);
        break;
    case SIGNAL_CHECKPOINT:
        add_checkpoint(e, s);
        break;
    case SIGNAL_PHASE:
        end_silence(e);
        e->phase = s->phase.edge == EDGE_END ? PHASE_STEADY : s->phase.phase;
        break;
    case SIGNAL_COLLECTIVE:
        collectives_add(&e->waits, s);
        add_hit(e, s, stream, now);
        break;
    case SIGNAL_ACTIVITY:
        add_activity(e, s, stream, now);
        break;
    case SIGNAL_HIT:
    case SIGNAL_EXIT:
        add_by_role(e, s, stream, now);
        break;
    case SIGNAL_OUTPUT:
    case SIGNAL_MAX:
    case SIGNAL_INVALID:
        break;
    }
}
