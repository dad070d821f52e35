/* SPDX-License-Identifier: Apache-2.0 */
#include "config/terms.h"

#include "config/daemon_form.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void note(struct job_terms *t, const char *format, ...)
{
    char text[320];
    size_t at = strlen(t->notes);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_printf(t->notes + at, sizeof(t->notes) - at, "%s%s", at > 0 ? "; " : "", text);
}

/* ---- the operator's rules ---- */

/* A job that waits in several partitions ("a,b") is in none of them alone: all must match. */
static bool matches(const char *pattern, const char *value)
{
    char one[CONFIG_TEXT_MAX];

    if (!*pattern)
        return true;
    if (!value || !*value)
        return false;
    for (const char *at = value;; at++) {
        size_t n = strcspn(at, ",");

        if (!str_copy_n(one, sizeof(one), at, n) || fnmatch(pattern, one, 0) != 0)
            return false;
        at += n;
        if (!*at)
            return true;
    }
}

static bool rule_matches(const struct job_rule *r, const struct job_labels *j)
{
    return matches(r->partition, j->partition) && matches(r->account, j->account) &&
           matches(r->qos, j->qos) && matches(r->user, j->user);
}

/* Returns the name of the policy. */
static const char *apply_rules(const struct daemon_config *c, const struct job_labels *j,
                               struct job_terms *t)
{
    const char *policy = c->policy;

    t->mode = c->mode;
    t->opted_in = c->opt_in;
    for (unsigned i = 0; i < c->n_rules; i++) {
        const struct job_rule *r = &c->rules[i];

        if (!rule_matches(r, j))
            continue;
        if (r->mode >= 0)
            t->mode = r->mode;
        if (r->opt_in >= 0)
            t->opted_in = r->opt_in;
        if (*r->policy)
            policy = r->policy;
    }
    return policy;
}

/* ---- what the user asks for ---- */

/* What is not understood may have been meant as a limit. */
static void limit(struct job_terms *t)
{
    t->comment.misunderstood = true;
    if (t->mode > MODE_OBSERVE)
        t->mode = MODE_OBSERVE;
}

static void ask_mode(struct job_terms *t)
{
    enum mode asked = t->comment.mode;

    if (asked > t->mode)
        note(t, "mode %s is not allowed here: it stays %s", mode_name(asked), mode_name(t->mode));
    else if (asked >= 0)
        t->mode = asked;
}

static const char *ask_policy(const struct daemon_config *c, const char *holds, struct job_terms *t)
{
    const char *asked = t->comment.policy;
    const struct named_policy *p = *asked ? daemon_config_policy(c, asked) : NULL;

    if (!*asked || streq(asked, holds))
        return holds;
    if (p && p->users)
        return p->name;
    if (p) {
        note(t, "policy %s is not for users to choose: %s holds", asked, holds);
        return holds;
    }
    note(t, "there is no mode or policy %s: %s holds", asked, holds);
    limit(t);
    return holds;
}

static void ask_restarts(struct job_terms *t)
{
    uint32_t asked = t->comment.max_restarts;

    if (asked == RESTARTS_NOT_SAID)
        return;
    if (asked > t->policy.max_restarts)
        note(t, "max_restarts %u is more than the %u of policy %s, which hold", asked,
             t->policy.max_restarts, t->policy.name);
    else
        t->policy.max_restarts = asked;
}

/* allowed: by the rules alone */
static const char *whose_word(const struct job_terms *t, enum mode allowed)
{
    if (!t->opted_in)
        return t->mode == MODE_OFF && t->comment.mode == MODE_OFF ? "its comment asks for it"
                                                                  : "not opted in";
    if (t->mode < allowed)
        return t->comment.misunderstood ? "its comment is not understood"
                                        : "its comment asks for it";
    return allowed == MODE_ACT ? "opted in" : "opted in, and more is not allowed";
}

/* Whatever is said of it. */
static void keep_from_acting(const struct job_labels *job, struct job_terms *t)
{
    if (!job->interactive || t->mode <= MODE_OBSERVE)
        return;
    t->mode = MODE_OBSERVE;
    t->why = "interactive jobs are only observed";
}

void daemon_config_for_job(const struct daemon_config *c, const struct job_labels *job,
                           struct job_terms *ret)
{
    const char *policy;
    enum mode allowed;

    *ret = (struct job_terms){0};
    comment_read(job->comment, &ret->comment);
    if (ret->comment.is_aps && !c->aps_comments)
        comment_read(NULL, &ret->comment);
    if (*ret->comment.notes)
        note(ret, "comment: %s", ret->comment.notes);

    policy = apply_rules(c, job, ret);
    allowed = ret->mode;
    ret->opted_in |= ret->comment.opts_in;
    ask_mode(ret);
    if (!ret->opted_in && ret->mode > MODE_OBSERVE)
        ret->mode = MODE_OBSERVE;
    if (!ret->opted_in && !c->watch_all)
        ret->mode = MODE_OFF;
    keep_from_acting(job, ret);
    ret->policy = daemon_config_policy(c, ask_policy(c, policy, ret))->policy;
    ask_restarts(ret);
    if (ret->comment.continue_after_time_limit >= 0)
        ret->policy.continue_after_time_limit = ret->comment.continue_after_time_limit;
    if (!ret->why)
        ret->why = whose_word(ret, allowed);
}
