/* SPDX-License-Identifier: Apache-2.0 */

/* What the API sees of the daemon, and what it may ask of it. */

#include "daemon/daemon.h"

#include "base/str.h"

#include <stdio.h>
#include <sys/stat.h>

static const struct model *get_model(void *ctx)
{
    const struct daemon *d = ctx;

    return pump_model(d->pump);
}

static usec_t get_now(void *ctx)
{
    const struct daemon *d = ctx;

    return pump_now(d->pump);
}

/* While nothing can be recorded, nothing is promised. */
static int submit(void *ctx, const struct event *input, struct err *e)
{
    struct daemon *d = ctx;

    if (pump_is_tilted(d->pump))
        return err_set(e, -EIO, "the journal cannot be written: nothing is taken until it can");
    pump_input(d->pump, input);
    return 0;
}

static uint64_t journal_bytes(const struct daemon *d)
{
    static const char *const ends[] = {"", "-wal"};
    uint64_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        char path[PATH_MAX];
        struct stat st;

        STR_PRINTF(path, "%s/" JOURNAL_NAME "%s", d->config->state_dir, ends[i]);
        n += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    }
    return n;
}

static void get_status(void *ctx, struct api_status *ret)
{
    const struct daemon *d = ctx;
    struct readers_counts readers = {0};

    log_watch_counts(d->logs, &readers);
    *ret = (struct api_status){
        .version = REKNIT_VERSION,
        .cluster = d->config->cluster[0] ? d->config->cluster : sched_watch_cluster(d->sched),
        .started = d->started,
        .mode = d->config->mode,
        .adapter_ok = adapter_is_up(d->adapter) && !sched_watch_trouble(d->sched)[0],
        .adapter = sched_watch_trouble(d->sched),
        .last_look = sched_watch_looked_at(d->sched),
        .adapter_errors = sched_watch_errors(d->sched),
        .adapter_restarts = adapter_restarts(d->adapter),
        .readers = readers.running,
        .readers_hung = readers.hung,
        .readers_replaced = readers.replaced,
        .agents = node_watch_agents(d->nodes),
        .journal_bytes = journal_bytes(d),
        .tilt = pump_is_tilted(d->pump) ? "the journal cannot be written" : NULL,
    };
    if (!ret->adapter[0])
        ret->adapter = ret->adapter_ok ? "connected" : "starting";
}

int face_new(struct daemon *d, struct err *e)
{
    const struct daemon_config *c = d->config;
    char path[PATH_MAX];
    struct api_backend backend = {.model = get_model,
                                  .now = get_now,
                                  .submit = submit,
                                  .status = get_status,
                                  .journal = path};
    struct api_config config = {
        .socket = c->api.socket,
        .listen = c->api.listen,
        .tls_cert = c->api.tls_cert,
        .tls_key = c->api.tls_key,
        .token_file = c->api.token_file,
        .operators = c->operators,
    };

    STR_PRINTF(path, "%s/" JOURNAL_NAME, c->state_dir);
    return api_new(d->event, &config, &backend, d, &d->api, e);
}
