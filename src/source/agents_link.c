/* SPDX-License-Identifier: Apache-2.0 */

/* A connection, until its messages are opened. Anybody may connect, and have our greeting sealed,
 * by which an agent knows us (wire/greeting.h). Until its first message is believed a connection
 * may send no other and has little time for it. For others than root a reknit-seal of its own seals
 * and opens until they are believed, so that strangers do not hold the nodes up.
 *
 * One that is lost while its messages are being opened stays in memory until the last of them is
 * answered. */

#include "source/agents_inside.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define LINE_BYTES     16384               /* a message of NODE_MESSAGE_BYTES_MAX, sealed */
#define PENDING_MAX    512                 /* being opened, of one connection */
#define GREET_PATIENCE (10 * USEC_PER_SEC) /* for its greeting */
#define PROVE_PATIENCE (60 * USEC_PER_SEC) /* and then for the first message: seals take time */

static void tell_node(struct agents *a, const struct agent_node *n, const char *trouble)
{
    if (a->handlers.node && !a->ending)
        a->handlers.node(a->ctx, n->name, trouble);
}

void agent_link_answered(struct agent_link *c)
{
    if (c->lines || c->pending > 0)
        return;
    free(c);
}

void agent_link_leave(struct agent_link *c)
{
    struct agents *a = c->agents;

    strangers_remove(&a->strangers, c);
    for (size_t i = 0; i < a->links.n; i++) {
        if (a->links.v[i] == c) {
            VEC_REMOVE(&a->links, i);
            break;
        }
    }
}

void agent_link_drop(struct agent_link *c)
{
    struct agents *a = c->agents;
    struct agent_node *n = c->node;

    agent_link_leave(c);
    c->lines = lines_free(c->lines);
    c->deadline = sd_event_source_disable_unref(c->deadline);
    if (n && n->link == c) {
        n->link = NULL;
        n->view.connected = false;
        a->counts.nodes--;
        tell_node(a, n, "its agent is not connected");
    }
    agent_link_answered(c);
}

void agent_link_refuse(struct agent_link *c, const char *why)
{
    struct agents *a = c->agents;

    a->counts.refused++;
    c->refused = true;
    if (!c->lines)
        return;
    if (c->node)
        tell_node(a, c->node, why);
    else if (a->handlers.refused)
        a->handlers.refused(a->ctx, c->peer, why);
    lines_send(c->lines, json_pack("{s:s}", "refused", why));
    lines_close(c->lines);
}

void agent_link_prove(struct agent_link *c, struct agent_node *n)
{
    struct agent_link *old = n->link;

    strangers_remove(&c->agents->strangers, c);
    c->node = n;
    n->link = c;
    n->view.connected = true;
    n->view.heard_us = mono_us(); /* whoever is told of it now looks for it among the others */
    if (old)
        lines_close(old->lines);
    else
        c->agents->counts.nodes++;
    tell_node(c->agents, n, NULL);
}

static void on_opened(void *ctx, const json_t *answer)
{
    struct agent_link *c = ctx;
    const char *why = json_string_value(json_object_get(answer, "error"));

    c->pending--;
    if (c->lines && !c->refused) {
        if (json_object_get(answer, "text"))
            agents_take(c, answer);
        else /* munged is down, or it is a bad one: either way it must come again */
            agent_link_refuse(c, why ? why : "reknit-seal does not answer");
    }
    agent_link_answered(c);
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct agent_link *c = userdata;

    agent_link_refuse(c, "it says nothing");
    return 0;
}

static int set_deadline(struct agent_link *c, usec_t in)
{
    return sd_event_add_time_relative(c->agents->event, &c->deadline, CLOCK_MONOTONIC, (uint64_t)in,
                                      0, on_deadline, c);
}

static struct helper *sealer_for(const struct agent_link *c)
{
    return c->node || c->by_root ? c->agents->opener : c->agents->greeter;
}

static void on_greeting_sealed(void *ctx, const json_t *answer)
{
    struct agent_link *c = ctx;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    char why[160];

    c->pending--;
    STR_PRINTF(why, "reknitd cannot seal its greeting: %s",
               error ? error : "reknit-seal does not answer");
    if (c->lines && !c->refused && !sealed) {
        agent_link_refuse(c, why);
    } else if (c->lines && !c->refused) {
        c->stage = STAGE_GREETED;
        lines_send(c->lines, json_pack("{s:s}", "sealed", sealed));
        set_deadline(c, PROVE_PATIENCE);
    }
    agent_link_answered(c);
}

/* Agents are root, and nobody else needs to open it. */
static void take_hello(struct agent_link *c, const json_t *j)
{
    _cleanup_(freep) char *text = NULL;
    json_t *greeting;
    struct err e;

    if (greeting_take_hello(j, &c->words, &e) < 0) {
        agent_link_refuse(c, e.text);
        return;
    }
    greeting = greeting_to_seal(&c->words);
    text = json_dumps(greeting, JSON_COMPACT);
    json_decref(greeting);
    c->stage = STAGE_SEALING;
    strangers_greeted(&c->agents->strangers, c);
    if (!text || helper_ask(sealer_for(c), json_pack("{s:s, s:i}", "seal", text, "for", 0),
                            on_greeting_sealed, c) < 0)
        agent_link_refuse(c, "too much to seal: come again");
    else
        c->pending++;
}

static void take_sealed(struct agent_link *c, const json_t *j)
{
    const char *sealed = json_string_value(json_object_get(j, "sealed"));
    struct helper *opener = sealer_for(c);

    if (!sealed)
        agent_link_refuse(c, "no sealed message");
    else if (!c->node && c->spoke)
        agent_link_refuse(c, "a second message before the first was answered");
    else if (c->pending >= PENDING_MAX)
        agent_link_refuse(c, "too much at once");
    else if (helper_ask(opener, json_pack("{s:s}", "open", sealed), on_opened, c) < 0)
        agent_link_refuse(c, "too much to open: come again");
    else
        c->pending++;
    c->spoke = true;
}

static void on_object(void *ctx, const json_t *j)
{
    struct agent_link *c = ctx;

    if (c->refused)
        return;
    c->deadline = sd_event_source_disable_unref(c->deadline);
    if (c->stage == STAGE_HELLO)
        take_hello(c, j);
    else if (c->stage == STAGE_SEALING)
        agent_link_refuse(c, "a message before it was greeted");
    else
        take_sealed(c, j);
}

/* An agent that does not want us says nothing to us, but in its own log. One that was made before
 * agents greeted leaves at our protocol's number. */
static const char *why_it_left(const struct agent_link *c)
{
    switch (c->stage) {
    case STAGE_HELLO:
        return "it left without a greeting: an agent that is too old does so";
    case STAGE_SEALING:
        return "it did not wait for our greeting: reknit-seal is slow, as when munged hangs";
    case STAGE_GREETED:
        break;
    }
    return "it does not take us for reknitd: its own log says why";
}

static void on_closed(void *ctx)
{
    struct agent_link *c = ctx;
    struct agents *a = c->agents;

    if (!c->spoke && !c->refused) {
        a->counts.refused++;
        if (a->handlers.refused)
            a->handlers.refused(a->ctx, c->peer, why_it_left(c));
    }
    agent_link_drop(c);
}

static void on_bad(void *ctx, const char *text)
{
    struct agent_link *c = ctx;

    if (!c->refused)
        agent_link_refuse(c, text);
}

void agent_link_new(struct agents *a, int fd, const char *peer, bool by_root)
{
    static const struct lines_options options = {.line_max = LINE_BYTES, .owed_max = 65536};
    static const struct lines_handlers handlers = {
        .object = on_object, .bad = on_bad, .closed = on_closed};
    struct agent_link *c = xnew(struct agent_link);
    int on = 1;

    c->agents = a;
    c->by_root = by_root;
    STR_COPY(c->peer, peer);
    greeting_place(fd, true, c->words.at);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->lines = lines_new(a->event, fd, fd, &options, &handlers, c);
    if (!c->lines || word_make(c->words.word) < 0 || set_deadline(c, GREET_PATIENCE) < 0) {
        c->lines = lines_free(c->lines);
        free(c);
        return;
    }
    *VEC_PUSH(&a->links) = c;
    strangers_add(&a->strangers, c, peer, by_root);
    lines_send(c->lines, json_pack("{s:i, s:s}", "reknit", AGENT_PROTOCOL, "word", c->words.word));
}
