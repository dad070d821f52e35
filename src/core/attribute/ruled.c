/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* What else might have been the reason, and the fact against it. A verdict that keeps silent about
 * the loudest lines of a log is not believed. */

#define SURVIVED_SHOWN 3
#define LATER_SHOWN    2
#define ADRIFT_SHOWN   2

void ruled_add(struct judge *j, const char *what, const char *format, ...)
{
    struct ruled_out *r;
    va_list ap;

    if (j->in->n_ruled_out == RULED_OUT_MAX)
        return;
    r = &j->in->ruled_out[j->in->n_ruled_out++];
    STR_COPY(r->what, what);
    va_start(ap, format);
    vsnprintf(r->why, sizeof(r->why), format, ap);
    va_end(ap);
}

static bool already_out(const struct judge *j, const char *what)
{
    for (uint32_t i = 0; i < j->in->n_ruled_out; i++)
        if (streq(j->in->ruled_out[i].what, what))
            return true;
    return false;
}

static bool is_shown(const struct judge *j, const struct signal *s)
{
    return j->primary && streq(j->primary->s.signature, s->signature);
}

/* Errors of which nobody knows whether they are older than the job. */
static void rule_out_adrift(struct judge *j)
{
    bool own = j->primary && hit_is_adrift(j->e, j->primary);
    uint32_t n = 0;

    VEC_FOREACH (&j->e->hits, h) {
        if (n == ADRIFT_SHOWN || h->s.role > ROLE_SYMPTOM || !hit_is_adrift(j->e, h) ||
            is_shown(j, &h->s) || h == j->telling || already_out(j, h->s.signature))
            continue;
        if (own && (h->s.file == j->primary->s.file || h->s.cause == j->in->cause))
            continue;
        ruled_add(j, h->s.signature,
                  "line %" PRIu64 ": its clock counts from boot, so its time can't be compared%s",
                  h->s.line,
                  j->in->class == CLASS_HEALTHY ? ", and the job shows no trouble"
                                                : " with the job's");
        n++;
    }
}

/* Errors that the job lived through. */
static void rule_out_survived(struct judge *j)
{
    uint32_t n = 0;

    VEC_FOREACH (&j->e->hits, h) {
        const struct stream *stream = evidence_stream(j->e, h->s.file);

        if (n == SURVIVED_SHOWN || h->s.role != ROLE_ROOT || episode_is_current(j->e, h) ||
            h == j->notice || is_shown(j, &h->s) || already_out(j, h->s.signature))
            continue;
        if (stream->advance > h->advance)
            ruled_add(j, h->s.signature,
                      "line %" PRIu64 ": %" PRId64 " further steps came after it", h->s.line,
                      stream->advance - h->advance);
        else
            ruled_add(j, h->s.signature, "line %" PRIu64 ": long before the last progress",
                      h->s.line);
        n++;
    }
}

static void rule_out_later(struct judge *j)
{
    uint32_t n = 0;

    for (size_t i = 0; i < j->n_current && n < LATER_SHOWN; i++) {
        const struct hit *h = j->current[i];

        if (h->s.role != ROLE_ROOT || is_shown(j, &h->s) || h->s.cause == j->in->cause ||
            already_out(j, h->s.signature) || !hit_before(j->primary, h) || hit_is_adrift(j->e, h))
            continue;
        ruled_add(j, h->s.signature, "line %" PRIu64 ": came after the decisive line", h->s.line);
        n++;
    }
}

static void rule_out_victims(struct judge *j)
{
    const struct hit *c = episode_first(j, ROLE_CASCADE);
    const struct signature_facts *g = c ? evidence_signature(j->e, c->s.signature) : NULL;

    if (!g || is_shown(j, &c->s))
        return;
    if (g->ranks.n > 1)
        ruled_add(j, c->s.signature, "%zu ranks report it: the effect of another failure",
                  g->ranks.n);
    else
        ruled_add(j, c->s.signature, "the effect of another failure");
}

void ruled_collect(struct judge *j)
{
    if (j->in->class == CLASS_CRASH && j->primary) {
        rule_out_later(j);
        rule_out_victims(j);
        if (j->interrupt)
            ruled_add(j, cause_name(j->interrupt->s.cause), "the failure came before");
    }
    rule_out_adrift(j);
    if (j->in->class == CLASS_INTERRUPTED)
        ruled_add(j, "a failure", "nothing that could be one stands before the interruption");
    rule_out_survived(j);
}
