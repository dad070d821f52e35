/* SPDX-License-Identifier: Apache-2.0 */

/* What the API sees of the daemon, and what it may ask of it. */

#include "daemon/daemon.h"

#include "action/webhook.h"
#include "base/log.h"
#include "base/str.h"
#include "source/sched_nodes.h"

#include <inttypes.h>
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

static const char *get_notes(void *ctx, const char *key)
{
    const struct daemon *d = ctx;
    const struct job_terms *t = sched_watch_terms(d->sched, key);

    return t ? t->notes : "";
}

static bool get_node_word(void *ctx, const char *node, struct api_node *ret)
{
    const struct daemon *d = ctx;
    struct sched_node_word word;

    if (!sched_watch_word(d->sched, node, &word))
        return false;
    *ret = (struct api_node){.usable = word.usable, .since = word.since};
    str_sanitize(ret->reason, sizeof(ret->reason), word.reason, strlen(word.reason));
    str_sanitize(ret->who, sizeof(ret->who), word.who, strlen(word.who));
    return true;
}

struct nodes_out {
    void (*fn)(void *ctx, const char *name, bool usable);
    void *ctx;
};

static void tell_node(void *ctx, const char *name, const struct sched_node_word *word)
{
    const struct nodes_out *out = ctx;

    out->fn(out->ctx, name, word->usable);
}

static void get_nodes(void *ctx, void (*fn)(void *fn_ctx, const char *name, bool usable),
                      void *fn_ctx)
{
    const struct daemon *d = ctx;
    struct nodes_out out = {fn, fn_ctx};

    sched_watch_each_node(d->sched, tell_node, &out);
}

static int take_alert(void *ctx, const struct api_alert *a)
{
    return ingest_alert(ctx, a);
}

static void get_logs(void *ctx, const char *key, char *ret, size_t size)
{
    const struct daemon *d = ctx;

    log_watch_say(d->logs, key, ret, size);
}

struct unread_out {
    void (*fn)(void *ctx, const char *path, const char *why);
    void *ctx;
};

static void on_unread(void *ctx, const struct unread_log *log)
{
    const struct unread_out *out = ctx;

    out->fn(out->ctx, log->path, log->why);
}

static uint32_t get_unread_logs(void *ctx, const char *key,
                                void (*fn)(void *fn_ctx, const char *path, const char *why),
                                void *fn_ctx)
{
    const struct daemon *d = ctx;
    struct unread_out out = {fn, fn_ctx};

    return log_watch_unread(d->logs, key, on_unread, &out);
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

static void get_agents(void *ctx, bool (*fn)(void *fn_ctx, const struct api_agent *a), void *fn_ctx)
{
    const struct daemon *d = ctx;

    node_watch_agents(d->nodes, fn, fn_ctx);
}

static void get_webhook(const struct daemon *d, struct api_webhook *ret)
{
    struct webhook_counts c;

    *ret = (struct api_webhook){.configured = notifier_counts(d->notifier, &c)};
    ret->sent = c.sent;
    ret->failed = c.failed;
    ret->given_up = c.given_up;
    ret->folded = c.folded;
    ret->dropped = c.dropped;
    ret->pending = c.pending;
    ret->trouble = c.trouble;
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
        .readers_on_nodes = readers.on_nodes,
        .unread = readers.unread,
        .journal_bytes = journal_bytes(d),
        .journal_lost = journal_lost(d->journal),
        .tilt = pump_is_tilted(d->pump) ? d->tilt.text : NULL,
        .config = d->config_path,
        .config_hash = d->config_hash,
    };
    STR_COPY(ret->unread_job, readers.unread_job);
    if (readers.unread > 0)
        get_logs(ctx, readers.unread_job, ret->unread_why, sizeof(ret->unread_why));
    node_watch_counts(d->nodes, &ret->agents);
    get_webhook(d, &ret->webhook);
    if (!ret->adapter[0])
        ret->adapter = ret->adapter_ok ? "connected" : "starting";
}

static struct api_config api_config_of(const struct daemon *d)
{
    const struct daemon_config *c = d->config;

    return (struct api_config){
        .socket = c->api.socket,
        .listen = c->api.listen,
        .tls_cert = c->api.tls_cert,
        .tls_key = c->api.tls_key,
        .token_file = c->api.token_file,
        .operators = c->operators,
        .munge = c->api.munge,
    };
}

/* SlurmUser, by number: names are another host's. */
static void on_config(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                      const char *text)
{
    struct daemon *d = ctx;
    const json_t *uid = json_object_get(json_object_get(answer, "config"), "scheduler_uid");
    json_int_t v = json_integer_value(uid);

    if (outcome == ADAPTER_DONE && json_is_integer(uid) && v >= 0 && v < UINT32_MAX)
        api_set_admin(d->api, (uid_t)v);
}

#define LEARN_PATIENCE (30 * USEC_PER_SEC)

void backend_learn(struct daemon *d)
{
    adapter_ask(d->adapter, json_pack("{s:s}", "op", "config"), LEARN_PATIENCE, on_config, d);
}

int backend_reload(struct daemon *d, struct err *e)
{
    struct api_config config = api_config_of(d); /* without a seal: it has one */

    return api_reload(d->api, &config, e);
}

int backend_new(struct daemon *d, struct err *e)
{
    const struct daemon_config *c = d->config;
    struct api_config config = api_config_of(d);
    char path[PATH_MAX], program[PATH_MAX + 16];
    const char *socket = c->agents.munge_socket; /* another place wants a restart */
    const char *seal[] = {program, *socket ? "--munge-socket" : NULL, socket, NULL};
    struct api_backend backend = {.model = get_model,
                                  .now = get_now,
                                  .submit = submit,
                                  .status = get_status,
                                  .agents = get_agents,
                                  .notes = get_notes,
                                  .node = get_node_word,
                                  .nodes = get_nodes,
                                  .alert = take_alert,
                                  .logs = get_logs,
                                  .unread_logs = get_unread_logs,
                                  .journal = path};

    STR_PRINTF(program, "%s/reknit-seal", d->programs);
    config.seal = seal;
    STR_PRINTF(path, "%s/" JOURNAL_NAME, c->state_dir);
    return api_new(d->event, &config, &backend, d, &d->api, e);
}
