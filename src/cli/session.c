/* SPDX-License-Identifier: Apache-2.0 */

/* Wires the parts together: the pump in the middle, the keeper (action) and the watch (source) on
 * both sides, the story and the narrator beside it.
 *
 * The order at the end of an attempt: the keeper says that the first process exited, then that no
 * process is left; the watch says that the output was read to its end. Each is an input. Core
 * judges, decides, and asks for the next START or says JOB_ENDED; that ends the loop.
 *
 * While the pump is tilted (the journal cannot be written) no decision is carried out. Then the
 * end of the attempt is the end of the run, with the job's own exit status; and what the user asks
 * for is done here, without core. */

#include "cli/session.h"

#include "action/local.h"
#include "base/log.h"
#include "base/proctree.h"
#include "cli/chronicle.h"
#include "cli/cli.h"
#include "cli/narrate.h"
#include "cli/say.h"
#include "cli/state.h"
#include "cli/streams.h"
#include "cli/watch.h"
#include "config/policy_file.h"
#include "extract/catalog.h"
#include "pump/pump.h"
#include "source/keys.h"
#include "source/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_BYTES_MAX (64 << 20) /* looked at when a run begins */

struct session {
    const struct session_options *o;
    sd_event *event;
    struct job_home home;
    struct journal *journal;
    struct catalog *catalog;
    struct matcher *matcher;
    struct pump *pump;
    struct local *local;
    struct say *say;
    struct story story;
    struct terminal terminal;
    struct policy policy;

    struct watch *watch; /* of the present or last attempt */
    struct keys *keys;
    int master;       /* of the attempt's pseudo-terminal, -1 = none */
    uint32_t attempt; /* its number */
    uint64_t intent;  /* the START that asked for it, 0 = the first */
    bool started;     /* its first process runs or ran */
    char log_path[PATH_MAX];
    int start_error;       /* errno of an exec that failed, 0 = none */
    struct exit_fact exit; /* of its first process */

    struct event start;     /* an INTENT_START that waits for its time */
    sd_event_source *timer; /* for that */
    unsigned interrupts;    /* how often the user asked for the end */
    int interrupt_signal;
    struct ended_facts end;
    bool unread; /* nobody reads our output any more; that was said */
    bool ended;  /* JOB_ENDED was committed */
    bool begun;  /* what happens is about this run; before, it is the end of a lost one */
};

static struct event about(const struct session *s, enum event_kind kind)
{
    struct event e = {.kind = kind, .attempt = s->attempt};

    STR_COPY(e.job, s->o->name);
    return e;
}

static void input(struct session *s, enum event_kind kind)
{
    struct event e = about(s, kind);

    pump_input(s->pump, &e);
}

static void report_result(struct session *s, const struct event *intent, enum outcome outcome,
                          const char *detail)
{
    struct event e = about(s, EVENT_RESULT);

    e.attempt = intent->attempt;
    e.result.intent = intent->seq;
    e.result.outcome = outcome;
    STR_COPY(e.result.detail, detail);
    pump_input(s->pump, &e);
}

static int exit_status_of(const struct exit_fact *x)
{
    return x->signal ? 128 + x->signal : x->code;
}

/* Nothing more will happen: leaves the loop. Called whenever one of the conditions may be new. */
static void maybe_finish(struct session *s)
{
    bool idle = local_is_idle(s->local), drained = !s->watch || watch_is_drained(s->watch);

    if (s->ended && (!idle || drained)) {
        sd_event_exit(s->event, s->end.exit_code);
    } else if (pump_is_tilted(s->pump) && idle && drained) {
        say_loud(s->say, "the job's processes are gone; without a journal nothing is decided, so "
                         "it is not restarted");
        sd_event_exit(s->event, exit_status_of(&s->exit));
    }
}

/* When the job neither writes nor lives any more. */
static void give_terminal_back(struct session *s)
{
    if (!local_is_idle(s->local) || !watch_is_drained(s->watch))
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
    struct event e = about(s, EVENT_SIGNAL);

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

static void ask_for_end(struct session *s, int sig, const char *who)
{
    struct event e = about(s, EVENT_OPERATOR);

    e.request = (struct request_facts){.request = REQUEST_INTERRUPT, .signal = sig};
    str_sanitize(e.request.who, sizeof(e.request.who), who, strlen(who));
    pump_input(s->pump, &e);
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

static void on_drained(void *ctx)
{
    struct session *s = ctx;

    give_terminal_back(s);
    say_set_alone(s->say, true);
    input(s, EVENT_LOGS_DRAINED);
    maybe_finish(s);
}

static const struct watch_handlers watch_handlers = {.signal = on_signal,
                                                     .mid_line = on_mid_line,
                                                     .log_trouble = on_log_trouble,
                                                     .reader_gone = on_reader_gone,
                                                     .drained = on_drained};

/* The keeper */

static void on_started(void *ctx, pid_t pid)
{
    struct session *s = ctx;
    struct event e = about(s, EVENT_ATTEMPT_STARTED);

    s->started = true;
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

static void on_exited(void *ctx, pid_t pid, int code, int sig)
{
    struct session *s = ctx;
    struct event e = about(s, EVENT_ATTEMPT_EXITED);

    s->exit = (struct exit_fact){.pid = pid, .code = code, .signal = sig};
    if (!s->started)
        return; /* the keeper itself did not come up: see on_gone() */
    e.exited = s->exit;
    pump_input(s->pump, &e);
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
    struct event intent = about(s, EVENT_INTENT);

    say_loud(s->say, "%s", why);
    watch_processes_gone(s->watch);
    give_terminal_back(s);
    intent.seq = s->intent;
    if (s->intent != 0)
        report_result(s, &intent, OUTCOME_FAILED, why);
    else
        ask_for_end(s, 0, why);
    maybe_finish(s);
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
    input(s, EVENT_ATTEMPT_GONE);
    maybe_finish(s);
}

static const struct local_handlers local_handlers = {.started = on_started,
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
                              .terminal = st->terminal >= 0};
    int r;

    s->watch = watch_free(s->watch);
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

static int launch(struct session *s, const struct streams *st, struct err *e)
{
    char attempt[64], restarts[64], run[64], cgroup[64];
    char *env[] = {attempt, restarts, run, NULL};
    struct local_spec spec = {.argv = s->o->argv,
                              .env = env,
                              .in = st->job[0] < 0 ? STDIN_FILENO : st->job[0],
                              .out = st->job[1],
                              .err = st->job[2],
                              .terminal = st->terminal,
                              .lock = s->home.lock,
                              .restore = s->terminal.interactive ? s->terminal.user : -1,
                              .saved = s->terminal.saved,
                              .cgroup_name = cgroup};
    int r;

    snprintf(attempt, sizeof(attempt), "REKNIT_ATTEMPT=%" PRIu32, s->attempt);
    snprintf(restarts, sizeof(restarts), "REKNIT_RESTART_COUNT=%" PRIu32, s->attempt - 1);
    snprintf(run, sizeof(run), "REKNIT_RUN=%s", s->home.run_id);
    snprintf(cgroup, sizeof(cgroup), "reknit-%s", s->home.run_id);
    r = local_start(s->local, &spec, e);
    if (r < 0)
        return r;
    job_home_note_cgroup(&s->home, local_cgroup(s->local));
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

static int start_attempt(struct session *s, uint32_t number, uint64_t intent, struct err *e)
{
    _cleanup_streams_ struct streams st;
    int r;

    s->attempt = number;
    s->intent = intent;
    s->started = false;
    s->start_error = 0;
    name_log(s);
    if (number == 1)
        say(s->say, "job %s, attempt 1; its output is kept in %s", s->o->name, s->log_path);
    else
        say(s->say, "attempt %" PRIu32 " starts", number);
    r = streams_open(&s->terminal, &st);
    if (r < 0)
        return err_set(e, r, "cannot make the job's streams: %s", strerror(-r));
    r = watch_streams(s, &st, e);
    if (r >= 0)
        r = launch(s, &st, e);
    if (r < 0) { /* its streams are at their end, and have no scanner */
        s->watch = watch_free(s->watch);
        return r;
    }
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
    if (start_attempt(s, intent.attempt, intent.seq, &e) < 0)
        report_result(s, &intent, OUTCOME_FAILED, e.text);
    return 0;
}

static void plan_start(struct session *s, const struct event *intent)
{
    uint64_t due = (uint64_t)pump_to_mono(s->pump, intent->intended.not_before);

    s->start = *intent;
    if (s->timer) {
        sd_event_source_set_time(s->timer, due);
        sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
        return;
    }
    sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, due, 1000, on_start_time, s);
}

static void inspect(struct session *s, const struct event *intent)
{
    char path[PATH_MAX];
    int r = s->watch ? watch_inspect(s->watch, path, sizeof(path)) : -ESRCH;

    report_result(s, intent, r < 0 ? OUTCOME_FAILED : OUTCOME_DONE, r < 0 ? strerror(-r) : path);
}

static void on_intent(void *ctx, const struct event *intent)
{
    struct session *s = ctx;

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
    case INTENT_MAX:
    case INTENT_INVALID:
        break;
    }
}

/* Telling */

static void say_decision(struct session *s, const struct story_attempt *a)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (a->decision.action == ACTION_COMPLETE && a->incident && a->incident->class == CLASS_HEALTHY)
        return; /* the table says it */
    narrate_verdict(a, &b);
    if (b.len > 0)
        strbuf_adds(&b, " - ");
    narrate_decision(a, &b);
    say(s->say, "%s", strbuf_str(&b));
}

static void tell(struct session *s, const struct event *e)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    const struct story_attempt *a = story_last_attempt(story_last_run(&s->story));

    switch (e->kind) {
    case EVENT_FINDING:
        if (narrate_finding(e, &b))
            say(s->say, "%s", strbuf_str(&b));
        break;
    case EVENT_DECISION:
        if (a)
            say_decision(s, a);
        break;
    default:
        break;
    }
}

/* Then what on_start_failed() said is all there is to say: the exit status 126 or 127, as a shell
 * would give it, leads to the verdict and to the stop. */
static bool was_never_run(const struct session *s)
{
    return s->start_error != 0 && s->attempt == 1;
}

static void on_happened(void *ctx, const struct event *e)
{
    struct session *s = ctx;

    story_add(&s->story, e);
    if (!s->begun)
        return;
    if (!was_never_run(s))
        tell(s, e);
    if (e->kind == EVENT_JOB_ENDED) {
        s->ended = true;
        s->end = e->ended;
        maybe_finish(s);
    }
}

static void on_tilted(void *ctx, const struct err *why)
{
    struct session *s = ctx;

    if (why)
        say_loud(s->say,
                 "the journal cannot be written (%s): the job goes on, but nothing is done "
                 "about it until it can",
                 why->text);
    else
        say_loud(s->say, "the journal can be written again");
    maybe_finish(s);
}

static void on_stalled(void *ctx, usec_t how_long)
{
    struct session *s = ctx;
    char text[DURATION_TEXT_MAX];

    say(s->say, "reknit did not run for %s; that time is not held against the job",
        duration_format(how_long, text));
}

static const struct pump_handlers pump_handlers = {
    .happened = on_happened, .intent = on_intent, .tilted = on_tilted, .stalled = on_stalled};

/* Signals */

static void first_interrupt(struct session *s, int sig)
{
    s->interrupt_signal = sig;
    if (local_is_idle(s->local)) {
        say(s->say, "%s: no attempt runs, so this is the end", strsignal(sig));
    } else {
        say(s->say, "%s: passed on to the job; once more ends everything at once", strsignal(sig));
        local_signal(s->local, LOCAL_GROUP, sig);
    }
    ask_for_end(s, sig, "the user");
}

static int on_end_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    if (s->interrupts++ == 0) {
        first_interrupt(s, (int)si->ssi_signo);
    } else {
        say(s->say, "%s again: ending everything", strsignal((int)si->ssi_signo));
        local_kill(s->local, LOCAL_ALL, SIGKILL, 0);
    }
    maybe_finish(s);
    return 0;
}

static int on_pass_signal(sd_event_source *source, const struct signalfd_siginfo *si,
                          void *userdata)
{
    struct session *s = userdata;

    local_signal(s->local, LOCAL_FIRST, (int)si->ssi_signo);
    return 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    if (s->master >= 0)
        terminal_copy_size(&s->terminal, s->master);
    return 0;
}

/* Ctrl-Z: the job is stopped with us, and goes on with us. */
static int on_suspend(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
    struct session *s = userdata;

    local_signal(s->local, LOCAL_ALL, SIGSTOP);
    terminal_leave(&s->terminal);
    raise(SIGSTOP);
    if (!local_is_idle(s->local))
        terminal_enter(&s->terminal);
    say_set_raw(s->say, s->terminal.raw);
    local_signal(s->local, LOCAL_ALL, SIGCONT);
    return 0;
}

static int add_signals(struct session *s)
{
    static const struct {
        int sig;
        sd_event_signal_handler_t handler;
    } signals[] = {
        {SIGINT, on_end_signal},  {SIGTERM, on_end_signal},  {SIGHUP, on_end_signal},
        {SIGQUIT, on_end_signal}, {SIGUSR1, on_pass_signal}, {SIGUSR2, on_pass_signal},
        {SIGWINCH, on_resize},    {SIGTSTP, on_suspend},
    };

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct sigaction now;
        int r;

        sigaction(signals[i].sig, NULL, &now);
        if (now.sa_handler == SIG_IGN) /* nohup, a background job of a script: stays ignored */
            continue;
        r = sd_event_add_signal(s->event, NULL, signals[i].sig | SD_EVENT_SIGNAL_PROCMASK,
                                signals[i].handler, s);
        if (r < 0)
            return r;
    }
    return 0;
}

/* From beginning to end */

static int load_policy(struct session *s, struct err *e)
{
    char found[PATH_MAX];

    policy_default(&s->policy);
    if (s->o->policy_file)
        return policy_load(s->o->policy_file, &s->policy, e);
    if (policy_find(found, sizeof(found)) < 0)
        return 0;
    return policy_load(found, &s->policy, e);
}

static int fold_story(struct session *s, struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = journal_read(s->journal, 0, &cursor, e);

    while (r >= 0 && (r = journal_next(cursor, event, e)) > 0)
        story_add(&s->story, event);
    return r;
}

/* A journal that has grown large is put beside the logs of the run before, and goes with them. What
 * it taught about the job's rhythm is learned anew. Not after a lost run: that is still to be told.
 */
static int archive_journal(struct session *s, const char *path, struct err *e)
{
    const struct story_run *last = story_last_run(&s->story);
    struct stat st;

    if (!last || !last->over || stat(path, &st) < 0 || st.st_size < JOURNAL_BYTES_MAX)
        return 0;
    s->journal = journal_free(s->journal); /* nothing stays in the WAL */
    job_home_archive(&s->home, path);
    story_done(&s->story);
    s->story = (struct story){.last_run_only = true};
    return journal_open(path, JOURNAL_WRITE, &s->journal, e);
}

static int open_state(struct session *s, struct err *e)
{
    char path[PATH_MAX];
    int r = state_journal_path(s->o->name, path, e);

    if (r >= 0)
        r = job_home_open(s->o->name, &s->home, e);
    if (r >= 0)
        r = journal_open(path, JOURNAL_WRITE, &s->journal, e);
    if (r >= 0)
        r = fold_story(s, e);
    return r < 0 ? r : archive_journal(s, path, e);
}

static int set_up(struct session *s, struct err *e)
{
    int r = load_policy(s, e);

    if (r >= 0)
        r = catalog_load(s->o->catalogs, s->o->n_catalogs, &s->catalog, e);
    if (r >= 0 && s->o->n_catalogs > 0) /* the user's patterns may be wrong; ours are tested */
        r = matcher_new(s->catalog, &s->matcher, e);
    if (r >= 0 && s->o->log_dir)
        r = state_make_folders(s->o->log_dir, e);
    if (r >= 0)
        r = open_state(s, e);
    if (r < 0)
        return r;
    terminal_init(&s->terminal);
    r = sd_event_default(&s->event);
    if (r < 0)
        return err_set(e, r, "event loop: %s", strerror(-r));
    s->say = say_new(s->event, s->o->quiet);
    s->local = local_new(s->event, &local_handlers, s);
    r = s->local ? add_signals(s) : -ENOMEM;
    if (r < 0)
        return err_set(e, r, "event loop: %s", strerror(-r));
    return pump_new(s->event, s->journal, &pump_handlers, s, &s->pump, e);
}

static void tear_down(struct session *s)
{
    keys_free(s->keys);
    closep(&s->master);
    sd_event_source_disable_unref(s->timer);
    pump_free(s->pump);
    watch_free(s->watch);
    local_free(s->local);
    terminal_done(&s->terminal);
    say_free(s->say);
    sd_event_unref(s->event);
    journal_free(s->journal);
    job_home_close(&s->home);
    story_done(&s->story);
    matcher_free(s->matcher);
    catalog_free(s->catalog);
}

/* The last run was killed, or its machine went down. */
static void tell_lost_run(struct session *s)
{
    struct story_run *run = story_last_run(&s->story);
    const struct story_attempt *a = story_last_attempt(run);
    _cleanup_strbuf_ struct strbuf b = {0};
    char ago[DURATION_TEXT_MAX];

    if (!run || run->over)
        return;
    strbuf_addf(&b, "the last run of this job was killed %s ago",
                duration_format(now_us() - s->story.last_event, ago));
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

static void describe_job(struct session *s, struct job_facts *ret)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    char cwd[PATH_MAX], host[NODE_NAME_LEN] = "";
    const struct passwd *user = getpwuid(geteuid());

    for (size_t i = 0; s->o->argv[i]; i++)
        strbuf_addf(&b, "%s%s", i ? " " : "", s->o->argv[i]);
    str_sanitize(ret->command, sizeof(ret->command), b.s, b.len);
    if (getcwd(cwd, sizeof(cwd)))
        str_sanitize(ret->directory, sizeof(ret->directory), cwd, strlen(cwd));
    if (user)
        str_sanitize(ret->user, sizeof(ret->user), user->pw_name, strlen(user->pw_name));
    if (gethostname(host, sizeof(host) - 1) == 0)
        str_sanitize(ret->host, sizeof(ret->host), host, strlen(host));
    STR_COPY(ret->program, "reknit " REKNIT_VERSION);
}

static void begin(struct session *s)
{
    const struct story_run *last = story_last_run(&s->story);
    struct event e = about(s, EVENT_POLICY);

    if (last && !last->over)
        input(s, EVENT_RUNNER_LOST);
    e.job[0] = '\0';
    e.policy = s->policy;
    pump_input(s->pump, &e);
    e = about(s, EVENT_JOB_SEEN);
    describe_job(s, &e.seen);
    pump_input(s->pump, &e);
    pump_settle(s->pump);
}

static void say_line(void *ctx, const char *text)
{
    struct session *s = ctx;

    say(s->say, "%s", text);
}

static void print_json(struct session *s, const struct story_run *run)
{
    json_t *j = chronicle_run_json(&s->story, run, false, false);

    say_free(s->say); /* what was said comes before */
    s->say = NULL;
    json_dumpf(j, stderr, JSON_SORT_KEYS | JSON_COMPACT);
    fputc('\n', stderr);
    json_decref(j);
}

static void sum_up(struct session *s)
{
    struct story_run *run = story_last_run(&s->story);

    if (!run || run->attempts.n == 0 || was_never_run(s))
        return;
    story_account(run, pump_now(s->pump));
    if (s->o->json) {
        print_json(s, run);
        return;
    }
    narrate_summary(run, say_line, s);
    if (run->over && run->end.action == ACTION_STOP && s->interrupts == 0)
        say(s->say, "stopped; 'reknit explain %s' tells why", s->o->name);
}

/* The first attempt did not start: its run is over, and not lost. */
static int give_up(struct session *s, const struct err *why)
{
    struct err e = {0};

    log_error("%s", why->text);
    if (!s->started) {
        ask_for_end(s, 0, why->text);
        pump_settle(s->pump);
    }
    pump_close(s->pump, &e);
    return EXIT_TROUBLE;
}

static int loop(struct session *s)
{
    struct err e = {0};
    int status;

    tell_lost_run(s);
    begin(s);
    s->begun = true;
    if (start_attempt(s, 1, 0, &e) < 0)
        return give_up(s, &e);
    status = sd_event_loop(s->event);
    pump_close(s->pump, &e);
    sum_up(s);
    if (s->start_error)
        return s->start_error == ENOENT ? 127 : 126;
    return status < 0 ? EXIT_TROUBLE : status;
}

int session_run(const struct session_options *o)
{
    struct session s = {.o = o,
                        .home = {.lock = -1},
                        .master = -1,
                        .terminal = {.user = -1},
                        .story = {.last_run_only = true}};
    struct err e = {0};
    int status = EXIT_TROUBLE;

    if (set_up(&s, &e) < 0)
        log_error("%s", e.text);
    else
        status = loop(&s);
    tear_down(&s);
    return status;
}
