/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flight.h"

#include "base/cleanup.h"

#include <inttypes.h>

/* ---- sentences ---- */

static void add_ranks(struct strbuf *out, const struct intset *s)
{
    strbuf_adds(out, s->n == 1 ? "rank " : "ranks ");
    intset_format(s, out);
}

static void add_group(struct strbuf *out, const struct flight *f, const struct flight_group *g)
{
    const char *desc = flight_word(f, g->desc);

    strbuf_addf(out, "group %s", flight_word(f, g->name));
    if (*desc && !streq(desc, "undefined"))
        strbuf_addf(out, " (%s)", desc);
}

/* "all_reduce 17 of group 3 (DP)". */
static void add_operation(struct strbuf *out, const struct flight *f,
                          const struct flight_judgement *j, const struct flight_culprit *c)
{
    strbuf_addf(out, "%s %" PRId64, flight_word(f, c->what), c->seq);
    if (c->group != FLIGHT_NONE) {
        strbuf_adds(out, " of ");
        add_group(out, f, &j->groups.v[c->group]);
    }
}

void flight_tell_culprit(struct strbuf *out, const struct flight *f,
                         const struct flight_judgement *j, const struct flight_culprit *c)
{
    switch (c->reason) {
    case FLIGHT_CPU:
        strbuf_adds(out, "its program never asked for ");
        if (c->own < 0 && c->waiter >= 0)
            strbuf_addf(out, "the other end of rank %d's ", c->waiter);
        add_operation(out, f, j, c);
        if (c->own >= 0)
            strbuf_addf(out, ": its last is %" PRId64, c->own);
        break;
    case FLIGHT_GPU:
        strbuf_adds(out, "its GPU has not come to ");
        add_operation(out, f, j, c);
        if (c->own == c->seq)
            strbuf_adds(out, ", which its program asked for");
        else
            strbuf_addf(out, ": it is at %" PRId64 " still", c->own);
        break;
    case FLIGHT_NODUMP:
        strbuf_adds(out, "left no dump, while others wait in ");
        add_operation(out, f, j, c);
        break;
    case FLIGHT_DIFFERS:
        strbuf_adds(out, "asked for ");
        add_operation(out, f, j, c);
        strbuf_addf(out, ", and its peers (rank %d) for something else or another size", c->waiter);
        break;
    case FLIGHT_REASON_MAX:
    case FLIGHT_REASON_INVALID:
        break;
    }
}

static void tell_unclear(struct strbuf *out, const struct flight_judgement *j)
{
    strbuf_adds(out, "nothing is proven against anybody");
    if (j->missing.n > 0) {
        strbuf_adds(out, ": no dump of ");
        add_ranks(out, &j->missing);
        strbuf_adds(out, " is here");
    } else if (j->unread.n > 0) {
        strbuf_adds(out, ": the dump of ");
        add_ranks(out, &j->unread);
        strbuf_adds(out, " cannot be read");
    }
}

static void tell_desync(struct strbuf *out, const struct flight *f,
                        const struct flight_judgement *j)
{
    strbuf_adds(out, "the program: ranks asked for different things under one number");
    VEC_FOREACH (&j->groups, g)
        if (g->differs_at >= 0) {
            strbuf_addf(out, " (%" PRId64 " of ", g->differs_at);
            add_group(out, f, g);
            strbuf_addc(out, ')');
            break;
        }
    if (j->culprits.n == 0)
        strbuf_adds(out, "; as many did the one as the other");
}

static void tell_inside(struct strbuf *out, const struct flight *f,
                        const struct flight_judgement *j)
{
    size_t more = 0;
    const struct flight_group *first = NULL;

    VEC_FOREACH (&j->groups, g)
        if (g->inside) {
            more += first != NULL;
            first = first ? first : g;
        }
    strbuf_adds(out, "all have come to what they are in, and none gets through: the network, or a "
                     "GPU, and the dumps do not say whose");
    if (!first)
        return;
    strbuf_addf(out, " (%s %" PRId64 " of ", flight_word(f, first->what), first->front);
    add_group(out, f, first);
    if (more > 0)
        strbuf_addf(out, " and %zu more", more);
    strbuf_addc(out, ')');
}

void flight_tell_verdict(struct strbuf *out, const struct flight *f,
                         const struct flight_judgement *j)
{
    switch (j->verdict) {
    case FLIGHT_COMPLETE:
        strbuf_adds(out, "no collective is unfinished: the job did not stand still in one");
        break;
    case FLIGHT_STALL:
        strbuf_addf(out, "%zu rank%s kept the others waiting", j->culprits.n,
                    j->culprits.n == 1 ? "" : "s");
        break;
    case FLIGHT_DESYNC:
        tell_desync(out, f, j);
        break;
    case FLIGHT_DEADLOCK:
        strbuf_adds(out, "the program: ");
        add_ranks(out, &j->circle);
        strbuf_adds(out, " wait for each other in a circle");
        break;
    case FLIGHT_INSIDE:
        tell_inside(out, f, j);
        break;
    case FLIGHT_UNCLEAR:
        tell_unclear(out, j);
        break;
    case FLIGHT_VERDICT_MAX:
    case FLIGHT_VERDICT_INVALID:
        break;
    }
}

void flight_ranks_of(const struct flight_group *g, enum flight_stand stand, bool blamed,
                     struct intset *ret)
{
    VEC_FOREACH (&g->ranks, m)
        if (m->stand == stand && (!blamed || m->blamed))
            intset_add(ret, m->rank);
}

/* ---- the page ---- */

#define GROUPS_SHOWN 20

static void print_set(FILE *out, const char *key, const struct intset *s)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    if (s->n == 0)
        return;
    intset_format(s, &text);
    fprintf(out, "%-10s%s\n", key, text.s);
}

static void add_stand(struct strbuf *out, const struct flight_group *g, enum flight_stand stand,
                      const char *words)
{
    struct intset s = {0};

    flight_ranks_of(g, stand, false, &s);
    if (s.n > 0) {
        strbuf_adds(out, "; ");
        intset_format(&s, out);
        strbuf_addf(out, " %s", words);
    }
    intset_done(&s);
}

static void print_group(FILE *out, const struct flight *f, const struct flight_group *g)
{
    _cleanup_strbuf_ struct strbuf line = {0};

    add_group(&line, f, g);
    strbuf_addf(&line, ": in %s %" PRId64, flight_word(f, g->what), g->front);
    add_stand(&line, g, FLIGHT_WAITS, g->behind > 0 ? "wait" : "are all in it");
    add_stand(&line, g, FLIGHT_BEHIND, "behind");
    add_stand(&line, g, FLIGHT_UNTOLD, "not known");
    if (g->root)
        strbuf_adds(&line, "  <- it begins here");
    fprintf(out, "  %s\n", line.s);
}

static void print_groups(FILE *out, const struct flight *f, const struct flight_judgement *j)
{
    size_t shown = 0, more = 0;

    for (int pass = 0; pass < 3; pass++)
        VEC_FOREACH (&j->groups, g) {
            if (g->front < 0 || pass != (g->root ? 0 : g->behind > 0 ? 1 : 2))
                continue;
            if (shown == 0)
                fputs("\nWaiting\n", out);
            if (shown++ < GROUPS_SHOWN)
                print_group(out, f, g);
            else
                more++;
        }
    if (more > 0)
        fprintf(out, "  and %zu more groups\n", more);
}

void flight_print_text(FILE *out, const struct flight *f, const struct flight_judgement *j,
                       const struct dump_folder *d)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    flight_tell_verdict(&text, f, j);
    fprintf(out, "%-10s%s\n", "Verdict", text.s);
    VEC_FOREACH (&j->culprits, c) {
        strbuf_reset(&text);
        flight_tell_culprit(&text, f, j, c);
        fprintf(out, "%-10srank %d: %s\n", "Culprit", c->rank, text.s);
    }
    fprintf(out, "%-10s%zu\n", "Dumps", d->files.n);
    print_set(out, "Missing", &j->missing);
    print_set(out, "Unread", &j->unread);
    print_set(out, "Idle", &j->idle);
    print_groups(out, f, j);
}
