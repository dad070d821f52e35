/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/gather.h"

#include "base/sig.h"
#include "base/str.h"

#include <signal.h>
#include <string.h>

/* Who ended, and how. Launchers tell it over several lines (host, rank, exit code) and often twice,
 * at once in a line of the agent and later in a summary; one process must be counted once.
 *
 * How the first process ended is seen by reknit itself, beside the output, of which any part may
 * still be unread. So it has no place among the lines: it is the last that happened, whenever it is
 * told, and nothing that is read later survives it. */

#define NAMED_CONFIDENCE 50
#define HEAD_LINES       20 /* of a file in which an end stands alone */
#define OTHERS_MIN       2  /* killed processes that tell for whom */
#define REPORT_LINES     3  /* a launcher's block: gap between two lines that belong together */

static bool is_same_family(const char *a, const char *b)
{
    size_t n = strcspn(a, ".");

    return n == strcspn(b, ".") && strncmp(a, b, n) == 0;
}

/* Whether the line adds to the report that is being read: it repeats nothing of it, and is of the
 * same speaker as far as that can be told. What srun or another launcher says of a task stands
 * between the lines of ranks, as tracebacks, just as it comes, and says nothing of them. */
static bool continues_report(const struct exit_seen *x, const struct signal *s, bool has_code)
{
    return x->file == s->file && x->layer == s->layer && s->line != 0 &&
           s->line - x->last_line <= REPORT_LINES && !streq(x->signature, s->signature) &&
           is_same_family(x->signature, s->signature) &&
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
    if (!*dst->tasks)
        STR_COPY(dst->tasks, src->tasks);
    if (!*dst->device)
        STR_COPY(dst->device, src->device);
}

static bool is_own(const struct exit_seen *x)
{
    return x->provenance == PROVENANCE_AGENT && x->who.rank == RANK_NONE;
}

const struct exit_seen *evidence_own_exit(const struct evidence *e)
{
    VEC_FOREACH (&e->exits, x)
        if (is_own(x) && x->has_code)
            return x;
    return NULL;
}

/* NULL = none */
static struct exit_seen *last_told(struct evidence *e)
{
    for (size_t i = e->exits.n; i-- > 0;)
        if (!is_own(&e->exits.v[i]))
            return &e->exits.v[i];
    return NULL;
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
    x->headless = s->line <= HEAD_LINES && !evidence_stream(e, s->file)->alive;
    STR_COPY(x->signature, s->signature);
    STR_COPY(x->text, s->text);
    return x;
}

static bool is_same_end(const struct exit_seen *x, const struct exit_fact *f)
{
    return x->has_code && x->code == f->code && x->signal == f->signal;
}

static bool is_killed(const struct exit_seen *x)
{
    return sig_ended(x->code, x->signal, SIGTERM) || sig_ended(x->code, x->signal, SIGKILL);
}

/* Whether all others that the file tells of were killed, and this one ended by itself: it is what
 * they were killed for. Of one alone it may as well be the other way round, and who aborts may only
 * have missed the one that was killed. */
bool exit_brought_down_others(const struct evidence *e, const struct exit_seen *x)
{
    size_t n = 0;

    if (!x->has_code || is_killed(x) || (x->code == 0 && x->signal == 0) ||
        sig_ended(x->code, x->signal, SIGABRT))
        return false;

    VEC_FOREACH (&e->exits, o) {
        if (o == x || o->file != x->file || !o->has_code)
            continue;
        if (!is_killed(o))
            return false;
        n++;
    }
    return n >= OTHERS_MIN;
}

/* A file that begins with an end may be the tail of a longer one, and then who is told of there is
 * not the first that died. Another file that shows the job outweighs that. */
bool exit_is_first(const struct evidence *e, const struct exit_seen *x)
{
    for (size_t i = 0; x->headless && !x->named && i < e->streams.n; i++)
        if (e->streams.v[i].alive && &e->streams.v[i] != evidence_stream(e, x->file))
            return true;
    return !x->headless || x->named || exit_brought_down_others(e, x);
}

/* The same process told of twice, by the agent's log line and in the launcher's summary: its pid
 * says so, or, where it was cut off, its place on the node and its end. */
static struct exit_seen *report_of_process(struct evidence *e, const struct signal *s,
                                           const struct exit_seen *told)
{
    VEC_FOREACH (&e->exits, x) {
        if (x == told || x->file != s->file || is_own(x))
            continue;
        if (s->exit.pid != 0 && x->pid == s->exit.pid)
            return x;
        if (x->who.local_rank != RANK_NONE && x->who.local_rank == told->who.local_rank &&
            (x->who.rank == RANK_NONE || told->who.rank == RANK_NONE ||
             x->who.rank == told->who.rank) &&
            is_same_end(x, &s->exit))
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
    x->unkept = f->unkept != 0;
}

static void gather_own_exit(struct evidence *e, const struct signal *s)
{
    struct exit_seen *x = open_report(e, s);

    if (!x)
        return;
    x->order = UINT64_MAX;
    x->advance = INT64_MAX;
    x->time_us = USEC_UNKNOWN;
    set_exit(x, &s->exit);
}

void gather_exit(struct evidence *e, const struct signal *s, const struct stream *stream,
                 usec_t now)
{
    bool has_code = s->kind == SIGNAL_EXIT;
    struct exit_seen *x = last_told(e), *same = NULL;

    if (has_code && s->provenance == PROVENANCE_AGENT && s->who.rank == RANK_NONE) {
        gather_own_exit(e, s);
        return;
    }
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
        x->code_line = s->line;
        STR_COPY(x->code_text, s->text);
    }
    if (same) {
        merge_entity(&same->who, &x->who);
        x->has_code = false; /* one process is one exit */
    }
    roster_add(&e->roster, &x->who);
}
