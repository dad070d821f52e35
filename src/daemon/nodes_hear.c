/* SPDX-License-Identifier: Apache-2.0 */

/* The agents are listened to once the nodes are known: before, nobody could be believed. Where, and
 * sealed by what, the configuration says, which may change. Here it is known too which agents there
 * are: for the API, for readers of logs, and for who wants to know what is left on a node. */

#include "daemon/nodes.h"

#include "base/hostlist.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <string.h>

#define RETRY (10 * USEC_PER_SEC) /* to listen */
#define SOON  (200 * USEC_PER_MSEC)

static void on_node(void *ctx, const char *node, const char *trouble)
{
    const struct node_watch *w = ctx;

    if (trouble) {
        log_warning("node %s: %s", node, trouble);
        node_readers_lost(w->d->node_readers, node, trouble);
        return;
    }
    log_info("node %s: its agent is connected", node);
    if (w->d->logs)
        log_watch_node_up(w->d->logs, node);
}

static void on_reader(void *ctx, const char *node, int64_t question, int fd, const char *trouble)
{
    const struct node_watch *w = ctx;

    node_readers_answer(w->d->node_readers, node, question, fd, trouble);
}

static int ask_for_reader(void *ctx, const char *node, int64_t question, uid_t uid, gid_t gid,
                          struct err *e)
{
    const struct node_watch *w = ctx;
    int r = w->agents ? agents_ask(w->agents, node, question, uid, gid) : -ENOTCONN;

    return r == -ENOTCONN ? err_set(e, r, "its agent is not connected")
           : r < 0        ? err_set(e, r, "too much is asked at once")
                          : 0;
}

struct place_wish {
    const char *list, *other_than, *found;
};

static bool find_place(void *ctx, const char *node, const struct agent_view *v)
{
    struct place_wish *q = ctx;

    if (v->connected && hostlist_has(q->list, node) &&
        !(q->other_than && streq(node, q->other_than)))
        q->found = node;
    return !q->found;
}

const char *node_watch_reads(const struct node_watch *w, const char *list, const char *first,
                             const char *other_than)
{
    struct place_wish q = {list, other_than, NULL};
    struct agent_view v;

    if (!w->agents)
        return NULL;
    if (agents_look(w->agents, first, &v) == 0 && find_place(&q, first, &v) == false)
        return q.found;
    agents_each(w->agents, find_place, &q);
    return q.found;
}

static void on_refused(void *ctx, const char *address, const char *why)
{
    struct node_watch *w = ctx;

    if (mono_us() < w->said_refused + NODES_SAY_EVERY)
        return;
    w->said_refused = mono_us();
    log_warning("an agent at %s is refused: %s", address, why);
}

static const char *on_address(void *ctx, const char *node)
{
    struct node_watch *w = ctx;

    return sched_watch_address(w->d->sched, node);
}

static const struct agents_handlers handlers = {.address = on_address,
                                                .message = nodes_take,
                                                .node = on_node,
                                                .refused = on_refused,
                                                .reader = on_reader};

static int hear(struct node_watch *w, struct err *e)
{
    const struct hearing *h = &w->hearing;
    char path[PATH_MAX + 16];
    const char *option = h->by_key ? "--key" : *h->file ? "--munge-socket" : NULL;
    const char *argv[] = {path, option, h->file, NULL};
    struct agents_config config = {.listen = h->listen, .seal = argv};

    STR_PRINTF(path, "%s/reknit-seal", w->d->programs);
    return w->agents ? agents_move(w->agents, &config, e)
                     : agents_new(w->d->event, &config, &handlers, w, &w->agents, e);
}

/* Agents give a stranger nothing; but while there is one, we hear nothing. */
static const char *advice(const struct node_watch *w, int r, char *buf, size_t size)
{
    const char *colon = strrchr(w->hearing.listen, ':');

    if (r != -EADDRINUSE)
        return "";
    str_printf(buf, size,
               ": another program has the port: ss -ltnp 'sport = %s' says which; end it. Until "
               "then agents keep what they have to tell",
               colon ? colon : "");
    return buf;
}

static void listen_now(struct node_watch *w)
{
    struct err e = {0};
    char buf[200];
    int r = hear(w, &e);

    if (r < 0) {
        if (!w->failing)
            log_error("agents cannot be heard: %s%s", e.text, advice(w, r, buf, sizeof(buf)));
        w->failing = true;
        timer_arm(w->timer, mono_us() + RETRY);
        return;
    }
    w->failing = false;
    log_info("agents are heard at %s", w->hearing.listen);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct node_watch *w = userdata;

    if (sched_watch_nodes(w->d->sched) > 0)
        listen_now(w);
    else
        timer_arm(w->timer, mono_us() + SOON);
    return 0;
}

/* For the API */

struct asking {
    bool (*fn)(void *ctx, const struct api_agent *a);
    void *ctx;
    usec_t now; /* of the pump's clock */
};

static bool show_agent(void *ctx, const char *node, const struct agent_view *v)
{
    const struct asking *q = ctx;
    const struct api_agent a = {.node = node,
                                .version = v->heartbeat.version,
                                .connected = v->connected,
                                .heard = q->now + v->heard_us - mono_us(),
                                .behind = v->behind_us,
                                .dropped = v->heartbeat.dropped,
                                .refused = v->heartbeat.refused,
                                .watched = v->heartbeat.watched,
                                .missed = v->heartbeat.missed,
                                .kernel_gaps = v->heartbeat.kernel_gaps,
                                .kernel_lost = v->heartbeat.kernel_lost,
                                .kernel_trouble = v->heartbeat.kernel_trouble};

    return q->fn(q->ctx, &a);
}

void node_watch_agents(const struct node_watch *w, bool (*fn)(void *ctx, const struct api_agent *a),
                       void *ctx)
{
    struct asking q = {fn, ctx, pump_now(w->d->pump)};

    if (w->agents)
        agents_each(w->agents, show_agent, &q);
}

static bool count_agent(void *ctx, const char *node, const struct agent_view *v)
{
    struct api_agents *c = ctx;
    usec_t silent = mono_us() - v->heard_us;

    c->connected += v->connected;
    c->gone += !v->connected;
    c->dropped += v->heartbeat.dropped > 0 ? (uint64_t)v->heartbeat.dropped : 0;
    if (v->connected && silent > c->silent)
        c->silent = silent;
    return true;
}

void node_watch_counts(const struct node_watch *w, struct api_agents *ret)
{
    struct agents_counts c = {0};

    *ret = (struct api_agents){.listening = w->agents && !w->failing};
    if (!w->agents)
        return;
    agents_counts(w->agents, &c);
    ret->messages = c.messages;
    ret->duplicates = c.duplicates;
    ret->refused = c.refused;
    agents_each(w->agents, count_agent, ret);
}

/* A key is replaced under its name. */
static void find_hearing(const struct daemon_config *c, struct hearing *ret)
{
    bool by_key = c->agents.auth == AGENT_AUTH_KEY;
    struct stat st = {0};

    *ret = (struct hearing){.by_key = by_key};
    STR_COPY(ret->listen, c->agents.listen);
    STR_COPY(ret->file, by_key ? c->agents.key_file : c->agents.munge_socket);
    if (by_key && stat(ret->file, &st) == 0) {
        ret->key = st.st_ino;
        ret->key_changed = st.st_mtim;
    }
}

static bool is_same_hearing(const struct hearing *a, const struct hearing *b)
{
    return streq(a->listen, b->listen) && a->by_key == b->by_key && streq(a->file, b->file) &&
           a->key == b->key && a->key_changed.tv_sec == b->key_changed.tv_sec &&
           a->key_changed.tv_nsec == b->key_changed.tv_nsec;
}

/* A configuration that names another place, or seal, has it listen anew; else nobody notices. */
void node_watch_reload(struct node_watch *w)
{
    struct hearing wanted;

    find_hearing(w->d->config, &wanted);
    if (is_same_hearing(&wanted, &w->hearing))
        return;
    w->hearing = wanted;
    if (*wanted.listen) {
        timer_arm(w->timer, mono_us());
        return;
    }
    timer_stop(w->timer);
    w->agents = agents_free(w->agents);
}

bool node_watch_fences(struct node_watch *w, const char *key, const char *node)
{
    struct agent_view view;

    return w->agents && agents_look(w->agents, node, &view) == 0 && view.connected &&
           vacated_fences(w->vacated, key, node);
}

int nodes_hear_init(struct node_watch *w)
{
    int r = timer_new(w->d->event, on_timer, w, &w->timer);

    if (r < 0)
        return r;
    w->said_refused = -NODES_SAY_EVERY;
    node_readers_connect(w->d->node_readers, ask_for_reader, w);
    node_watch_reload(w);
    return 0;
}

void nodes_hear_done(struct node_watch *w)
{
    node_readers_connect(w->d->node_readers, NULL, NULL);
    w->agents = agents_free(w->agents);
    w->timer = sd_event_source_disable_unref(w->timer);
}
