/* SPDX-License-Identifier: Apache-2.0 */

/* Wires the parts together: the pump in the middle, the keeper (action) and the watch (source) on
 * both sides, the story and the narrator beside it.
 *
 * The order at the end of an attempt: the keeper says that the first process exited, then that no
 * process is left; the watch says that the output was read to its end. Each is an input. Core
 * judges, decides, and asks for the next START or says JOB_ENDED; that ends the loop.
 *
 * While the pump is tilted (the journal cannot be written) no decision is carried out, so none is
 * told either: it waits, as its intents do in the pump. Then the end of the attempt is the end of
 * the run. For that end some room was kept on the disk: if it suffices, what was decided about the
 * end holds after all; if not, the exit status is the job's own. What the user asks for is done
 * here, without core. */

#include "base/log.h"
#include "base/sig.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/session_parts.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define WAITING_MAX  256   /* decisions and what follows, while no attempt can start */
#define MACHINES_MAX 10000 /* more nodes, or GPUs in one of them, are a slip */

struct event session_event(const struct session *s, enum event_kind kind)
{
    struct event e = {.kind = kind, .attempt = s->attempt};

    STR_COPY(e.job, s->o->name);
    return e;
}

void session_input(struct session *s, enum event_kind kind)
{
    struct event e = session_event(s, kind);

    pump_input(s->pump, &e);
}

void session_report(struct session *s, const struct event *intent, enum outcome outcome,
                    const char *detail)
{
    struct event e = session_event(s, EVENT_RESULT);

    e.attempt = intent->attempt;
    e.result.intent = intent->seq;
    e.result.outcome = outcome;
    STR_COPY(e.result.detail, detail);
    pump_input(s->pump, &e);
}

static int exit_status_of(const struct exit_fact *x)
{
    return sig_status(x->code, x->signal);
}

static void leave(struct session *s, int status)
{
    size_t left = s->watch ? watch_undelivered(s->watch) : 0;

    if (left > 0)
        say_loud(s->say, "the last %zu bytes of the output were taken by nobody; they are in %s",
                 left, s->log_path);
    sd_event_exit(s->event, status);
}

void session_maybe_finish(struct session *s)
{
    bool idle = local_is_idle(s->local);
    bool delivered = !s->watch || watch_is_delivered(s->watch);

    if (idle && !delivered && s->interrupts > 0)
        session_hurry(s);
    delivered |= s->impatient || s->interrupts > 1;
    if (s->ended && (!idle || delivered)) {
        leave(s, s->end.exit_code);
    } else if (pump_is_tilted(s->pump) && idle && delivered) {
        leave(s, exit_status_of(&s->exit)); /* see end_tilted() */
    }
}

void session_ask_for_end(struct session *s, int sig, const char *who)
{
    struct event e = session_event(s, EVENT_OPERATOR);

    e.request = (struct request_facts){.request = REQUEST_INTERRUPT, .signal = sig};
    str_sanitize(e.request.who, sizeof(e.request.who), who, strlen(who));
    pump_input(s->pump, &e);
}

bool session_never_ran(const struct session *s)
{
    return s->start_error != 0 && s->attempt == 1;
}

static void take_event(struct session *s, const struct event *e)
{
    story_add(&s->story, e);
    if (!s->begun)
        return;
    if (!session_never_ran(s))
        session_tell(s, e);
    if (e->kind == EVENT_JOB_ENDED) {
        s->ended = true;
        s->end = e->ended;
        if (!s->closing)
            session_maybe_finish(s);
    }
}

static bool is_decided(enum event_kind kind)
{
    return kind == EVENT_DECISION || kind == EVENT_INTENT || kind == EVENT_JOB_ENDED;
}

static void on_happened(void *ctx, const struct event *e)
{
    struct session *s = ctx;

    if (!s->begun || !pump_is_tilted(s->pump) || !is_decided(e->kind)) {
        take_event(s, e);
        return;
    }
    if (e->kind == EVENT_DECISION)
        session_tell_undecided(s);
    s->end_waits |= e->kind == EVENT_JOB_ENDED;
    if (s->waiting.n < WAITING_MAX)
        *VEC_PUSH(&s->waiting) = *e;
}

/* What was decided while the journal could not be written is in it now. */
static void take_waiting(struct session *s)
{
    for (size_t i = 0; i < s->waiting.n; i++)
        take_event(s, &s->waiting.v[i]);
    s->waiting.n = 0;
}

static void on_tilted(void *ctx, const struct err *why)
{
    struct session *s = ctx;

    if (!s->begun) {
        s->untold = why ? *why : (struct err){0};
        return;
    }
    if (s->closing)
        return;
    if (why)
        say_loud(s->say,
                 "the journal cannot be written (%s): the job goes on, but nothing is done "
                 "about it until it can",
                 why->text);
    else
        say_loud(s->say, "the journal can be written again");
    if (!why)
        take_waiting(s);
    session_maybe_finish(s);
}

static void on_stalled(void *ctx, usec_t how_long)
{
    struct session *s = ctx;
    char text[DURATION_TEXT_MAX];

    say(s->say, "reknit did not run for %s; that time is not held against the job",
        duration_format(how_long, text));
}

static void on_intent(void *ctx, const struct event *intent)
{
    session_carry_out(ctx, intent);
}

static void on_past(void *ctx, const struct event *e)
{
    struct session *s = ctx;

    story_add(&s->story, e);
}

static const struct pump_handlers pump_handlers = {.past = on_past,
                                                   .happened = on_happened,
                                                   .intent = on_intent,
                                                   .tilted = on_tilted,
                                                   .stalled = on_stalled};

/* From beginning to end */

static int set_up_loop(struct session *s, struct err *e)
{
    int r = sd_event_default(&s->event);

    if (r >= 0) {
        s->say = say_new(s->event, s->o->quiet);
        s->local = local_new(s->event, &session_local_handlers, s);
        r = s->say && s->local ? 0 : -ENOMEM;
    }
    return r < 0 ? err_set(e, r, "event loop: %s", strerror(-r)) : 0;
}

static int set_up(struct session *s, struct err *e)
{
    int r = set_up_loop(s, e); /* first: it ignores SIGXFSZ, and what follows writes files */

    if (r >= 0)
        r = session_load_policy(s, e);
    if (r >= 0)
        r = catalog_load(s->o->catalogs, s->o->n_catalogs, &s->catalog, e);
    if (r >= 0 && s->o->n_catalogs > 0) /* the user's patterns may be wrong; ours are tested */
        r = matcher_new(s->catalog, &s->matcher, e);
    if (r >= 0 && s->o->log_dir)
        r = state_make_folders(s->o->log_dir, e);
    if (r >= 0)
        r = session_open_state(s, e);
    if (r < 0)
        return r;
    terminal_init(&s->terminal);
    r = session_add_signals(s);
    if (r >= 0)
        r = session_add_start_timer(s);
    if (r < 0)
        return err_set(e, r, "event loop: %s", strerror(-r));
    return pump_new(s->event, s->journal, &pump_handlers, s, &s->pump, e);
}

static void tear_down(struct session *s)
{
    keys_free(s->keys);
    closep(&s->master);
    sd_event_source_disable_unref(s->timer);
    sd_event_source_disable_unref(s->hurry);
    pump_free(s->pump);
    watch_free(s->watch);
    local_free(s->local);
    terminal_done(&s->terminal);
    say_free(s->say);
    sd_event_unref(s->event);
    journal_free(s->journal);
    job_home_close(&s->home);
    VEC_DONE(&s->waiting);
    story_done(&s->story);
    matcher_free(s->matcher);
    catalog_free(s->catalog);
}

static void describe_job(struct session *s, struct job_facts *ret)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    char cwd[PATH_MAX], host[NODE_NAME_LEN] = "";
    const struct passwd *user = getpwuid(geteuid());

    for (size_t i = 0; s->o->argv[i]; i++) {
        strbuf_adds(&b, i ? " " : "");
        strbuf_add_shell_word(&b, s->o->argv[i]);
    }
    str_sanitize(ret->command, sizeof(ret->command), b.s, b.len);
    if (getcwd(cwd, sizeof(cwd)))
        str_sanitize(ret->directory, sizeof(ret->directory), cwd, strlen(cwd));
    if (user)
        str_sanitize(ret->user, sizeof(ret->user), user->pw_name, strlen(user->pw_name));
    if (gethostname(host, sizeof(host) - 1) == 0)
        str_sanitize(ret->host, sizeof(ret->host), host, strlen(host));
    STR_COPY(ret->program, "reknit " REKNIT_VERSION);
    ret->run = s->home.run;
}

static uint32_t count_from(const char *const names[])
{
    long long n;

    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && str_to_i64(value, &n) == 0 && n > 0 && n <= MACHINES_MAX)
            return (uint32_t)n;
    }
    return 0;
}

/* How large the job is: for the budgets that protect others, and for keeping a GPU out of it. */
static void measure_job(struct session *s, struct job_facts *ret)
{
    static const char *const nodes[] = {"SLURM_JOB_NUM_NODES", "SLURM_NNODES", NULL};
    static const char *const gpus[] = {"SLURM_GPUS_ON_NODE", NULL};
    struct gpu_places places = {.visible = getenv("CUDA_VISIBLE_DEVICES"),
                                .order = getenv("CUDA_DEVICE_ORDER")};
    uint32_t here;

    s->n_gpus = gpus_list(&places, s->gpus);
    for (uint32_t i = 0; i < s->n_gpus; i++)
        STR_COPY(ret->devices[i], s->gpus[i].name);
    ret->n_devices = s->n_gpus;
    here = s->n_gpus > 0 ? s->n_gpus : count_from(gpus);
    ret->nodes = count_from(nodes);
    if (here <= MACHINES_MAX)
        ret->gpus = here * (ret->nodes > 0 ? ret->nodes : 1);
}

/* A job of which nothing can be recorded is not started: nothing could be done for it later. */
static int begin(struct session *s, struct err *ret)
{
    const struct story_run *last = story_last_run(&s->story);
    struct event e = session_event(s, EVENT_POLICY);

    if (last && !last->over && !s->archived)
        session_input(s, EVENT_RUNNER_LOST);
    e.job[0] = '\0';
    e.policy = s->policy;
    pump_input(s->pump, &e);
    e = session_event(s, EVENT_JOB_SEEN);
    describe_job(s, &e.seen);
    measure_job(s, &e.seen);
    pump_input(s->pump, &e);
    if (s->archived) {
        e = session_event(s, EVENT_LEARNED);
        e.learned = s->learned;
        pump_input(s->pump, &e);
    }
    pump_settle(s->pump);
    s->begun = !pump_is_tilted(s->pump);
    if (s->begun) {
        job_home_keep_room(&s->home);
        return 0;
    }
    *ret = s->untold;
    return err_prefix(ret, ret->code, "%s/journal.db", s->home.path);
}

/* The first attempt did not start: its run is over, and not lost. */
static int give_up(struct session *s, const struct err *why)
{
    struct err e = {0};

    log_error("%s", why->text);
    if (!s->started) {
        session_ask_for_end(s, 0, why->text);
        pump_settle(s->pump);
    }
    pump_close(s->pump, &e);
    session_sum_up(s, EXIT_TROUBLE, why->text);
    return EXIT_TROUBLE;
}

/* Nothing of this run is recorded. */
static int not_begun(struct session *s, const struct err *why, int status, bool advise)
{
    log_error("%s", why->text);
    if (advise)
        session_advise(s, why->code);
    session_sum_up(s, status, why->text);
    return status;
}

/* No attempt follows, for want of a journal, so what core knows of the job ends with this one. What
 * waits is told when the room that was kept suffices for it; returns the exit status. */
static int end_tilted(struct session *s)
{
    int status = exit_status_of(&s->exit);
    struct err e = {0};
    bool cut;

    pump_settle(s->pump);
    cut = !s->end_waits;
    if (cut)
        session_ask_for_end(s, 0, "the journal cannot be written");
    pump_settle(s->pump);
    s->closing = true;
    job_home_give_room(&s->home);
    if (cut && status != 0)
        say_loud(s->say, "the job's processes are gone; while the journal cannot be written "
                         "nothing is decided, so it is not restarted");
    if (pump_close(s->pump, &e) < 0) {
        say_loud(s->say, "the end of this run could not be recorded (%s)", e.text);
        story_last_run(&s->story)->unrecorded = true;
        return status;
    }
    take_waiting(s);
    return s->ended ? s->end.exit_code : status;
}

static int loop(struct session *s)
{
    struct err e = {0};
    int status;

    session_tell_lost_run(s);
    session_tell_lost_events(s);
    if (begin(s, &e) < 0)
        return not_begun(s, &e, EXIT_TROUBLE, true);
    if (session_start_attempt(s, NULL, &e) < 0)
        return give_up(s, &e);
    status = sd_event_loop(s->event);
    session_release_signals();
    if (status >= 0 && pump_is_tilted(s->pump) && local_is_idle(s->local))
        status = end_tilted(s);
    else
        pump_close(s->pump, &e);
    if (status < 0)
        status = EXIT_TROUBLE;
    session_sum_up(s, status, NULL);
    return status;
}

int session_run(const struct session_options *o)
{
    struct session s = {.o = o,
                        .home = {.lock = -1},
                        .master = -1,
                        .terminal = {.user = -1},
                        .story = {.last_run_only = true}};
    struct err e = {0};
    int status;

    if (session_find_command(o->argv[0], &e) < 0)
        return not_begun(&s, &e, e.code == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE, false);
    if (set_up(&s, &e) >= 0)
        status = loop(&s);
    else
        status = not_begun(&s, &e, EXIT_TROUBLE, s.no_state);
    tear_down(&s);
    return status;
}
