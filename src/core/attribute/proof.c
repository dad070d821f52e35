/* SPDX-License-Identifier: Apache-2.0 */
#include "core/attribute/judge.h"

#include "base/hash.h"
#include "base/str.h"

/* The lines that prove the verdict, decisive one first, each signature once (or twice, when it
 * shows different entities), few enough to be read by a tired person. */

#define ROOTS_SHOWN    6
#define SYMPTOMS_SHOWN 3
#define CONFIRMS_SHOWN 3

static bool line_shown(const struct incident *in, uint32_t file, uint64_t line)
{
    for (uint32_t i = 0; i < in->n_evidence; i++)
        if (in->evidence[i].file == file && in->evidence[i].line == line)
            return true;
    return false;
}

/* What a scheduler, a plugin or an agent says stands in no line of a file. */
static bool shown(const struct incident *in, const struct signal *s)
{
    if (s->line != 0)
        return line_shown(in, s->file, s->line);
    for (uint32_t i = 0; i < in->n_evidence; i++)
        if (in->evidence[i].line == 0 && streq(in->evidence[i].signature, s->signature) &&
            streq(in->evidence[i].text, s->text))
            return true;
    return false;
}

static struct evidence_line *add_line(struct judge *j, uint32_t file, uint64_t line)
{
    struct incident *in = j->in;
    struct evidence_line *l;

    if (in->n_evidence == EVIDENCE_MAX || (line != 0 && line_shown(in, file, line)))
        return NULL;
    l = &in->evidence[in->n_evidence++];
    *l = (struct evidence_line){.file = file, .line = line, .count = 1};
    return l;
}

static void add_signal(struct judge *j, const struct signal *s, uint64_t count)
{
    struct evidence_line *l = shown(j->in, s) ? NULL : add_line(j, s->file, s->line);

    if (!l)
        return;
    l->offset = s->offset;
    l->count = count;
    l->role = s->role;
    STR_COPY(l->signature, s->signature);
    STR_COPY(l->text, s->text);
}

static void add_hit(struct judge *j, const struct hit *h)
{
    const struct signature_facts *g = evidence_signature(j->e, h->s.signature);

    add_signal(j, &h->s, g ? g->count : h->count);
}

static void add_sample(struct judge *j, const struct sample *p, const char *signature)
{
    struct evidence_line *l = add_line(j, p->file, p->line);

    if (!l)
        return;
    l->offset = p->offset;
    l->role = ROLE_PROGRESS;
    STR_COPY(l->signature, signature);
    STR_COPY(l->text, p->text);
}

static uint32_t times_shown(const struct incident *in, const char *signature)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < in->n_evidence; i++)
        n += streq(in->evidence[i].signature, signature);
    return n;
}

/* Whether a line is shown that reads the same but for numbers and names. */
static bool reads_like_shown(const struct judge *j, const struct hit *h)
{
    uint64_t words = fingerprint_template(HASH_INIT, &h->s);

    for (size_t i = 0; i < j->n_current; i++) {
        const struct signal *s = &j->current[i]->s;

        if (streq(s->signature, h->s.signature) && shown(j->in, s) &&
            fingerprint_template(HASH_INIT, s) == words)
            return true;
    }
    return false;
}

/* Of one signature those first that say it in other words. */
static void add_role(struct judge *j, enum role role, uint32_t most, uint32_t each)
{
    uint32_t n = 0;

    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < j->n_current && n < most; i++) {
            const struct hit *h = j->current[i];

            if (h->s.role != role || shown(j->in, &h->s) ||
                times_shown(j->in, h->s.signature) >= each || (!again && reads_like_shown(j, h)))
                continue;
            add_hit(j, h);
            n++;
        }
}

/* Lines that only confirm, but the same cause; what the scheduler says of its own act. */
static void add_confirming(struct judge *j)
{
    for (size_t i = 0; i < j->n_current && j->in->n_evidence < EVIDENCE_MAX; i++) {
        const struct hit *h = j->current[i];
        bool same = h->s.role == ROLE_CONFIRM && h->s.cause == j->in->cause;
        bool act = j->in->class == CLASS_INTERRUPTED && h->s.layer == LAYER_SCHEDULER &&
                   h->s.role == ROLE_TEARDOWN;

        if ((same || act) && h->s.cause != CAUSE_UNKNOWN && times_shown(j->in, h->s.signature) == 0)
            add_hit(j, h);
    }
}

static void add_rise(struct judge *j, const struct series *s)
{
    if (s->last_before.value != METRIC_NAN)
        add_sample(j, &s->last_before, s->signature);
    for (uint32_t i = 0; i < s->n_onset; i++)
        add_sample(j, &s->onset[i], s->signature);
}

/* Programs often print a step in two ways: each may be the one that a reader looks for. */
static void add_nans(struct judge *j)
{
    add_sample(j, &j->loss->nan, j->loss->signature);
    for (uint32_t i = 0; i < j->e->n_loss; i++)
        if (j->e->loss[i]->nan_run > 0)
            add_sample(j, &j->e->loss[i]->nan, j->e->loss[i]->signature);
}

static void add_numbers(struct judge *j)
{
    const struct series *s = j->loss;

    if (j->divergence == DIVERGENCE_NAN)
        add_nans(j);
    else if (j->divergence == DIVERGENCE_CLIMB)
        add_sample(j, &s->climb, s->signature);
    else
        add_rise(j, s);
}

/* Where something else tells that the numbers are wrong: the line at which they left their range.
 */
static void add_onset(struct judge *j)
{
    for (uint32_t i = 0; i < j->e->n_loss; i++) {
        const struct sample *p = series_last_onset(j->e->loss[i]);

        if (p)
            add_sample(j, p, j->e->loss[i]->signature);
    }
}

static void add_waits(struct judge *j)
{
    for (size_t i = 0; i < j->n_current; i++) {
        const struct hit *h = j->current[i];

        if (h->s.kind == SIGNAL_COLLECTIVE && intset_has(&j->holdup.ranks, h->s.who.rank))
            add_hit(j, h);
    }
    add_hit(j, j->first_wait);
}

static void add_exit_line(struct judge *j, const struct exit_seen *x, uint64_t line,
                          const char *text)
{
    struct evidence_line *l = line ? add_line(j, x->file, line) : NULL;

    if (!l)
        return;
    l->role = ROLE_CONFIRM;
    STR_COPY(l->signature, x->signature);
    STR_COPY(l->text, text);
}

/* Who ended first; where nothing else says why, how, too. */
static void add_exit(struct judge *j)
{
    const struct exit_seen *x = j->first_exit;

    if (!x)
        return;
    add_exit_line(j, x, x->line, x->text);
    if (!j->primary)
        add_exit_line(j, x, x->code_line, x->code_text);
}

void proof_collect(struct judge *j)
{
    if (j->in->class == CLASS_HEALTHY)
        return;
    if (j->primary)
        add_hit(j, j->primary);
    if (j->loss)
        add_numbers(j);
    else if (j->in->class == CLASS_CRASH && j->in->cause == CAUSE_NUMERICAL)
        add_onset(j);
    if (j->gradient_lost)
        add_sample(j, &j->e->pace.nan, "");
    if (j->telling)
        add_hit(j, j->telling);
    if (j->slow)
        add_rise(j, j->slow);
    if (j->in->class == CLASS_HANG && j->first_wait)
        add_waits(j);
    if (j->in->class == CLASS_HANG && j->in->finished && j->e->finished)
        add_signal(j, &j->e->finish, 1);
    if (j->in->class == CLASS_HANG && j->e->pace.any)
        add_sample(j, &j->e->pace.last, "");
    if (j->in->class == CLASS_HANG && j->e->phase != PHASE_STEADY)
        add_signal(j, &j->e->phase_line, 1);
    if (j->interrupt)
        add_hit(j, j->interrupt);
    if (j->in->class == CLASS_INTERRUPTED && j->notice)
        add_hit(j, j->notice);
    if (j->in->class == CLASS_STRAGGLER)
        return;
    add_role(j, ROLE_ROOT, ROOTS_SHOWN, 2);
    add_role(j, ROLE_SYMPTOM, SYMPTOMS_SHOWN, 1);
    add_confirming(j);
    if (j->in->class == CLASS_CRASH)
        add_exit(j);
    add_role(j, ROLE_CASCADE, j->primary ? 1 : CONFIRMS_SHOWN, 1);
    if (j->in->class == CLASS_HANG)
        add_role(j, ROLE_CONFIRM, CONFIRMS_SHOWN, 2);
}
