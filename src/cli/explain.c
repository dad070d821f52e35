/* SPDX-License-Identifier: Apache-2.0 */

/* reknit explain: the story of a job, attempt by attempt: what was seen, what was concluded from
 * which lines, what was weighed and dropped, what was decided by which rule, and what came of it.
 * Every text in it was made printable before it was journaled. */

#include "base/log.h"
#include "base/sig.h"
#include "base/str.h"
#include "cli/chronicle.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/narrate.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct verb verb_explain;

#define MARGIN         12
#define EVIDENCE_SHOWN 6
#define RUN_MAX        1000000000
#define SEEN_LATE      (50 * USEC_PER_MSEC) /* one whose end was known as soon as its beginning */

struct page {
    struct report_style style;
    usec_t origin;     /* times are told from here */
    const char *state; /* in place of the run's own; NULL = none */
};

static void paint(const struct page *p, const char *code, const char *text)
{
    if (p->style.colour)
        printf("\033[%sm%s\033[0m", code, text);
    else
        fputs(text, stdout);
}

/* A key in the margin, and text beside it, `indent` to the right, that goes on below itself. */
static void entry_at(const struct page *p, const char *key, int indent, const char *text)
{
    char margin[MARGIN + 1];
    size_t columns = (size_t)(p->style.width - MARGIN - indent);

    while (*text == ' ')
        text++;
    if (strlen(key) >= MARGIN) {
        paint(p, "2", key);
        putchar('\n');
        key = "";
    }
    do {
        size_t n = str_fit(text, columns);

        snprintf(margin, sizeof(margin), "%-*s", MARGIN, key);
        paint(p, "2", margin);
        printf("%*s%.*s\n", indent, "", (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
        key = "";
    } while (*text);
}

static void entry(const struct page *p, const char *key, const char *text)
{
    entry_at(p, key, 0, text);
}

static void __attribute__((format(printf, 3, 4)))
entryf(const struct page *p, const char *key, const char *format, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    entry(p, key, text);
}

/* "+1min 02s" since the attempt began. */
static const char *since(const struct page *p, usec_t t, char buf[DURATION_TEXT_MAX + 1])
{
    buf[0] = '+';
    duration_format(t - p->origin, buf + 1);
    return buf;
}

static void show_lost_events(const struct page *p, const struct story *s)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    narrate_lost_events(s->lost_events, &b);
    entry(p, "incomplete", strbuf_str(&b));
}

static void show_place(const struct page *p, const struct job_facts *f)
{
    entryf(p, "job", "%s, '%s', %" PRIu32 " node%s in partition %s%s%s", f->label, f->name,
           f->nodes, f->nodes == 1 ? "" : "s", f->partition, f->account[0] ? ", account " : "",
           f->account);
}

static void show_head(const struct page *p, const struct story *s, const struct story_run *run,
                      bool alive)
{
    _cleanup_strbuf_ struct strbuf state = {0};
    char when[TIMESTAMP_TEXT_MAX], wall[DURATION_TEXT_MAX];

    narrate_state(run, alive, &state);
    paint(p, "1", s->job);
    printf("  %s", p->state ? p->state : strbuf_str(&state));
    if (run->over && !run->lost && run->end.exit_code >= 0)
        printf(", exit status %d", (int)run->end.exit_code);
    printf("; %zu attempt%s in %s", run->attempts.n, run->attempts.n == 1 ? "" : "s",
           duration_format(run->wall, wall));
    if (!story_has_steps(run))
        fputs("; no steps seen", stdout);
    else if (run->wall > 0)
        printf("; goodput %d %%", (int)(run->useful * 100 / run->wall));
    fputs("\n\n", stdout);
    if (run->seen.command[0])
        entry(p, "command", run->seen.command);
    entry(p, "folder", run->seen.directory);
    if (run->seen.scheduled)
        show_place(p, &run->seen);
    entryf(p, run->seen.scheduled ? "seen" : "began", "%s, by %s%s%s, %s",
           timestamp_format(run->began, when), run->seen.user, run->seen.host[0] ? " on " : "",
           run->seen.host, run->seen.program);
    if (run->policy.name[0])
        entry(p, "policy", run->policy.name);
    if (run->mode.why[0])
        entryf(p, "mode", "%s: %s", mode_name(run->mode.mode), run->mode.why);
    if (s->lost_events > 0)
        show_lost_events(p, s);
}

static void show_progress(const struct page *p, const struct story_attempt *a)
{
    _cleanup_strbuf_ struct strbuf b = {0};

    if (a->loaded_step != STEP_NONE)
        strbuf_addf(&b, "resumed from a checkpoint at step %" PRId64 "; ", a->loaded_step);
    if (a->steps_seen == 0) {
        strbuf_adds(&b, "no step was seen");
    } else {
        strbuf_adds(&b, "steps ");
        narrate_steps(a, &b);
    }
    if (a->checkpoint_step != STEP_NONE)
        strbuf_addf(&b, "; last checkpoint at step %" PRId64, a->checkpoint_step);
    entry(p, "progress", strbuf_str(&b));
}

static void fact_text(const struct event *e, bool scheduled, struct strbuf *out)
{
    char name[SIG_NAME_LEN], sender[SIG_SENDER_LEN];

    if (scheduled && e->kind != EVENT_FINDING) {
        narrate_scheduled(e, out);
        return;
    }
    switch (e->kind) {
    case EVENT_FINDING:
        strbuf_addf(out, "found %s: %s", finding_name(e->finding.finding), e->finding.why);
        break;
    case EVENT_OPERATOR:
        if (e->request.signal == 0)
            strbuf_addf(out, "no attempt could be started: %s", e->request.who);
        else
            strbuf_addf(out, "asked to end it: %s", sig_sender(e->request.signal, sender));
        break;
    case EVENT_INTENT:
        if (e->intended.intent == INTENT_KILL)
            strbuf_addf(out, "ended its processes with %s",
                        sig_name((int)e->intended.signal, name));
        break;
    case EVENT_RESULT:
        if (e->result.outcome == OUTCOME_DONE)
            strbuf_addf(out, "looked at its processes: %s", e->result.detail);
        else
            strbuf_addf(out, "%s: %s", outcome_name(e->result.outcome), e->result.detail);
        break;
    default:
        break;
    }
}

static void show_facts(const struct page *p, bool scheduled, const struct story_attempt *a)
{
    VEC_FOREACH (&a->facts, e) {
        _cleanup_strbuf_ struct strbuf b = {0};
        char when[DURATION_TEXT_MAX + 1];

        fact_text(*e, scheduled, &b);
        if (b.len > 0)
            entry(p, since(p, (*e)->time_us, when), strbuf_str(&b));
    }
    if (a->exited) {
        _cleanup_strbuf_ struct strbuf b = {0};

        strbuf_adds(&b, scheduled ? "the job: " : "its first process: ");
        narrate_exit(&a->exit, &b);
        if (a->put_down)
            strbuf_addf(&b, ", sent by reknit%s",
                        !a->forced       ? ""
                        : a->asked_again ? " when it was asked again"
                                         : " after the grace");
        entry(p, "exit", strbuf_str(&b));
    }
    if (a->lost)
        entry(p, "exit", "reknit was killed, and the attempt with it");
}

/* Which files a job of the cluster wrote, journals of older releases do not say. */
static const char *file_of(const struct incident *i, const struct evidence_line *l, bool scheduled)
{
    const char *path = incident_path(i, l);

    if (path[0])
        return path;
    if (scheduled)
        return "a log of it";
    return l->file == 1 ? "stderr" : "output";
}

static void show_evidence(const struct page *p, const struct incident *i, bool scheduled)
{
    for (uint32_t k = 0; k < i->n_evidence && k < EVIDENCE_SHOWN; k++) {
        const struct evidence_line *l = &i->evidence[k];
        char count[32] = "", place[LOG_PATH_LEN + 32] = "";

        if (l->count > 1)
            snprintf(count, sizeof(count), ", %" PRIu64 " times", l->count);
        if (l->line > 0)
            snprintf(place, sizeof(place), "%s, line %" PRIu64 ", ", file_of(i, l, scheduled),
                     l->line);
        entryf(p, k == 0 ? "evidence" : "", "%s%s%s%s%s", place, role_name(l->role),
               l->signature[0] ? " " : "", l->signature, count);
        entry_at(p, "", 2, l->text);
    }
}

static void show_verdict(const struct page *p, bool scheduled, const struct story_attempt *a)
{
    const struct incident *i = a->incident;

    if (!i)
        return;
    if (i->class == CLASS_HEALTHY)
        entry(p, "verdict", "healthy");
    else
        entryf(p, "verdict", "%s, %s (%d %%): %s", incident_class_name(i->class),
               cause_name(i->cause), (int)i->confidence, i->summary);
    show_evidence(p, i, scheduled);
    for (uint32_t k = 0; k < i->n_ruled_out; k++)
        entryf(p, k == 0 ? "ruled out" : "", "%s: %s", i->ruled_out[k].what, i->ruled_out[k].why);
}

static void show_decision(const struct page *p, const struct story_attempt *a)
{
    const struct decision_facts *d = &a->decision;

    if (!a->decided)
        return;
    entryf(p, "decision", "%s, by the rule '%s': %s", action_name(d->action), d->rule, d->why);
    if (d->allowed > 0)
        entryf(p, "", "budget: %u of %u used", d->used, d->allowed);
}

static void show_sequel(const struct page *p, const struct story_run *run, size_t i)
{
    const struct story_attempt *a = &run->attempts.v[i];
    char text[DURATION_TEXT_MAX], span[DURATION_TEXT_MAX];

    if (i + 1 < run->attempts.n && a->ended == USEC_NEVER)
        entryf(p, "then", "attempt %" PRIu32 " started; when this one had ended nobody saw",
               run->attempts.v[i + 1].number);
    else if (i + 1 < run->attempts.n)
        entryf(p, "then", "attempt %" PRIu32 " started %s after this one had ended",
               run->attempts.v[i + 1].number,
               duration_format(run->attempts.v[i + 1].started - a->ended, text));
    if (a->span > 0 && a->ended != USEC_NEVER)
        entryf(p, "lost", "%s of its %s produced no step that was kept",
               duration_format(a->span - a->useful, text), duration_format(a->span, span));
    if (a->log[0])
        entry(p, "log", a->log);
}

static void show_span(const struct story_run *run, const struct story_attempt *a)
{
    char after[DURATION_TEXT_MAX], lasted[DURATION_TEXT_MAX], when[TIMESTAMP_TEXT_MAX];

    printf("  %s after the start, ", duration_format(a->started - run->began, after));
    if (a->ended == USEC_NEVER)
        puts(a == &run->attempts.v[run->attempts.n - 1] ? "running" : "its end was not seen");
    else if (a->lost)
        printf("for %s, until reknit was killed about %s\n",
               duration_format(a->ended - a->started, lasted), timestamp_format(a->ended, when));
    else
        printf("for %s\n", duration_format(a->ended - a->started, lasted));
}

static void show_attempt(struct page *p, const struct story_run *run, size_t i)
{
    const struct story_attempt *a = &run->attempts.v[i];
    char head[64];

    p->origin = a->started;
    putchar('\n');
    snprintf(head, sizeof(head), "attempt %" PRIu32, a->number);
    paint(p, "1", head);
    if (run->seen.scheduled && a->ended != USEC_NEVER && a->ended - a->started < SEEN_LATE)
        puts("  had ended when it was first seen");
    else
        show_span(run, a);
    show_progress(p, a);
    show_facts(p, run->seen.scheduled, a);
    show_verdict(p, run->seen.scheduled, a);
    show_decision(p, a);
    show_sequel(p, run, i);
}

static void show_text(const struct story *s, const struct story_run *run, bool alive,
                      const char *state)
{
    struct page p = {.style = report_style_of(stdout), .state = state};

    show_head(&p, s, run, alive);
    for (size_t i = 0; i < run->attempts.n; i++)
        show_attempt(&p, run, i);
    if (run->number > 1)
        printf("\nThis was run %" PRIu32 "; 'reknit explain --run %" PRIu32
               " %s' tells of the one before.\n",
               run->number, run->number - 1, s->job);
}

static void tell_of_no_run(const struct story *s)
{
    _cleanup_strbuf_ struct strbuf lost = {0};

    if (s->lost_events == 0) {
        log_error("the job '%s' never got to run", s->job);
        return;
    }
    narrate_lost_events(s->lost_events, &lost);
    log_error("nothing is known of the job '%s': %s", s->job, strbuf_str(&lost));
}

static void dump(json_t *j)
{
    json_dumpf(j, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(j);
}

/* run: 0 = the last */
static int explain(const char *name, uint32_t number, bool json)
{
    _cleanup_story_ struct story s = {0};
    struct err e = {0};
    bool alive = chronicle_is_alive(name);
    struct story_run *run;

    if ((number > 0 ? chronicle_read_run(name, number, &s, &e) : chronicle_read(name, &s, &e)) <
        0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    run = number > 0 ? story_run(&s, number) : story_last_run(&s);
    if (!run) {
        tell_of_no_run(&s);
        return EXIT_TROUBLE;
    }
    alive &= run == story_last_run(&s);
    story_account(run, alive ? now_us() : s.last_event);
    if (json) {
        json_t *j = chronicle_run_json(&s, run, alive, true);

        dump(j);
    } else {
        show_text(&s, run, alive, NULL);
    }
    return EXIT_OK;
}

static void show_nodes(const struct page *p, const char *label, const json_t *list,
                       const char *member)
{
    _cleanup_strbuf_ struct strbuf out = {0};
    json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        strbuf_addf(&out, "%s%s", i > 0 ? ", " : "",
                    member ? cluster_text(v, member) : json_string_value(v));
    if (out.len > 0)
        entry(p, label, strbuf_str(&out));
}

/* Where they are read, and which of them are not. */
static void show_logs(const struct page *p, const json_t *job)
{
    _cleanup_strbuf_ struct strbuf out = {0};
    int64_t more = cluster_number(job, "unread_logs_more", 0);
    json_t *log;
    size_t i;

    strbuf_adds(&out, cluster_text(job, "logs"));
    json_array_foreach (json_object_get(job, "unread_logs"), i, log)
        strbuf_addf(&out, "%s%s is not read: %s", out.len > 0 ? "; " : "",
                    cluster_text(log, "path"), cluster_text(log, "why"));
    if (more > 0)
        strbuf_addf(&out, "; nor are %" PRId64 " more", more);
    if (out.len > 0)
        entry(p, "logs", strbuf_str(&out));
}

/* How a job of the cluster stands, and why nothing is done about it, if so. */
static void show_now(const struct page *p, const json_t *job)
{
    const json_t *d = json_object_get(job, "decision"), *kept = json_object_get(job, "kept_out");
    bool let_go = json_is_true(json_object_get(job, "let_go"));

    putchar('\n');
    entryf(p, "now", "%s%s%s%s, mode %s",
           let_go ? "not watched any more" : cluster_text(job, "phase"),
           cluster_text(job, "state")[0] ? "; the scheduler says " : "", cluster_text(job, "state"),
           json_is_true(json_object_get(job, "held")) ? ", held" : "", cluster_text(job, "mode"));
    if (cluster_text(job, "waits_for")[0])
        entryf(p, "waits for", "%s", cluster_text(job, "waits_for"));
    if (json_is_true(json_object_get(job, "held_unnoted")))
        entryf(p, "its hold",
               "is Reknit's, and its AdminComment has no note of that: should reknitd be gone for "
               "good, 'scontrol release %s' ends it",
               cluster_text(job, "label"));
    show_logs(p, job);
    if (cluster_text(d, "held_back")[0])
        entryf(p, "not done", "%s", cluster_text(d, "held_back"));
    if (streq(cluster_text(d, "proposal"), "open"))
        entryf(p, "next", "'reknit approve %s' or 'reknit reject %s'", cluster_text(job, "key"),
               cluster_text(job, "key"));
    show_nodes(p, "kept out", kept, "node");
    if (cluster_text(d, "held_back")[0] && json_array_size(kept) == 0)
        show_nodes(p, "would lack", json_object_get(d, "nodes"), NULL);
}

static void show_cluster_text(struct story *s, struct story_run *run, const json_t *job)
{
    const char *phase = cluster_text(job, "phase");
    struct page p = {.style = report_style_of(stdout)};

    show_text(s, run, true,
              json_is_true(json_object_get(job, "let_go")) ? "not watched any more" : phase);
    if (!streq(phase, "forgotten"))
        show_now(&p, job);
}

/* number: as in explain() */
static int explain_cluster(const char *name, uint32_t number, bool json)
{
    _cleanup_story_ struct story s = {0};
    struct err e = {0};
    struct story_run *run = NULL;
    json_t *job = NULL;
    int r = cluster_job(name, &job, &e);

    if (r >= 0)
        r = cluster_story(cluster_text(job, "key"), &s, &e);
    if (r >= 0) {
        run = number > 0 ? story_run(&s, number) : story_last_run(&s);
        if (!run && number > 0)
            r = err_set(&e, -ENOENT, "of job %s no run %" PRIu32 " is recorded", name, number);
        else if (!run)
            r = err_set(&e, -ENOENT, "of job %s nothing is recorded but its name", name);
    }
    if (r < 0) {
        log_error("%s", e.text);
        json_decref(job);
        return EXIT_TROUBLE;
    }
    story_account(run, cluster_number(job, "now_us", s.last_event));
    if (json) {
        json_t *j = chronicle_run_json(&s, run, true, true);

        json_object_set_new(j, "where", json_string("cluster"));
        json_object_set(j, "now", job);
        dump(j);
    } else {
        show_cluster_text(&s, run, job);
    }
    json_decref(job);
    return EXIT_OK;
}

/* What reads like a job of the cluster is one, unless something was run here under that name. */
static bool is_of_cluster(const char *name)
{
    char path[PATH_MAX];

    return cluster_is_job(name) &&
           (state_journal_path(name, path, NULL) < 0 || access(path, F_OK) < 0);
}

/* Where nothing was run here under that name, either. */
static bool is_of_nodes(const char *name)
{
    char path[PATH_MAX];

    return (state_journal_path(name, path, NULL) < 0 || access(path, F_OK) < 0) && nodes_know(name);
}

enum option_value {
    OPTION_RUN = OPTION_FIRST,
    OPTION_CLUSTER,
};

static const struct option options[] = {
    {"run", required_argument, NULL, OPTION_RUN},
    {"cluster", no_argument, NULL, OPTION_CLUSTER},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int take_option(int opt, const char *arg, uint32_t *ret_run, bool *ret_cluster,
                       bool *ret_json)
{
    long long v;

    switch (opt) {
    case OPTION_RUN:
        if (str_to_i64(arg, &v) < 0 || v <= 0 || v > RUN_MAX)
            return usage_error("explain", "--run wants a number from 1 on, not '%s'", arg);
        *ret_run = (uint32_t)v;
        return 0;
    case OPTION_CLUSTER:
        *ret_cluster = true;
        return 0;
    case OPTION_FORMAT:
        return options_format(&verb_explain, arg, ret_json);
    default:
        return EXIT_USAGE;
    }
}

static int run(int argc, char **argv)
{
    char newest[JOB_NAME_LEN];
    struct err e = {0};
    uint32_t number = 0;
    bool json = false, cluster = false;
    int opt;

    while ((opt = options_next(&verb_explain, argc, argv)) != OPTION_END)
        if (take_option(opt, optarg, &number, &cluster, &json) != 0)
            return EXIT_USAGE;
    if (argc - optind > 1)
        return usage_error("explain", "one job at a time");
    if (cluster && optind == argc)
        return usage_error("explain", "--cluster wants a job");
    if (optind < argc && !cluster && !is_of_cluster(argv[optind]) && is_of_nodes(argv[optind]))
        return nodes_explain(argv[optind], json);
    if (optind < argc)
        return cluster || is_of_cluster(argv[optind]) ? explain_cluster(argv[optind], number, json)
                                                      : explain(argv[optind], number, json);
    if (chronicle_newest(newest, &e) < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    return explain(newest, number, json);
}

const struct verb verb_explain = {
    .name = "explain",
    .summary = "tell the story of a job: what happened, why, what was decided",
    .help = "usage: reknit explain [OPTION]... [JOB|NODE]\n"
            "\n"
            "Tells of the last run of JOB (default: of the job that was active last), attempt\n"
            "by attempt: its progress, what was found, the verdict with the lines that prove\n"
            "it, what was ruled out, the decision with its rule and budget, and what came of\n"
            "it.\n"
            "\n"
            "A number (4242, 25_3, 25_[4-9%2], or a key that 'reknit jobs' shows) is a job of\n"
            "the cluster, unless something was run here under that name: then reknitd is\n"
            "asked, at $REKNIT_SOCKET or " CLIENT_SOCKET ", and also why nothing is\n"
            "done now.\n"
            "\n"
            "A NODE of the cluster, unless something was run here under that name: what\n"
            "stands against it, what is done about it, and what was seen there. For\n"
            "operators.\n"
            "\n"
            "  --run N              another run than the last; its logs are in folder run-N\n"
            "  --cluster            JOB is one of the cluster, whatever was run here\n"
            "  --format text|json   json: one object\n"
            "\n"
            "Exit status: 0, or 1 when there is no such job or its journal cannot be read.\n",
    .options = options,
    .run = run,
};
