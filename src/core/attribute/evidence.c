/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/gather.h"

#include "base/str.h"

#include <stdlib.h>

/* Gathering: every signal to its place, in bounded memory. Nothing is judged here. */

struct evidence *evidence_new(void)
{
    struct evidence *e = xnew(struct evidence);

    e->pace.sum = (struct progress_summary){.first_step = STEP_NONE,
                                            .last_step = STEP_NONE,
                                            .total_steps = NUMBER_NONE,
                                            .checkpoint_step = STEP_NONE,
                                            .median_step = NUMBER_NONE};
    e->pace.by_clock = NUMBER_NONE;
    e->full_at = UINT64_MAX;
    e->pace.last_us = e->last_us = e->finish_us = e->hits_us = USEC_UNKNOWN;
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

static void open_phase(struct evidence *e, const struct signal *s, enum phase phase)
{
    e->phase = phase;
    e->phase_line = *s;
}

static void add_checkpoint(struct evidence *e, const struct signal *s)
{
    if (s->checkpoint.edge == EDGE_BEGIN)
        open_phase(e, s, PHASE_CHECKPOINT);
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
    gather_hit(e, &named, stream, now);
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
#define YEAR_SLACK (14 * USEC_PER_DAY)

/* Clocks without a year were given the wrong one when the first with a year lies whole years before
 * them; what matters is that both agree. */
static void agree_on_year(struct stream *stream, usec_t now)
{
    usec_t back = stream->time_us - now, years = (back + YEAR_SLACK) / (365 * USEC_PER_DAY);
    usec_t shift = years * 365 * USEC_PER_DAY;

    if (years <= 0 || stream->shift != 0)
        return;
    for (usec_t leap = 0; leap <= years / 4 && shift < back - CLOCK_BACK; leap++)
        shift += USEC_PER_DAY;
    if (shift >= back - CLOCK_BACK && shift <= back + YEAR_SLACK)
        stream->shift += shift;
}

static usec_t add_clock(struct evidence *e, const struct signal *s, struct stream *stream)
{
    usec_t now = signal_time(s);

    stream->uptime |= s->uptime;
    if (now != USEC_UNKNOWN && stream->time_us != USEC_UNKNOWN)
        agree_on_year(stream, now + stream->shift);
    if (now != USEC_UNKNOWN)
        now += stream->shift;
    if (now == USEC_UNKNOWN ||
        (stream->time_us != USEC_UNKNOWN && now < stream->time_us - CLOCK_BACK))
        return stream->time_us;
    if (stream->time_us == USEC_UNKNOWN || now > stream->time_us)
        stream->time_us = now;
    if (s->layer == LAYER_KERNEL)
        return now;
    if (e->last_us == USEC_UNKNOWN || now > e->last_us)
        e->last_us = now;
    gather_silence(e, now);
    return now;
}

static void add_by_role(struct evidence *e, const struct signal *s, struct stream *stream,
                        usec_t now)
{
    if (*s->clears)
        gather_cleared(e, s);
    if (s->role == ROLE_FINISH)
        add_finish(e, s, stream, now);
    else if (s->role == ROLE_CONFIRM || s->kind == SIGNAL_EXIT)
        gather_exit(e, s, stream, now);
    if (s->role < ROLE_NOISE && *s->signature)
        gather_hit(e, s, stream, now);
}

/* Whether the signal shows more than who ended: a job that works or fails, the head of a report. */
static bool shows_life(const struct signal *s)
{
    switch (s->kind) {
    case SIGNAL_EXIT:
    case SIGNAL_OUTPUT:
        return false;
    case SIGNAL_HIT:
        return s->role != ROLE_CONFIRM || (s->who.rank == RANK_NONE && !*s->who.node);
    default:
        return true;
    }
}

static void add(struct evidence *e, const struct signal *s, struct stream *stream)
{
    usec_t now = add_clock(e, s, stream);

    roster_add_size(&e->roster, s->nodes);
    roster_add(&e->roster, &s->who);
    switch (s->kind) {
    case SIGNAL_STEP:
        gather_step(e, s, stream, now);
        break;
    case SIGNAL_CHECKPOINT:
        add_checkpoint(e, s);
        break;
    case SIGNAL_PHASE:
        if (e->phase != PHASE_STARTUP || s->phase.phase != PHASE_STARTUP ||
            s->phase.edge != EDGE_BEGIN) /* who still waits for the others does not work */
            gather_sign_of_work(e);
        open_phase(e, s, s->phase.edge == EDGE_END ? PHASE_STEADY : s->phase.phase);
        break;
    case SIGNAL_COLLECTIVE:
        collectives_add(&e->waits, s);
        gather_hit(e, s, stream, now);
        break;
    case SIGNAL_ACTIVITY:
        add_activity(e, s, stream, now);
        break;
    case SIGNAL_HIT:
    case SIGNAL_EXIT:
        add_by_role(e, s, stream, now);
        break;
    case SIGNAL_LAYOUT:
    case SIGNAL_OUTPUT:
    case SIGNAL_MAX:
    case SIGNAL_INVALID:
        break;
    }
    stream->alive |= shows_life(s);
    stream->cut |= s->cut;
}

void evidence_add(struct evidence *e, const struct signal *s)
{
    struct stream *stream;
    struct signal named;

    if (s->kind == SIGNAL_LAYOUT) { /* of no file */
        roster_add_layout(&e->roster, &s->layout, &s->who);
        return;
    }
    stream = stream_of(e, s->file);
    e->order++;
    e->seen += s->kind != SIGNAL_OUTPUT;
    if (s->who.rank != RANK_NONE || s->who.local_rank == RANK_NONE ||
        roster_rank_of(&e->roster, &s->who) == RANK_NONE) {
        add(e, s, stream);
        return;
    }
    named = *s;
    named.who.rank = roster_rank_of(&e->roster, &s->who);
    add(e, &named, stream);
}

void evidence_add_gap(struct evidence *e)
{
    e->gap = true;
}
