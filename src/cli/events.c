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

#include <inttypes.h>
#include <stdio.h>

extern const struct verb verb_events;

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

/* Goes on behind the last event when the daemon was started again; once, and only if it was. */
static int follow(const char *kinds, const char *job, bool json)
{
    struct following f = {.json = json};
    char path[700], kind_arg[256] = "", job_arg[256] = "";
    struct err e = {0};
    int r;

    if (kinds)
        client_escape(kinds, kind_arg, sizeof(kind_arg));
    if (job)
        client_escape(job, job_arg, sizeof(job_arg));
    snprintf(path, sizeof(path), "/v1/events?follow=1%s%s%s%s", kinds ? "&kind=" : "", kind_arg,
             job ? "&job=" : "", job_arg);
    r = client_follow(path, take_event, &f, &e);
    if (r < 0) {
        log_error("%s", e.text);
        return EXIT_TROUBLE;
    }
    if (ferror(stdout))
        return EXIT_OK; /* nobody reads any more; main() says it */
    log_error(
        "reknitd has ended the stream (it was stopped, or who is an operator has changed); the "
        "last event was %" PRIu64,
        f.last);
    return EXIT_TROUBLE;
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
    return follow(kinds, optind < argc ? argv[optind] : NULL, json);
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
            "Exit status: 1 when the daemon ends or does not answer.\n",
    .options = options,
    .run = run,
};
