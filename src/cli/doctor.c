/* SPDX-License-Identifier: Apache-2.0 */

/* reknit doctor: tests every link between reknitd and the jobs of a cluster, says what is broken
 * and how to mend it. It changes nothing, and asks nothing of anybody that could take long without
 * a deadline. */

#include "cli/doctor.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const struct verb verb_doctor;

enum { OPTION_CONFIG = OPTION_FIRST };

static const struct option options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static const char *const doctor_state_names[DOCTOR_MAX] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_SKIP] = "skip",
    [DOCTOR_WARN] = "warn",
    [DOCTOR_FAIL] = "fail",
};
DEFINE_NAMES(doctor_state, enum doctor_state, doctor_state_names);

void doctor_row(struct doctor *d, enum doctor_state state, const char *name, const char *mend,
                const char *format, ...)
{
    struct doctor_row *row = VEC_PUSH(&d->rows);
    char text[sizeof(row->found)];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    row->name = name;
    row->state = state;
    str_sanitize(row->found, sizeof(row->found), text, strlen(text));
    if (mend)
        str_sanitize(row->mend, sizeof(row->mend), mend, strlen(mend));
}

/* ---- the configuration ---- */

static void add_doubt(void *ctx, const char *text)
{
    doctor_row(ctx, DOCTOR_WARN, "configuration", NULL, "%s", text);
}

static void look_at_config(struct doctor *d)
{
    char drop_ins[PATH_MAX];
    bool more = daemon_config_drop_ins(d->config_path, drop_ins, sizeof(drop_ins));
    struct err e = {0};

    if (daemon_config_load(d->config_path, more ? drop_ins : NULL, &d->config, &e) < 0) {
        doctor_row(d, DOCTOR_FAIL, "configuration",
                   "mend the file; all that follows is tested with the built-in default", "%s",
                   e.text);
        d->config = daemon_config_new();
        return;
    }
    doctor_row(d, DOCTOR_OK, "configuration", NULL, "%s: mode %s, %u rule%s%s", d->config_path,
               mode_name(d->config->mode), d->config->n_rules, d->config->n_rules == 1 ? "" : "s",
               access(d->config_path, F_OK) == 0 ? "" : " (there is no such file: the default)");
    daemon_config_doubts(d->config, add_doubt, d);
}

/* ---- what was found ---- */

static unsigned count(const struct doctor *d, enum doctor_state state)
{
    unsigned n = 0;

    VEC_FOREACH (&d->rows, row)
        n += row->state == state;
    return n;
}

#define INDENT 21

static void print_text(const char *lead, const char *text)
{
    size_t most = table_screen(stdout), left = strlen(text);

    printf("%-*s", INDENT, lead);
    while (left > 0) {
        size_t n = most == SIZE_MAX ? left : str_fit(text, most - INDENT);

        printf("%.*s\n", (int)n, text);
        text += n;
        left -= n;
        while (left > 0 && *text == ' ') {
            text++;
            left--;
        }
        if (left > 0)
            printf("%*s", INDENT, "");
    }
}

static void print_rows(const struct doctor *d)
{
    char lead[64];

    VEC_FOREACH (&d->rows, row) {
        STR_PRINTF(lead, "%-5s%s", doctor_state_name(row->state), row->name);
        print_text(lead, row->found);
        if (row->mend[0])
            print_text("     mend:", row->mend);
    }
    printf("\n%u ok, %u not tested, %u to look at, %u broken\n", count(d, DOCTOR_OK),
           count(d, DOCTOR_SKIP), count(d, DOCTOR_WARN), count(d, DOCTOR_FAIL));
}

static void print_json(const struct doctor *d)
{
    json_t *root = json_object(), *rows = json_array();

    VEC_FOREACH (&d->rows, row) {
        json_t *j = json_pack("{s:s, s:s, s:s}", "check", row->name, "state",
                              doctor_state_name(row->state), "found", row->found);

        json_object_set_new(j, "mend", row->mend[0] ? json_string(row->mend) : json_null());
        json_array_append_new(rows, j);
    }
    json_object_set_new(root, "version", json_string(REKNIT_VERSION));
    json_object_set_new(root, "checks", rows);
    for (int s = 0; s < DOCTOR_MAX; s++)
        json_object_set_new(root, doctor_state_name((enum doctor_state)s),
                            json_integer(count(d, (enum doctor_state)s)));
    json_dumpf(root, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}

static int run_doctor(int argc, char **argv)
{
    struct doctor d = {.config_path = DAEMON_CONFIG_PATH};
    bool json = false;
    int opt, failed;

    while ((opt = options_next(&verb_doctor, argc, argv)) != OPTION_END) {
        if (opt == OPTION_CONFIG)
            d.config_path = optarg;
        else if (opt != OPTION_FORMAT || options_format(&verb_doctor, optarg, &json) != 0)
            return EXIT_USAGE;
    }
    if (argv[optind])
        return usage_error("doctor", "it takes no '%s'", argv[optind]);
    signal(SIGPIPE, SIG_IGN); /* of children that have ended */
    look_at_config(&d);
    doctor_here(&d);
    doctor_slurm(&d);
    doctor_daemon(&d);
    if (json)
        print_json(&d);
    else
        print_rows(&d);
    failed = count(&d, DOCTOR_FAIL) > 0;
    VEC_DONE(&d.rows);
    daemon_config_free(d.config);
    return failed ? EXIT_TROUBLE : EXIT_OK;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "test every link between reknitd and the cluster's jobs",
    .help = "usage: reknit doctor [--config FILE] [--format text|json]\n"
            "\n"
            "Tests every link between reknitd and the jobs of a Slurm cluster, says what is\n"
            "broken and how to mend it, and changes nothing. Run it as root where reknitd\n"
            "runs: others may not see all of it. What cannot be tested because another link\n"
            "is broken is said to be so.\n"
            "\n"
            "  --config FILE          reknitd's configuration\n"
            "                         (default: /etc/reknit/reknitd.yaml)\n"
            "  --format text|json     json for programs\n"
            "\n"
            "Exit status: 0 nothing is broken, 1 something is, 2 wrong usage.\n",
    .options = options,
    .run = run_doctor,
};
