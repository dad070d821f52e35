/* SPDX-License-Identifier: Apache-2.0 */

/* The life of one attempt: it is launched under the keeper, watched, and ends in three steps that
 * are inputs each: its first process exited, no process is left, the output was read to its end.
 * The latter two come in any order. */

#include "base/proctree.h"
#include "base/str.h"
#include "base/timer.h"
#include "cli/session_parts.h"
#include "cli/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When the job neither writes nor lives any more. */
static void give_terminal_back(struct session *s)
{
    if (!local_is_idle(s->local) || !watch_is_delivered(s->watch))
        return;
    s->keys = keys_free(s->keys);
    closep(&s->master);
    s->master = -1;
    terminal_leave(&s->terminal);
    say_set_raw(s->say, false);
}

/* The watch */

static void on_signal(void *ctx, const struct signal *signal)
{
    struct session *s = ctx;
    struct event e = session_event(s, EVENT_SIGNAL);

    e.signal = *signal;
    pump_input(s->pump, &e);
}

static void on_mid_line(void *ctx, bool mid_line)
{
    struct session *s = ctx;

    say_set_mid_line(s->say, mid_line);
}

static void on_log_trouble(void *ctx, int error)
{
    struct session *s = ctx;

    say_loud(s->say,
             "the log %s cannot be written (%s); the job goes on, its output still "
             "passes through",
             s->log_path, strerror(-error));
}

/* A tool behind a pipe that ended, a terminal that was closed: no reason to lose hours of work. Who
 * wants the end says so with a signal, which a closed terminal sends too. */
static void on_reader_gone(void *ctx)
{
    struct session *s = ctx;

    if (s->unread)
        return;
    s->unread = true;
    say_loud(s->say,
             "nobody reads the job's output any more; the job goes on, its output is kept "
             "in %s",
             s->log_path);
}

static void on_refused(void *ctx, int target, int error)
{
    struct session *s = ctx;
    unsigned bit = 1U << target;

    if (s->refused & bit)
        return;
    s->refused |= bit;
    say_loud(s->say,
             "the job's output cannot be written to standard %s (%s); the job goes on, and so does "
             "its log %s",
             target == STDERR_FILENO ? "error" : "output", strerror(-error), s->log_path);
}

static void on_drained(void *ctx)
{
    struct session *s = ctx;

    give_terminal_back(s);
    say_set_alone(s->say, true);
    if (watch_log_lost(s->watch) > 0)
        say_loud(s->say, "%" PRIu64 " bytes of the output are missing in %s",
                 watch_log_lost(s->watch), s->log_path);
    if (watch_refused(s->watch) > 0)
        say_loud(s->say, "%" PRIu64 " bytes of the output could not be passed on; see %s",
                 watch_refused(s->watch), s->log_path);
    session_input(s, EVENT_LOGS_DRAINED);
    session_maybe_finish(s);
}

static void on_delivered(void *ctx)
{
    struct session *s = ctx;

    give_terminal_back(s);
    session_maybe_finish(s);
}

static const struct watch_handlers watch_handlers = {.signal = on_signal,
                                                     .mid_line = on_mid_line,
                                                     .log_trouble = on_log_trouble,
                                                     .reader_gone = on_reader_gone,
                                                     .refused = on_refused,
                                                     .drained = on_drained,
                                                     .delivered = on_delivered};

/* The keeper */

static void on_started(void *ctx, pid_t pid)
{
    struct session *s = ctx;
    struct event e = session_event(s, EVENT_ATTEMPT_STARTED);

    s->started = true;
    job_home_note_attempt(&s->home, local_cgroup(s->local), local_keeper(s->local), pid);
    e.started.pid = pid;
    e.started.intent = s->intent;
    STR_COPY(e.started.log, s->log_path);
    pump_input(s->pump, &e);
}

static void on_start_failed(void *ctx, int error)
{
    struct session *s = ctx;

    s->start_error = error;
    say_loud(s->say, "cannot run '%s': %s", s->o->argv[0], strerror(error));
}

static void on_exited(void *ctx, pid_t pid, int code, int sig, bool unkept)
{
    struct session *s = ctx;
    struct event e = session_event(s, EVENT_ATTEMPT_EXITED);

    s->exit = (struct exit_fact){
        .pid = pid, .code = code, .signal = sig, .error = s->start_error, .unkept = unkept};
    if (!s->started)
        return; /* the keeper itself did not come up: see on_gone() */
    e.exited = s->exit;
    pump_input(s->pump, &e);
    watch_first_exited(s->watch);
}

static void on_stuck(void *ctx, unsigned count, pid_t pid)
{
    struct session *s = ctx;
    char wchan[64];

    if (proc_read_line(pid, "wchan", wchan, sizeof(wchan)) < 0)
        wchan[0] = '\0';
    say_loud(s->say,
             "SIGKILL does not end %u of the job's processes, e.g. %d%s%s; no new attempt "
             "starts while they exist",
             count, (int)pid, wchan[0] ? ", which waits in the kernel in " : "", wchan);
}

/* It was forked, but had not what it needs (open files, memory) to start the job. */
static void keeper_failed(struct session *s)
{
    static const char why[] = "the job's keeper could not be started";
    struct event intent = session_event(s, EVENT_INTENT);

    say_loud(s->say, "%s", why);
    watch_processes_gone(s->watch);
    give_terminal_back(s);
    intent.seq = s->intent;
    if (s->intent != 0)
        session_report(s, &intent, OUTCOME_FAILED, why);
    else
        session_ask_for_end(s, 0, why);
    session_maybe_finish(s);
}

static void on_gone(void *ctx, bool keeper_lost)
{
    struct session *s = ctx;

    if (keeper_lost)
        say_loud(s->say, "the job's keeper process was killed, and with it the job");
    if (!s->started) {
        keeper_failed(s);
        return;
    }
    watch_processes_gone(s->watch);
    give_terminal_back(s);
    session_input(s, EVENT_ATTEMPT_GONE);
    session_maybe_finish(s);
}

const struct local_handlers session_local_handlers = {.started = on_started,
                                                      .start_failed = on_start_failed,
                                                      .exited = on_exited,
                                                      .stuck = on_stuck,
                                                      .gone = on_gone};

/* Starting an attempt */

static int watch_streams(struct session *s, struct streams *st, struct err *e)
{
    struct watch_options o = {.event = s->event,
                              .log_path = s->log_path,
                              .log_limit = s->o->log_limit,
                              .log_may_fail = s->attempt > 1,
                              .terminal = st->terminal >= 0};
    int r;

    r = watch_new(&o, &watch_handlers, s, &s->watch, e);
    for (unsigned i = 0; i < st->n && r >= 0; i++) {
        r = watch_add_stream(s->watch, st->from[i], st->to[i]);
        if (r >= 0)
            st->from[i] = -1; /* the watch's now */
        else
            err_set(e, r, "cannot pass the output on: %s", strerror(-r));
    }
    return r;
}

/* The environment that attempts have of us. */
struct additions {
    char attempt[64], restarts[64], run[64], step[64];
    struct strbuf cuda, container;
    char *list[7];
};

/* A container runtime reads another name; who uses none does not get it. */
static void add_gpus(const struct session *s, struct additions *a, size_t *n)
{
    const struct intent_facts *how = &s->how;
    _cleanup_strbuf_ struct strbuf rest = {0};

    if (how->n_without == 0)
        return;
    gpus_name_rest(s->gpus, s->n_gpus, how->without, how->n_without, &rest);
    strbuf_addf(&a->cuda, "CUDA_VISIBLE_DEVICES=%s", strbuf_str(&rest));
    a->list[(*n)++] = a->cuda.s;
    if (!getenv("NVIDIA_VISIBLE_DEVICES"))
        return;
    strbuf_addf(&a->container, "NVIDIA_VISIBLE_DEVICES=%s", strbuf_str(&rest));
    a->list[(*n)++] = a->container.s;
}

static void make_additions(const struct session *s, struct additions *a)
{
    size_t n = 0;

    memset(a, 0, sizeof(*a));
    STR_PRINTF(a->attempt, "REKNIT_ATTEMPT=%" PRIu32, s->attempt);
    STR_PRINTF(a->restarts, "REKNIT_RESTART_COUNT=%" PRIu32, s->attempt - 1);
    STR_PRINTF(a->run, "REKNIT_RUN=%s", s->home.run_id);
    a->list[n++] = a->attempt;
    a->list[n++] = a->restarts;
    a->list[n++] = a->run;
    if (s->how.after_step != STEP_NONE) {
        STR_PRINTF(a->step, "REKNIT_FAILED_AFTER_STEP=%" PRId64, s->how.after_step);
        a->list[n++] = a->step;
    }
    add_gpus(s, a, &n);
}

static void additions_done(struct additions *a)
{
    strbuf_done(&a->cuda);
    strbuf_done(&a->container);
}

static int launch(struct session *s, const struct streams *st, struct err *e)
{
    __attribute__((cleanup(additions_done))) struct additions add;
    char cgroup[64];
    struct local_spec spec = {.argv = s->o->argv,
                              .env = add.list,
                              .in = st->job[0] < 0 ? STDIN_FILENO : st->job[0],
                              .out = st->job[1],
                              .err = st->job[2],
                              .terminal = st->terminal,
                              .lock = s->home.lock,
                              .restore = s->terminal.interactive ? s->terminal.user : -1,
                              .saved = s->terminal.saved,
                              .cgroup_name = cgroup};
    int r;

    make_additions(s, &add);
    snprintf(cgroup, sizeof(cgroup), "reknit-%s", s->home.run_id);
    r = local_start(s->local, &spec, e);
    if (r < 0)
        return r;
    job_home_note_attempt(&s->home, local_cgroup(s->local), local_keeper(s->local), 0);
    watch_set_root(s->watch, local_keeper(s->local));
    return 0;
}

static void name_log(struct session *s)
{
    if (s->o->log_dir)
        STR_PRINTF(s->log_path, "%s/%s.run-%u.attempt-%" PRIu32 ".log", s->o->log_dir, s->o->name,
                   s->home.run, s->attempt);
    else
        STR_PRINTF(s->log_path, "%s/attempt-%" PRIu32 ".log", s->home.run_path, s->attempt);
}

/* Compiling the catalogue takes a fraction of a second: the job runs already meanwhile. */
static int start_scanning(struct session *s, struct err *e)
{
    int r = s->matcher ? 0 : matcher_new(s->catalog, &s->matcher, e);

    if (r >= 0)
        watch_set_matcher(s->watch, s->matcher);
    return r;
}

int session_start_attempt(struct session *s, const struct event *start, struct err *e)
{
    _cleanup_streams_ struct streams st;
    struct watch *last;
    int r;

    s->attempt = start ? start->attempt : 1;
    s->intent = start ? start->seq : 0;
    s->how = start ? start->intended : (struct intent_facts){.after_step = STEP_NONE};
    s->started = false;
    s->start_error = 0;
    name_log(s);
    if (s->attempt == 1)
        say(s->say, "job %s, attempt 1; its output is kept in %s", s->o->name, s->log_path);
    else
        say(s->say, "attempt %" PRIu32 " starts", s->attempt);
    r = streams_open(&s->terminal, &st);
    if (r < 0)
        return err_set(e, r, "cannot make the job's streams: %s", strerror(-r));
    last = TAKE(s->watch);
    r = watch_streams(s, &st, e);
    if (r >= 0)
        r = launch(s, &st, e);
    if (r < 0) { /* its streams are at their end, and have no scanner */
        watch_free(s->watch);
        s->watch = last;
        return r;
    }
    if (last)
        watch_inherit(s->watch, last);
    watch_free(last);
    s->master = take_fd(&st.master);
    say_set_alone(s->say, false);
    terminal_enter(&s->terminal);
    say_set_raw(s->say, s->terminal.raw);
    if (s->terminal.interactive && s->master >= 0)
        s->keys = keys_new(s->event, &s->terminal, s->master);
    return start_scanning(s, e);
}

/* Intents */

static int on_start_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *s = userdata;
    struct event intent = s->start;
    struct err e = {0};

    s->start.seq = 0;
    if (intent.seq == 0 || s->ended)
        return 0;
    if (!job_home_is_held(&s->home)) {
        say_loud(s->say,
                 "%s/lock is gone: another copy of the job may run, so none is started here",
                 s->home.path);
        session_ask_for_end(s, 0, "its lock was deleted; another copy may run");
        return 0;
    }
    if (session_start_attempt(s, &intent, &e) < 0)
        session_report(s, &intent, OUTCOME_FAILED, e.text);
    return 0;
}

static void plan_start(struct session *s, const struct event *intent)
{
    s->start = *intent;
    timer_arm(s->timer, pump_to_mono(s->pump, intent->intended.not_before));
}

int session_add_start_timer(struct session *s)
{
    return timer_new(s->event, on_start_time, s, &s->timer);
}

static void inspect(struct session *s, const struct event *intent)
{
    char path[PATH_MAX];
    int r = s->watch ? watch_inspect(s->watch, path, sizeof(path)) : -ESRCH;

    session_report(s, intent, r < 0 ? OUTCOME_FAILED : OUTCOME_DONE, r < 0 ? strerror(-r) : path);
}

void session_carry_out(struct session *s, const struct event *intent)
{
    switch (intent->intended.intent) {
    case INTENT_INSPECT:
        inspect(s, intent);
        break;
    case INTENT_KILL: /* its result is ATTEMPT_GONE */
        local_kill(s->local, LOCAL_ALL, (int)intent->intended.signal, intent->intended.grace);
        break;
    case INTENT_START:
        plan_start(s, intent);
        break;
    default: /* what only a scheduler is asked for */
        break;
    }
}
