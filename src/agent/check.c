/* SPDX-License-Identifier: Apache-2.0 */

/* A failing Prolog drains the node and holds the job, so a check fails on hard facts only, and on
 * those that two looks in a row show: a GPU that somebody resets just now is lost for a moment.
 * What could not be looked at is not known, which fails nothing and is said on standard error.
 *
 * Slurm's own reason for a failed Prolog or Epilog is "Prolog error". So the node is drained first,
 * with ours; Slurm leaves a reason that is there. A HealthCheckProgram must drain the node itself,
 * and its status must be 0 once that is done: newer releases of slurmd do not register before it
 * is. */

#include "agent/check.h"

#include "agent/check_policy.h"
#include "agent/drain.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "probe/look.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define EXIT_WELL    0
#define EXIT_SICK    1
#define EXIT_USAGE   2
#define EXIT_UNKNOWN 3
/* Slurm kills a HealthCheckProgram after 60 s: two looks, the pause and two calls of scontrol. */
#define DEADLINE     (10 * USEC_PER_SEC)
#define DEADLINE_MAX (15 * USEC_PER_SEC)
#define PAUSE_S      2
#define TROUBLES_MAX 16
#define REASON_LEN   200

enum caller {
    CALLER_OTHER,
    CALLER_PROLOG,
    CALLER_EPILOG,
    CALLER_HEALTH_CHECK,
};

struct check {
    enum caller caller;
    const char *node, *scontrol;
    struct look_config look;
    struct check_policy policy;
};

struct findings {
    const struct check *check;
    struct judge *judge;
    struct change troubles[TROUBLES_MAX]; /* that fail the check */
    size_t n;
    bool unknown; /* of something it could not be said */
    bool quiet;   /* that was said before */
};

static const char help[] =
    "usage: reknit-agent check [option]...\n"
    "\n"
    "Looks whether this node is fit for a job. It fails on hard facts that two looks in a row "
    "show; "
    "what\n"
    "cannot be looked at is not known, and fails nothing.\n"
    "\n"
    "  --prolog, --epilog    as Slurm's Prolog or Epilog: a node that fails is drained with a "
    "reason "
    "that\n"
    "                        begins with 'reknit: '; exit status 1\n"
    "  --health-check        as Slurm's HealthCheckProgram: the same, and 0 once it is drained\n"
    "  --policy FILE         which troubles fail beside those, and which do not\n"
    "  --node NAME           this node's name in Slurm (default: SLURMD_NODENAME, or the host's "
    "name)\n"
    "  --scontrol PATH       Slurm's scontrol, where it is not in PATH\n"
    "  --deadline DURATION   what has not answered a look by then is not known; 15s at most\n"
    "                        (default: 10s)\n"
    "  --nvml LIBRARY, --mounts PATH[,...], --locks FOLDER, --root FOLDER\n"
    "                        as of reknit-probe (locks: /run/reknit-agent)\n"
    "  --help                this text\n"
    "\n"
    "Exit status without one of the first three: 0 fit, 1 not, 2 not understood, 3 not known.\n";

static const struct option options[] = {
    {"prolog", no_argument, NULL, 'p'},
    {"epilog", no_argument, NULL, 'e'},
    {"health-check", no_argument, NULL, 'c'},
    {"policy", required_argument, NULL, 'y'},
    {"node", required_argument, NULL, 'n'},
    {"scontrol", required_argument, NULL, 's'},
    {"deadline", required_argument, NULL, 'd'},
    {"nvml", required_argument, NULL, 'l'},
    {"mounts", required_argument, NULL, 'm'},
    {"locks", required_argument, NULL, 'k'},
    {"root", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {NULL},
};

static void on_line(void *ctx, const char *text)
{
    struct findings *f = ctx;
    struct probe_line l;

    if (probe_line_parse(text, strlen(text), &l) < 0)
        return;
    judge_take(f->judge, &l);
    if (!l.is_ending || l.ending.how == ENDED_DONE || l.ending.how == ENDED_ABSENT)
        return;
    f->unknown = true;
    if (!f->quiet)
        log_warning("%s%s%s: not known: %s", area_name(l.ending.area),
                    l.ending.subject[0] ? " " : "", l.ending.subject, l.ending.why);
}

static void on_trouble(void *ctx, const struct change *c)
{
    struct findings *f = ctx;

    if (f->n < TROUBLES_MAX && check_policy_fails(&f->check->policy, c))
        f->troubles[f->n++] = *c;
}

static void look_once(struct findings *f)
{
    f->judge = judge_new();
    judge_begin(f->judge, mono_us());
    look(&f->check->look, on_line, f);
    judge_now(f->judge, on_trouble, f);
    f->judge = judge_free(f->judge);
}

static bool has(const struct findings *f, const struct change *c)
{
    for (size_t i = 0; i < f->n; i++)
        if (streq(f->troubles[i].signature, c->signature) &&
            streq(f->troubles[i].subject, c->subject))
            return true;
    return false;
}

/* What the second look sees no more is left out. */
static void look_again(struct findings *f)
{
    _cleanup_(freep) struct findings *again = xnew(struct findings);
    size_t n = 0;

    *again = (struct findings){.check = f->check, .quiet = true};
    sleep(PAUSE_S);
    look_once(again);
    for (size_t i = 0; i < f->n; i++)
        if (has(again, &f->troubles[i]))
            f->troubles[n++] = f->troubles[i];
    f->n = n;
}

static void write_reason(const struct findings *f, char ret[REASON_LEN])
{
    char more[32] = "";

    if (f->n > 1)
        STR_PRINTF(more, " (and %zu more)", f->n - 1);
    str_printf(ret, REASON_LEN, "%.150s%s", f->troubles[0].text, more);
}

/* Whether Slurm gives it no job any more. */
static bool drain(const struct check *c, const char *reason)
{
    struct err e = {0};

    if (drain_node(c->scontrol, c->node, reason, &e) == 0)
        return true;
    log_error("the node could not be drained: %s", e.text);
    return false;
}

static int tell_sick(const struct check *c, const struct findings *f)
{
    char reason[REASON_LEN];
    bool drained;

    write_reason(f, reason);
    puts(reason);
    if (c->caller == CALLER_OTHER)
        return EXIT_SICK;
    drained = drain(c, reason);
    return c->caller == CALLER_HEALTH_CHECK && drained ? EXIT_WELL : EXIT_SICK;
}

static int run(const struct check *c)
{
    _cleanup_(freep) struct findings *f = xnew(struct findings);

    f->check = c;
    look_once(f);
    if (f->n > 0)
        look_again(f);
    if (f->n > 0)
        return tell_sick(c, f);
    return f->unknown && c->caller == CALLER_OTHER ? EXIT_UNKNOWN : EXIT_WELL;
}

static bool take_policy(struct check *c)
{
    struct err e = {0};

    if (check_policy_read(optarg, &c->policy, &e) == 0)
        return true;
    log_error("%s", e.text);
    return false;
}

static bool take_caller(struct check *c, enum caller caller)
{
    bool first = c->caller == CALLER_OTHER;

    c->caller = caller;
    return first;
}

static bool take_option(int option, struct check *c)
{
    switch (option) {
    case 'p':
        return take_caller(c, CALLER_PROLOG);
    case 'e':
        return take_caller(c, CALLER_EPILOG);
    case 'c':
        return take_caller(c, CALLER_HEALTH_CHECK);
    case 'y':
        return take_policy(c);
    case 'n':
        c->node = optarg;
        return true;
    case 's':
        c->scontrol = optarg;
        return true;
    case 'd':
        return duration_parse(optarg, &c->look.deadline) == 0 && c->look.deadline > 0 &&
               c->look.deadline <= DEADLINE_MAX;
    case 'l':
        c->look.probe.nvml = optarg;
        return true;
    case 'm':
        c->look.mounts = optarg;
        return true;
    case 'k':
        c->look.locks = optarg;
        return true;
    case 'r':
        c->look.probe.root = optarg;
        return true;
    default:
        return false;
    }
}

int check_main(int argc, char **argv, const char *node)
{
    struct check c = {
        .node = node,
        .scontrol = "scontrol",
        .look = {.probe = {.root = "", .nvml = NVML_LIBRARY},
                 .deadline = DEADLINE,
                 .locks = "/run/reknit-agent"},
    };
    int option;

    for (int a = 0; a < AREA_MAX; a++)
        c.look.areas[a] = true;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (!take_option(option, &c)) {
            log_error("not understood; see reknit-agent check --help");
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        log_error("%s: not understood; see reknit-agent check --help", argv[optind]);
        return EXIT_USAGE;
    }
    return run(&c);
}
