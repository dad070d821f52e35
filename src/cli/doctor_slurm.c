/* SPDX-License-Identifier: Apache-2.0 */

/* The adapter, started as reknitd would, and what it says of the scheduler. Its answers are waited
 * for one after the other. */

#include "cli/ask_adapter.h"
#include "cli/doctor.h"
#include "cli/reserved.h"
#include "config/terms.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define NOTED_SHOWN 20 /* jobs whose comments ask for something in vain */

struct talk {
    struct doctor *d;
    struct ask_adapter *adapter;
    struct err e; /* why there was no answer */
};

static const json_t *ask(struct talk *t, const char *op)
{
    return ask_adapter(t->adapter, json_pack("{s:s}", "op", op), &t->e);
}

/* ---- what is asked ---- */

static void skip_slurmctld(struct doctor *d)
{
    doctor_row(d, DOCTOR_SKIP, "slurmctld", NULL, "not tested: the adapter does not work");
}

/* It says hello before it looks for slurm.conf, without which libslurm ends it. */
static bool look_at_adapter(struct talk *t, const char *path)
{
    bool answers = ask(t, "ping") || ask_adapter_is_up(t->adapter);

    if (answers) {
        doctor_row(t->d, DOCTOR_OK, "adapter", NULL, "%s answers", path);
        return true;
    }
    doctor_row(t->d, DOCTOR_FAIL, "adapter",
               "is slurm.conf there, and sound? SLURM_CONF names another than the usual one",
               "%s ends when Slurm is asked: %s", path, t->e.text);
    skip_slurmctld(t->d);
    return false;
}

/* Where more than one controller is, one that is up is enough. */
static bool look_at_controller(struct talk *t)
{
    const json_t *answer = ask(t, "ping"), *list = json_object_get(answer, "controllers");
    _cleanup_strbuf_ struct strbuf b = {0};
    unsigned up = 0, n = (unsigned)json_array_size(list);

    if (!answer) {
        doctor_row(t->d, DOCTOR_FAIL, "slurmctld",
                   "systemctl status slurmctld; is slurm.conf right?",
                   "asked through the adapter: %s", t->e.text);
        return false;
    }
    for (unsigned i = 0; i < n && i < 4; i++) {
        const json_t *c = json_array_get(list, i);
        const char *host = json_string_value(json_object_get(c, "host"));
        bool is_up = json_is_true(json_object_get(c, "up"));

        up += is_up;
        strbuf_addf(&b, "%s%s is %s", i > 0 ? ", " : "", host ? host : "?", is_up ? "up" : "down");
    }
    doctor_row(t->d,
               up == 0  ? DOCTOR_FAIL
               : up < n ? DOCTOR_WARN
                        : DOCTOR_OK,
               "slurmctld", up < n ? "systemctl status slurmctld there" : NULL, "%s",
               n > 0 ? strbuf_str(&b) : "no controller is named");
    return up > 0;
}

/* Its clock has whole seconds. */
static void look_at_clock(struct talk *t)
{
    const json_t *answer = ask(t, "ping");
    json_int_t clock = json_integer_value(json_object_get(answer, "clock"));
    int64_t early = t->d->config->brakes.early_start / USEC_PER_SEC;
    int64_t skew = clock - now_us() / USEC_PER_SEC, off = skew < 0 ? -skew : skew;

    if (!answer || clock == 0)
        doctor_row(t->d, DOCTOR_SKIP, "clock", NULL, "slurmctld does not tell its time");
    else if (off > 1)
        doctor_row(t->d, off > 30 ? DOCTOR_FAIL : DOCTOR_WARN, "clock",
                   "synchronise the clocks (chrony), or raise brakes.early_start by it",
                   "slurmctld's clock is %" PRId64 "s %s; restarts wait %" PRId64
                   "s, and one that comes too early is lost",
                   off, skew < 0 ? "behind" : "ahead", early);
    else
        doctor_row(t->d, DOCTOR_OK, "clock", NULL, "within a second of slurmctld's");
}

/* Of the release that it was built for, to the second part: "22.05". */
static void look_at_release(struct talk *t, const json_t *config)
{
    const char *built =
        json_string_value(json_object_get(ask_adapter_hello(t->adapter), "version"));
    const char *runs = json_string_value(json_object_get(config, "version"));
    size_t n = built ? strcspn(built, ".") : 0;

    if (!built || !runs)
        return;
    if (built[n])
        n += 1 + strcspn(built + n + 1, ".");
    if (strncmp(built, runs, n) == 0)
        doctor_row(t->d, DOCTOR_OK, "release", NULL, "the adapter is for %s, the scheduler is %s",
                   built, runs);
    else
        doctor_row(t->d, DOCTOR_WARN, "release", "build Reknit where that Slurm is installed",
                   "the adapter is for %s, the scheduler is %s", built, runs);
}

static void look_at_permission(struct talk *t, const json_t *config)
{
    const char *user = json_string_value(json_object_get(config, "user"));
    const json_t *may = json_object_get(config, "operator");

    user = user ? user : "?";
    if (json_is_true(may))
        doctor_row(t->d, DOCTOR_OK, "permission", NULL, "%s may act on everybody's jobs", user);
    else if (!json_is_false(may))
        doctor_row(t->d, DOCTOR_SKIP, "permission", NULL,
                   "Slurm does not tell whether %s may act on everybody's jobs", user);
    else if (geteuid() != 0)
        doctor_row(t->d, DOCTOR_SKIP, "permission", "run doctor as root",
                   "%s may not act on everybody's jobs; that of reknitd's adapter is not known",
                   user);
    else
        doctor_row(t->d, DOCTOR_FAIL, "permission",
                   "run the adapter as SlurmUser, or make its user an operator (sacctmgr)",
                   "%s may not act on everybody's jobs", user);
}

static void look_at_memory(struct talk *t, const json_t *config)
{
    json_int_t forget = json_integer_value(json_object_get(config, "forget_s"));
    usec_t life = t->d->config->brakes.proposal_life;
    char text[DURATION_TEXT_MAX], approval[DURATION_TEXT_MAX];

    duration_format(forget * USEC_PER_SEC, text);
    if (forget * USEC_PER_SEC <= life)
        doctor_row(t->d, DOCTOR_FAIL, "MinJobAge",
                   "slurm.conf: MinJobAge=3600; or a shorter brakes.proposal_life",
                   "an ended job is forgotten after %s, a decision waits %s for approval", text,
                   duration_format(life, approval));
    else if (forget < 3600)
        doctor_row(t->d, DOCTOR_WARN, "MinJobAge", "slurm.conf: MinJobAge=3600",
                   "an ended job is forgotten after %s: no restart can come later", text);
    else
        doctor_row(t->d, DOCTOR_OK, "MinJobAge", NULL, "an ended job is remembered for %s", text);
}

static void look_at_defaults(struct talk *t, const json_t *config)
{
    if (json_is_false(json_object_get(config, "requeue_default")))
        doctor_row(t->d, DOCTOR_WARN, "JobRequeue",
                   "slurm.conf: JobRequeue=1, or users write #SBATCH --requeue",
                   "jobs may not be requeued unless they say so; in act mode those that opt in are "
                   "made so while they run");
    else
        doctor_row(t->d, DOCTOR_OK, "JobRequeue", NULL, "jobs may be requeued");
    if (json_is_false(json_object_get(config, "kill_on_bad_exit")))
        doctor_row(t->d, DOCTOR_WARN, "KillOnBadExit",
                   "slurm.conf: KillOnBadExit=1, or users write srun --kill-on-bad-exit",
                   "a step lives on after one of its tasks has died: that is noticed as a hang");
    else
        doctor_row(t->d, DOCTOR_OK, "KillOnBadExit", NULL,
                   "a step ends when one of its tasks dies");
}

static void look_at_scheduler(struct talk *t)
{
    const json_t *answer = ask(t, "config"), *config = json_object_get(answer, "config");

    if (!config) {
        doctor_row(t->d, DOCTOR_FAIL, "scheduler", NULL, "its configuration cannot be read: %s",
                   t->e.text);
        return;
    }
    t->d->n_holders = sole_holders(config, t->d->holders, ARRAY_SIZE(t->d->holders), NULL);
    look_at_release(t, config);
    look_at_permission(t, config);
    look_at_memory(t, config);
    look_at_defaults(t, config);
}

static const char *text_of(const json_t *job, const char *key)
{
    const char *s = json_string_value(json_object_get(job, key));

    return s ? s : "";
}

static void look_at_jobs(struct talk *t)
{
    const json_t *answer = ask(t, "jobs"), *jobs = json_object_get(answer, "jobs");
    size_t n = json_array_size(jobs), in = 0, noted = 0, modes[MODE_MAX] = {0};

    if (!jobs) {
        doctor_row(t->d, DOCTOR_FAIL, "jobs", NULL, "they cannot be listed: %s", t->e.text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(jobs, i);
        struct job_labels labels = {
            .partition = text_of(j, "partition"),
            .account = text_of(j, "account"),
            .qos = text_of(j, "qos"),
            .user = text_of(j, "user"),
            .comment = text_of(j, "comment"),
            .interactive = json_is_false(json_object_get(j, "batch")),
        };
        struct job_terms terms;

        daemon_config_for_job(t->d->config, &labels, &terms);
        in += terms.opted_in;
        modes[terms.mode]++;
        if (*terms.notes && noted++ < NOTED_SHOWN)
            doctor_row(t->d, DOCTOR_WARN, "comments", NULL, "job %s, mode %s: %s",
                       text_of(j, "label"), mode_name(terms.mode), terms.notes);
    }
    if (noted > NOTED_SHOWN)
        doctor_row(t->d, DOCTOR_WARN, "comments", NULL,
                   "%zu more jobs ask for what is not granted or not understood",
                   noted - NOTED_SHOWN);
    doctor_row(t->d, DOCTOR_OK, "jobs", NULL,
               "%zu known: %zu opted in; would be acted on %zu, proposed for %zu, observed %zu, "
               "left alone %zu",
               n, in, modes[MODE_ACT], modes[MODE_PROPOSE], modes[MODE_OBSERVE], modes[MODE_OFF]);
    doctor_logs(t->d, jobs);
}

/* They end by themselves; until then they keep nodes from others. */
static void look_at_reservations(struct talk *t)
{
    json_t *jobs = json_incref(json_object_get(ask(t, "jobs"), "jobs"));
    const json_t *list = json_object_get(ask(t, "reservations"), "reservations");
    _cleanup_strbuf_ struct strbuf stale = {0};
    char name[64];
    size_t i;
    json_t *v;

    json_array_foreach (list, i, v) {
        const char *text = json_string_value(json_object_get(v, "name"));

        if (!reservation_is_stale(v, jobs))
            continue;
        str_sanitize(name, sizeof(name), text, strlen(text));
        strbuf_addf(&stale, "%s%s", stale.len > 0 ? ", " : "", name);
    }
    if (stale.len > 0)
        doctor_row(t->d, DOCTOR_WARN, "reservations", "reknit release-stale",
                   "kept for jobs that do not need them: %s", strbuf_str(&stale));
    else if (list)
        doctor_row(t->d, DOCTOR_OK, "reservations", NULL, "none is left over");
    json_decref(jobs);
}

void doctor_slurm(struct doctor *d)
{
    struct talk t = {.d = d};
    char path[PATH_MAX];
    int r = ask_adapter_new(d->config, &t.adapter, path, sizeof(path), &t.e);

    if (r < 0) {
        doctor_row(d, DOCTOR_FAIL, "adapter",
                   r == -ENOENT ? "build with libslurm-dev, or name another in adapter.command"
                                : "run it by hand: it says hello, or what is wrong",
                   "%s", t.e.text);
        skip_slurmctld(d);
        return;
    }
    if (look_at_adapter(&t, path) && look_at_controller(&t)) {
        look_at_clock(&t);
        look_at_scheduler(&t);
        look_at_jobs(&t);
        look_at_reservations(&t);
    }
    ask_adapter_free(t.adapter);
}
