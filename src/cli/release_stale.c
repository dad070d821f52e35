/* SPDX-License-Identifier: Apache-2.0 */

/* reknit release-stale: nothing that reknitd holds may stay held because reknitd is gone. A hold of
 * ours has a note in the job's AdminComment that says until when it may last:
 *
 *   {"reknit": {"held_until": 1796035923}}
 *
 * A reservation of ours, that keeps a job's nodes, is stale when that job runs again, or will not.
 *
 * After that anybody may free it; a timer does. Others' holds have no such note, and are left
 * alone. It asks the adapter itself: it must work exactly when reknitd does not. */

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask_adapter.h"
#include "cli/options.h"
#include "cli/reserved.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

extern const struct verb verb_release_stale;

enum { OPTION_CONFIG = OPTION_FIRST, OPTION_DRY_RUN };

static const struct option options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

struct releaser {
    struct ask_adapter *adapter;
    bool dry_run, json;
    unsigned released, failed;
};

/* Seconds since 1970 at which our hold ends; 0 = it is not ours. */
static json_int_t held_until(const json_t *job)
{
    const char *text = json_string_value(json_object_get(job, "admin_comment"));
    json_t *note = text ? json_loads(text, 0, NULL) : NULL;
    json_int_t until =
        json_integer_value(json_object_get(json_object_get(note, "reknit"), "held_until"));

    json_decref(note);
    return json_is_true(json_object_get(job, "held")) ? until : 0;
}

/* Only if it is still that very job in that very state. */
static json_t *request_for(const json_t *job)
{
    json_t *expect = json_pack(
        "{s:b, s:O, s:O, s:[O]}", "held", 1, "restarts", json_object_get(job, "restarts"), "submit",
        json_object_get(job, "submit"), "states", json_object_get(job, "state"));

    return json_pack("{s:s, s:O, s:o, s:{s:b, s:n}}", "op", "update", "job",
                     json_object_get(job, "id"), "expect", expect, "set", "held", 0,
                     "admin_comment");
}

static void print_job(const struct releaser *r, const char *name, usec_t until, bool due)
{
    const char *what = !due ? "stays held" : r->dry_run ? "would be released" : "is released";
    char when[TIMESTAMP_TEXT_MAX];
    json_t *j;

    if (!r->json) {
        printf("job %s %s: held by Reknit until %s\n", name, what, timestamp_format(until, when));
        return;
    }
    j = json_pack("{s:s, s:b, s:b, s:I}", "job", name, "due", due, "released", due && !r->dry_run,
                  "held_until_us", (json_int_t)until);
    json_dumpf(j, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(j);
}

static void look_at_held(struct releaser *r, const json_t *job, usec_t until, bool due)
{
    const char *label = json_string_value(json_object_get(job, "label"));
    char when[TIMESTAMP_TEXT_MAX], name[64];
    struct err e = {0};

    str_sanitize(name, sizeof(name), label ? label : "?", label ? strlen(label) : 1);
    timestamp_format(until, when);
    if (due && !r->dry_run && !ask_adapter(r->adapter, request_for(job), &e)) {
        r->failed++;
        log_error("job %s, held by Reknit until %s, cannot be released: %s", name, when, e.text);
        return;
    }
    r->released += due;
    print_job(r, name, until, due);
}

static void print_reservation(const struct releaser *r, const char *name)
{
    json_t *j;

    if (!r->json) {
        printf("reservation %s %s: its job does not need it\n", name,
               r->dry_run ? "would be deleted" : "is deleted");
        return;
    }
    j = json_pack("{s:s, s:b}", "reservation", name, "released", !r->dry_run);
    json_dumpf(j, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(j);
}

static void give_back(struct releaser *r, const json_t *reservation)
{
    const char *text = json_string_value(json_object_get(reservation, "name"));
    json_t *request =
        json_pack("{s:s, s:O}", "op", "unreserve", "name", json_object_get(reservation, "name"));
    struct err e = {0};
    char name[64];

    str_sanitize(name, sizeof(name), text, strlen(text));
    if (r->dry_run)
        json_decref(request);
    else if (!ask_adapter(r->adapter, request, &e)) {
        r->failed++;
        log_error("reservation %s, of Reknit, cannot be deleted: %s", name, e.text);
        return;
    }
    r->released++;
    print_reservation(r, name);
}

static void give_back_all(struct releaser *r, const json_t *jobs)
{
    json_t *list, *v;
    struct err e = {0};
    size_t i;

    list = json_incref(json_object_get(
        ask_adapter(r->adapter, json_pack("{s:s}", "op", "reservations"), &e), "reservations"));
    if (!list) {
        r->failed++;
        log_error("the reservations cannot be listed: %s", e.text);
    }
    json_array_foreach (list, i, v)
        if (reservation_is_stale(v, jobs))
            give_back(r, v);
    json_decref(list);
}

/* Others are not shown the notes: they would see nothing that is held. */
static bool may_see(struct releaser *r)
{
    const json_t *answer = ask_adapter(r->adapter, json_pack("{s:s}", "op", "config"), NULL);
    const json_t *config = json_object_get(answer, "config");
    const char *user = json_string_value(json_object_get(config, "user"));
    char name[64];

    if (geteuid() == 0 || !config || json_is_true(json_object_get(config, "operator")))
        return true;
    str_sanitize(name, sizeof(name), user ? user : "?", user ? strlen(user) : 1);
    log_error("%s is neither root nor SlurmUser, and does not see what Reknit holds", name);
    return false;
}

static int release_all(struct releaser *r)
{
    json_t *jobs, *job;
    struct err e = {0};
    usec_t now = now_us();
    size_t i;

    jobs = json_incref(
        json_object_get(ask_adapter(r->adapter, json_pack("{s:s}", "op", "jobs"), &e), "jobs"));
    if (!jobs) {
        log_error("the jobs cannot be listed: %s", e.text);
        return EXIT_TROUBLE;
    }
    json_array_foreach (jobs, i, job) {
        json_int_t until = held_until(job);

        if (until > 0)
            look_at_held(r, job, until * USEC_PER_SEC, until < now / USEC_PER_SEC);
    }
    give_back_all(r, jobs);
    json_decref(jobs);
    return r->failed > 0 ? EXIT_TROUBLE : EXIT_OK;
}

/* A configuration that is broken must not keep anything held; one that is not there was misspelt:
 * NULL. */
static struct daemon_config *load(const char *path)
{
    char drop_ins[PATH_MAX];
    bool more = daemon_config_drop_ins(path, drop_ins, sizeof(drop_ins));
    struct daemon_config *c = NULL;
    struct err e = {0};
    int r;

    r = daemon_config_load(path, more ? drop_ins : NULL, &c, &e);
    if (r == -ENOENT)
        log_error("%s", e.text);
    if (r == 0 || r == -ENOENT)
        return c;
    log_warning("%s; going on with the built-in default", e.text);
    return daemon_config_new();
}

static int run_release_stale(int argc, char **argv)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = NULL;
    const char *config = DAEMON_CONFIG_PATH;
    struct releaser r = {0};
    struct err e = {0};
    char path[PATH_MAX];
    int opt, status;

    while ((opt = options_next(&verb_release_stale, argc, argv)) != OPTION_END) {
        if (opt == OPTION_CONFIG)
            config = optarg;
        else if (opt == OPTION_DRY_RUN)
            r.dry_run = true;
        else if (opt == OPTION_FORMAT && options_format(&verb_release_stale, optarg, &r.json) == 0)
            continue;
        else
            return EXIT_USAGE;
    }
    if (argv[optind])
        return usage_error("release-stale", "it takes no '%s'", argv[optind]);
    c = load(config);
    if (!c)
        return EXIT_TROUBLE;
    if (ask_adapter_new(c, &r.adapter, path, sizeof(path), &e) < 0) {
        log_error("the adapter does not work: %s", e.text);
        return EXIT_TROUBLE;
    }
    status = may_see(&r) ? release_all(&r) : EXIT_TROUBLE;
    ask_adapter_free(r.adapter);
    return status;
}

const struct verb verb_release_stale = {
    .name = "release-stale",
    .summary = "free jobs that a reknitd which is gone still holds",
    .help = "usage: reknit release-stale [--dry-run] [--config FILE] [--format text|json]\n"
            "\n"
            "Lists the jobs of the cluster that Reknit holds, and until when, and frees each\n"
            "that it should have let go by now. reknitd does that itself; this is for when\n"
            "it is gone, and works without it. A hold of Reknit's has a note in the job's\n"
            "AdminComment; others' holds are left alone. Deletes reservations of Reknit's\n"
            "(reknit-JOB-RESTARTS) whose job does not need them, too. Run by\n"
            "reknit-release-stale.timer every few minutes. Needs to be SlurmUser or root.\n"
            "\n"
            "  --dry-run            says what it would free\n"
            "  --config FILE        reknitd's configuration, for its adapter\n"
            "                       (default: /etc/reknit/reknitd.yaml)\n"
            "  --format text|json   json: one object for each job and reservation\n"
            "\n"
            "Exit status: 0 done, 1 a job could not be freed, the scheduler not be asked, or\n"
            "its user may not see what is held, 2 wrong usage.\n",
    .options = options,
    .run = run_release_stale,
};
