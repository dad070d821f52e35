/* SPDX-License-Identifier: Apache-2.0 */

/* reknit events: what happens on the cluster, as it happens. */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/options.h"
#include "core/model/event_fields.h"
#include "wire/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

extern const struct verb verb_events;

#define LASTED (5 * USEC_PER_SEC) /* a stream that did is no failed try */

struct following {
    bool json;
    uint64_t last;
};

static void print_text(const struct event *e)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    const struct field *body = event_body(e->kind);
    char when[TIMESTAMP_TEXT_MAX];

    if (body)
        fields_print(body->sub, FIELD_AT(e, body, 0), &b);
    printf("%s  %s%s", timestamp_format(e->time_us, when), e->job, e->job[0] ? "  " : "");
    if (e->attempt > 0)
        printf("#%" PRIu32 "  ", e->attempt);
    printf("%s%s%s\n", event_kind_name(e->kind), b.len > 0 ? "  " : "", strbuf_str(&b));
}

static bool take_event(void *ctx, const char *data)
{
    struct following *f = ctx;
    _cleanup_(freep) struct event *e = xnew(struct event);
    json_t *j = json_loads(data, 0, NULL);

    f->last = (uint64_t)json_integer_value(json_object_get(j, "seq"));
    if (f->json)
        puts(data);
    else if (codec_json_event(j, e, NULL) >= 0)
        print_text(e);
    json_decref(j);
    return fflush(stdout) == 0;
}

static int follow_once(struct following *f, const char *choice, struct err *e)
{
    char path[800], after[40] = "";

    if (f->last > 0)
        STR_PRINTF(after, "&after=%" PRIu64, f->last);
    STR_PRINTF(path, "/v1/events?follow=1%s%s", choice, after);
    return client_follow(path, take_event, f, e);
}

/* Whoever is told no would be told so again. */
static bool is_refused(int r)
{
    return r == -EACCES || r == -ENOENT || r == -EINVAL;
}

/* A stream ends when reknitd is started again, and when who may see what has changed. Then it goes
 * on behind the last event, as soon as reknitd answers; some seconds are waited for that. */
static int follow(const char *choice, bool json)
{
    static const int pauses_ms[] = {0, 200, 500, 1000, 2000, 4000};
    struct following f = {.json = json};
    struct err e = {0};
    bool followed = false;

    for (size_t tries = 0; tries < ARRAY_SIZE(pauses_ms); tries++) {
        usec_t began = mono_us();
        int r = follow_once(&f, choice, &e);

        if (ferror(stdout))
            return EXIT_OK; /* nobody reads any more; main() says it */
        followed |= r >= 0 || f.last > 0;
        if (!followed || is_refused(r)) {
            log_error("%s", e.text);
            return EXIT_TROUBLE;
        }
        if (mono_us() - began > LASTED)
            tries = 0;
        poll(NULL, 0, pauses_ms[tries]);
    }
    log_error("reknitd has ended the stream and does not answer any more; the last event was "
              "%" PRIu64,
              f.last);
    return EXIT_TROUBLE;
}

/* "&kind=LIST&job=JOB" */
static int follow_choice(const char *kinds, const char *job, bool json)
{
    char choice[700], kind_arg[256] = "", job_arg[256] = "";

    client_escape(kinds ? kinds : "", kind_arg, sizeof(kind_arg));
    client_escape(job ? job : "", job_arg, sizeof(job_arg));
    STR_PRINTF(choice, "%s%s%s%s", kinds ? "&kind=" : "", kind_arg, job ? "&job=" : "", job_arg);
    return follow(choice, json);
}

enum option_value { OPTION_KIND = OPTION_FIRST };

static const struct option options[] = {
    {"kind", required_argument, NULL, OPTION_KIND},
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run(int argc, char **argv)
{
    const char *kinds = NULL;
    bool json = false;
    int opt;

    while ((opt = options_next(&verb_events, argc, argv)) != OPTION_END) {
        if (opt == OPTION_WRONG)
            return EXIT_USAGE;
        if (opt == OPTION_FORMAT && options_format(&verb_events, optarg, &json) != 0)
            return EXIT_USAGE;
        if (opt == OPTION_KIND)
            kinds = optarg;
    }
    if (argc - optind > 1)
        return usage_error("events", "one job at a time");
    return follow_choice(kinds, optind < argc ? argv[optind] : NULL, json);
}

const struct verb verb_events = {
    .name = "events",
    .summary = "follow what happens on the cluster",
    .help = "usage: reknit events [OPTION]... [JOB]\n"
            "\n"
            "Prints what reknitd records from now on, of JOB or of all jobs that you may see\n"
            "(your own; operators: all), until interrupted.\n"
            "Asks reknitd, at $REKNIT_SOCKET or " CLIENT_SOCKET ".\n"
            "\n"
            "  --kind LIST          kinds of events, as verdict,decision, or all; unless\n"
            "                       said, all but signal and tick\n"
            "  --format text|json   json: one object per line\n"
            "\n"
            "When reknitd is started again it goes on behind the last event.\n"
            "\n"
            "Exit status: 1 when the daemon ends or does not answer.\n",
    .options = options,
    .run = run,
};
