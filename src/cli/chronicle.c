/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chronicle.h"

#include "cli/narrate.h"
#include "cli/state.h"
#include "wire/codec.h"
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS_LOOKED_THROUGH 1000

enum runner {
    RUNNER_ALIVE,
    RUNNER_ENDED, /* in order: then the lock is empty */
    RUNNER_LOST,
};

static enum runner find_runner(const char *name)
{
    _cleanup_(closep) int fd = -1;
    char path[PATH_MAX];
    struct stat st;

    if (state_journal_path(name, path, NULL) < 0)
        return RUNNER_LOST;
    str_copy(strrchr(path, '/'), sizeof("/lock"), "/lock");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return RUNNER_LOST;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return RUNNER_ALIVE;
    return fstat(fd, &st) == 0 && st.st_size == 0 ? RUNNER_ENDED : RUNNER_LOST;
}

static void tell_story(void *ctx, const struct event *event)
{
    story_add(ctx, event);
}

static int read_events(struct journal *j, struct story *s, struct err *e)
{
    return journal_each(j, 0, tell_story, s, e);
}

static int read_journal(const char *path, const char *name, enum runner runner, struct story *ret,
                        struct err *e)
{
    _cleanup_(journal_freep) struct journal *j = NULL;
    int r = journal_open(path, JOURNAL_READ, &j, e);

    if (r >= 0)
        r = read_events(j, ret, e);
    if (r >= 0)
        ret->lost_events = journal_lost(j);
    STR_COPY(ret->job, name);
    if (r >= 0 && runner != RUNNER_ALIVE)
        story_nobody_runs(ret, runner == RUNNER_ENDED);
    return r < 0 ? r : 0;
}

int chronicle_read(const char *name, struct story *ret, struct err *e)
{
    enum runner runner = find_runner(name); /* before the journal is read: it may end meanwhile */
    char path[PATH_MAX];
    int r = state_journal_path(name, path, e);

    if (r >= 0)
        r = read_journal(path, name, runner, ret, e);
    if (r == -ENOENT)
        return err_set(e, r, "there is no job '%s'; 'reknit jobs' lists them", name);
    return r;
}

/* A journal is put into the folder of the last run that is in it. */
static int read_aside(const char *name, uint32_t number, struct story *ret, struct err *e)
{
    char path[PATH_MAX], folder[PATH_MAX];
    int r = state_journal_path(name, path, e);

    if (r < 0)
        return r;
    *strrchr(path, '/') = '\0';
    for (uint32_t i = number; i < number + RUNS_LOOKED_THROUGH; i++) {
        if (snprintf(folder, sizeof(folder), "%s/run-%" PRIu32 "/journal.db", path, i) >= PATH_MAX)
            break;
        if (access(folder, F_OK) == 0)
            return read_journal(folder, name, RUNNER_LOST, ret, e);
    }
    return -ESRCH;
}

int chronicle_read_run(const char *name, uint32_t number, struct story *ret, struct err *e)
{
    int r = chronicle_read(name, ret, e);

    if (r < 0 || story_run(ret, number))
        return r;
    story_done(ret);
    *ret = (struct story){0};
    r = read_aside(name, number, ret, e);
    if (r == -ESRCH || (r >= 0 && !story_run(ret, number)))
        return err_set(e, -ESRCH, "the job '%s' has no run %" PRIu32 ", or it is forgotten", name,
                       number);
    return r;
}

struct newest {
    char name[JOB_NAME_LEN];
    usec_t at;
};

static int look_at(void *ctx, const char *name)
{
    _cleanup_story_ struct story s = {0};
    struct newest *newest = ctx;

    if (chronicle_read(name, &s, NULL) >= 0 && s.last_event > newest->at) {
        newest->at = s.last_event;
        STR_COPY(newest->name, name);
    }
    return 0;
}

int chronicle_newest(char ret[JOB_NAME_LEN], struct err *e)
{
    struct newest newest = {0};
    int r = state_each_job(look_at, &newest, e);

    if (r < 0)
        return r;
    if (newest.at == 0)
        return err_set(e, -ENOENT, "no jobs yet: 'reknit run' makes the first");
    str_copy(ret, JOB_NAME_LEN, newest.name);
    return 0;
}

bool chronicle_is_alive(const char *name)
{
    return find_runner(name) == RUNNER_ALIVE;
}

static void set_text(json_t *j, const char *key, const char *text)
{
    json_object_set_new(j, key, json_string(text));
}

static void set_number(json_t *j, const char *key, int64_t v, int64_t none)
{
    json_object_set_new(j, key, v == none ? json_null() : json_integer(v));
}

static void set_seconds(json_t *j, const char *key, usec_t v)
{
    json_object_set_new(j, key, v == USEC_NEVER ? json_null() : json_real((double)v / 1e6));
}

static void set_time(json_t *j, const char *key, usec_t t)
{
    char text[TIMESTAMP_TEXT_MAX];

    json_object_set_new(j, key,
                        t == USEC_NEVER ? json_null() : json_string(timestamp_format(t, text)));
}

static json_t *decision_json(const struct decision_facts *d)
{
    json_t *j = json_object(), *without = json_array();

    for (uint32_t i = 0; i < d->n_without; i++)
        json_array_append_new(without, json_string(d->without[i]));
    set_text(j, "action", action_name(d->action));
    set_text(j, "rule", d->rule);
    set_text(j, "why", d->why);
    set_number(j, "used", d->used, -1);
    set_number(j, "allowed", d->allowed, -1);
    set_seconds(j, "delay_s", d->delay);
    set_number(j, "after_step", d->after_step, STEP_NONE);
    json_object_set_new(j, "without", without);
    return j;
}

/* As the journal has it. */
static json_t *incident_json(const struct incident *i)
{
    struct event *e = xnew(struct event);
    json_t *whole, *j;

    e->kind = EVENT_VERDICT;
    e->incident = *i;
    whole = codec_event_json(e);
    j = json_incref(json_object_get(whole, "incident"));
    json_decref(whole);
    free(e);
    return j ? j : json_object();
}

/* The confidence is a share, as in the JSON of `diagnose`. */
static json_t *verdict_json(const struct incident *i, bool full)
{
    json_t *j = full ? incident_json(i) : json_object();

    set_text(j, "class", incident_class_name(i->class));
    set_text(j, "cause", cause_name(i->cause));
    json_object_set_new(j, "confidence", json_real(i->confidence / 100.0));
    set_text(j, "summary", i->summary);
    return j;
}

static void add_exit(json_t *j, const struct story_attempt *a)
{
    if (!a->exited)
        return;
    set_number(j, "exit_code", a->exit.code, -1);
    set_number(j, "exit_signal", a->exit.signal, 0);
}

static json_t *facts_json(const struct story_attempt *a)
{
    json_t *list = json_array();

    VEC_FOREACH (&a->facts, e)
        json_array_append_new(list, codec_event_json(*e));
    return list;
}

static json_t *attempt_json(const struct story_attempt *a, bool full)
{
    json_t *j = json_object();

    set_number(j, "attempt", a->number, -1);
    set_time(j, "started", a->started);
    set_time(j, "ended", a->ended);
    set_number(j, "first_step", a->first_step, STEP_NONE);
    set_number(j, "last_step", a->last_step, STEP_NONE);
    set_number(j, "checkpoint_step", a->checkpoint_step, STEP_NONE);
    set_text(j, "log", a->log);
    set_seconds(j, "useful_s", a->useful);
    set_seconds(j, "lost_s", a->span - a->useful);
    add_exit(j, a);
    if (a->incident)
        json_object_set_new(j, "verdict", verdict_json(a->incident, full));
    if (a->decided)
        json_object_set_new(j, "decision", decision_json(&a->decision));
    if (full)
        json_object_set_new(j, "events", facts_json(a));
    return j;
}

json_t *chronicle_run_json(const struct story *s, const struct story_run *run, bool alive,
                           bool full)
{
    _cleanup_strbuf_ struct strbuf state = {0};
    json_t *j = json_object(), *attempts = json_array();

    narrate_state(run, alive, &state);
    set_number(j, "schema", 1, -1);
    set_text(j, "job", s->job);
    set_text(j, "state", strbuf_str(&state));
    set_number(j, "run", run->number, 0);
    set_text(j, "command", run->seen.command);
    set_text(j, "directory", run->seen.directory);
    set_time(j, "began", run->began);
    set_time(j, "ended", run->ended);
    set_number(j, "exit_status", run->over ? run->end.exit_code : -1, -1);
    set_number(j, "lost_events", (int64_t)s->lost_events, -1);
    set_seconds(j, "wall_s", run->wall);
    set_seconds(j, "useful_s", run->useful);
    json_object_set_new(j, "goodput",
                        run->wall > 0 && story_has_steps(run)
                            ? json_real((double)run->useful / (double)run->wall)
                            : json_null());
    VEC_FOREACH (&run->attempts, a)
        json_array_append_new(attempts, attempt_json(a, full));
    json_object_set_new(j, "attempts", attempts);
    return j;
}

json_t *chronicle_no_run_json(void)
{
    static const char *const unknown[] = {"command", "directory",   "began",
                                          "ended",   "exit_status", "goodput"};
    json_t *j = json_object();

    set_number(j, "schema", 1, -1);
    set_text(j, "state", "not started");
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
        json_object_set_new(j, unknown[i], json_null());
    set_seconds(j, "wall_s", 0);
    set_seconds(j, "useful_s", 0);
    json_object_set_new(j, "attempts", json_array());
    return j;
}
