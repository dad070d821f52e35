/* SPDX-License-Identifier: Apache-2.0 */

/* What is said on standard error: about the run before, about each decision, and at the end. */

#include "base/str.h"
#include "cli/chronicle.h"
#include "cli/narrate.h"
#include "cli/session_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void say_decision(struct session *s, const struct story_attempt *a)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (a->decision.action == ACTION_COMPLETE && a->incident && a->incident->class == CLASS_HEALTHY)
        return; /* the table says it */
    if (s->undecided != a->number)
        narrate_verdict(a, &b);
    if (b.len > 0)
        strbuf_adds(&b, " - ");
    else
        strbuf_addf(&b, "attempt %" PRIu32 ": ", a->number);
    narrate_decision(a, &b);
    say(s->say, "%s", strbuf_str(&b));
}

void session_tell(struct session *s, const struct event *e)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    const struct story_attempt *a = story_last_attempt(story_last_run(&s->story));

    switch (e->kind) {
    case EVENT_FINDING:
        if (narrate_finding(e, &b))
            say(s->say, "%s", strbuf_str(&b));
        break;
    case EVENT_DECISION:
        if (a && !(s->closing && action_restarts(a->decision.action)))
            say_decision(s, a);
        break;
    default:
        break;
    }
}

void session_tell_undecided(struct session *s)
{
    const struct story_attempt *a = story_last_attempt(story_last_run(&s->story));
    _cleanup_strbuf_ struct strbuf b = {0};

    if (!a || session_never_ran(s) || s->undecided == a->number)
        return;
    s->undecided = a->number;
    narrate_verdict(a, &b);
    if (b.len > 0)
        say(s->say, "%s", strbuf_str(&b));
}

/* The last run was killed, or its machine went down. */
void session_tell_lost_run(struct session *s)
{
    struct story_run *run = story_last_run(&s->story);
    const struct story_attempt *a = story_last_attempt(run);
    _cleanup_strbuf_ struct strbuf b = {0};
    char ago[DURATION_TEXT_MAX];

    if (!run || run->over)
        return;
    duration_format(now_us() - s->story.last_event, ago);
    if (s->home.in_order) {
        say(s->say,
            "the last run of this job ended in order, but its end could not be recorded; the last "
            "that is known of it is %s old",
            ago);
        return;
    }
    strbuf_addf(&b, "the last run of this job was killed %s ago", ago);
    if (a)
        strbuf_addf(&b, " in attempt %" PRIu32, a->number);
    if (a && a->last_step != STEP_NONE)
        strbuf_addf(&b, ", after step %" PRId64, a->last_step);
    if (a && a->checkpoint_step != STEP_NONE)
        strbuf_addf(&b, " (checkpoint at %" PRId64 ")", a->checkpoint_step);
    if (s->home.leftovers > 0)
        strbuf_addf(&b, "; %zu processes it had left behind were killed now", s->home.leftovers);
    else
        strbuf_adds(&b, "; its processes died with it");
    say(s->say, "%s", strbuf_str(&b));
}

void session_tell_lost_events(struct session *s)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (s->story.lost_events == 0)
        return;
    narrate_lost_events(s->story.lost_events, &b);
    say(s->say, "of this job's earlier runs, %s", strbuf_str(&b));
}

static void say_line(void *ctx, const char *text)
{
    struct session *s = ctx;

    say(s->say, "%s", text);
}

static void print_json(struct session *s, const struct story_run *run, int status,
                       const char *error)
{
    char words[256];
    json_t *j = run ? chronicle_run_json(&s->story, run, false, false) : chronicle_no_run_json();

    json_object_set_new(j, "job", json_string(s->o->name));
    json_object_set_new(j, "exit_status", json_integer(status));
    if (!error && s->start_error != 0) {
        STR_PRINTF(words, "cannot run '%s': %s", s->o->argv[0], strerror(s->start_error));
        error = words;
    }
    if (error) {
        str_sanitize(words, sizeof(words), error, strlen(error));
        json_object_set_new(j, "error", json_string(words));
    }
    s->say = say_free(s->say); /* what was said comes before */
    json_dumpf(j, stderr, JSON_SORT_KEYS | JSON_COMPACT);
    fputc('\n', stderr);
    json_decref(j);
}

void session_sum_up(struct session *s, int status, const char *error)
{
    struct story_run *run = s->begun ? story_last_run(&s->story) : NULL;

    if (run)
        story_account(run, pump_now(s->pump));
    if (s->o->json) {
        print_json(s, run, status, error);
        return;
    }
    if (!run || run->attempts.n == 0 || session_never_ran(s))
        return;
    narrate_summary(run, say_columns(s->say), say_line, s);
    if (run->over && run->end.action == ACTION_STOP && s->interrupts == 0)
        say(s->say, "stopped; 'reknit explain %s' tells why", s->o->name);
}
