/* SPDX-License-Identifier: Apache-2.0 */

/* The way of a message whose seal is good: it comes from where the scheduler says its node is
 * (names are resolved by a reknit-seal, for that may hang, and remembered for a while) → not told
 * before → handed on → safe with whom it was handed on to → acked.
 *
 * The order stays as it came: the helper answers in the order of asking, and no message passes one
 * that waits for an address. A message names its node, and a connection is of one node from its
 * first message on. What has the seal, but makes no sense, is acked too, or it would come for ever.
 *
 * Nobody's clock is trusted to agree with ours, and any may be set while we run. So each heartbeat,
 * which is the first message of a connection, shows how far the node's clock is from our monotonic
 * one, and by that what happened on the node is told in our time.
 *
 * What there is no room for now is neither told nor acked, and nothing behind it in its spool is.
 * With its next heartbeat the connection is closed: its agent comes again, and so does all of that.
 */

#include "source/agents_inside.h"

#include "base/alloc.h"
#include "base/str.h"

#define CANNOT_LOOK_UP "its address cannot be looked up now"

/* A message whose seal is good, on its way. */
struct claim {
    struct agent_link *link;
    json_t *message;
    char from[NODE_ADDRESS_LEN]; /* "" = the seal vouches for none */
};

static void note_heartbeat(struct agent_node *n, const struct node_message *m)
{
    n->view.heartbeat = m->heartbeat;
    n->view.behind_us = now_us() - m->time_us;
    n->clock = m->time_us - mono_us();
    n->has_beaten = true;
}

/* When it was by our monotonic clock: not after now. */
static usec_t to_our_time(const struct agent_node *n, usec_t time)
{
    usec_t now = mono_us();

    return n->has_beaten && time - n->clock < now ? time - n->clock : now;
}

static enum agent_taken hand_on(struct agents *a, struct agent_node *n, const json_t *body,
                                int64_t origin, int64_t id)
{
    struct agent_receipt r = {.origin = origin, .id = id};
    struct node_message m;

    n->view.heard_us = mono_us();
    if (node_message_from_json(body, &m, NULL) < 0) {
        a->counts.refused++;
        return AGENT_TAKEN;
    }
    STR_COPY(m.node, n->name);
    STR_COPY(r.node, n->name);
    if (m.kind == NODE_MESSAGE_READER) {
        if (a->handlers.reader)
            a->handlers.reader(a->ctx, n->name, m.reader.question, -1,
                               *m.reader.trouble ? m.reader.trouble : "its agent says no");
        return AGENT_TAKEN;
    }
    if (m.kind == NODE_MESSAGE_HEARTBEAT)
        note_heartbeat(n, &m);
    m.mono_us = to_our_time(n, m.time_us);
    a->counts.messages++;
    return a->handlers.message(a->ctx, &m, &r);
}

static void acknowledge(struct agent_link *c, int64_t origin, int64_t id)
{
    json_t *j = json_pack("{s:I, s:I}", "ack", (json_int_t)id, "origin", (json_int_t)origin);

    if (!c || !c->lines)
        json_decref(j);
    else if (lines_send(c->lines, j) < 0)
        lines_close(c->lines); /* it asks and does not listen */
}

static void acknowledge_safe(struct agent_node *n)
{
    int64_t origin, id;

    if (agent_receipts_ack(&n->receipts, &origin, &id))
        acknowledge(n->link, origin, id);
}

void agents_done(struct agents *a, const struct agent_receipt *r)
{
    struct agent_node *n = agents_node(a, r->node);

    if (n && agent_receipts_safe(&n->receipts, r->origin, r->id))
        acknowledge_safe(n);
}

static void hand_on_spooled(struct agent_link *c, struct agent_node *n, int64_t origin, int64_t id,
                            const json_t *body)
{
    enum agent_taken taken = hand_on(c->agents, n, body, origin, id);

    if (taken == AGENT_NO_ROOM) {
        c->full = true;
        agent_receipts_untake(&n->receipts);
    } else if (taken == AGENT_TAKEN) {
        agent_receipts_safe(&n->receipts, origin, id);
    }
    acknowledge_safe(n);
}

static void accept_spooled(struct agent_link *c, struct agent_node *n, int64_t origin, int64_t id,
                           const json_t *body)
{
    if (c->full)
        return;
    switch (agent_receipts_take(&n->receipts, origin, id)) {
    case AGENT_RECEIPT_NEW:
        hand_on_spooled(c, n, origin, id, body);
        break;
    case AGENT_RECEIPT_SAFE:
        acknowledge(c, origin, id);
        c->agents->counts.duplicates++;
        break;
    case AGENT_RECEIPT_WAITS:
        c->agents->counts.duplicates++;
        break;
    case AGENT_RECEIPT_NO_ROOM:
        agent_link_refuse(c, "too much that waits to be written down: come again");
        break;
    }
}

/* Told once, or never. */
static void accept_unspooled(struct agent_link *c, struct agent_node *n, const json_t *body)
{
    const char *kind = json_string_value(json_object_get(body, "kind"));

    if (c->full && kind && streq(kind, node_message_kind_name(NODE_MESSAGE_HEARTBEAT))) {
        agent_link_refuse(c, "there was no room for all it told: it is to come again");
        return;
    }
    c->full |= hand_on(c->agents, n, body, 0, 0) == AGENT_NO_ROOM;
    acknowledge(c, 0, 0);
}

/* Whether the connection is a reader's from now on. It is freed by whoever had it opened. */
static bool become_reader(struct agent_link *c, const struct agent_node *n, const json_t *body)
{
    struct agents *a = c->agents;
    struct node_message m;
    int fd;

    if (c->node || node_message_from_json(body, &m, NULL) < 0 || m.kind != NODE_MESSAGE_READER ||
        *m.reader.trouble)
        return false;
    lines_send(c->lines, json_pack("{s:I}", "reader", (json_int_t)m.reader.question));
    fd = a->handlers.reader ? lines_release(c->lines) : -1;
    if (fd < 0) {
        lines_close(c->lines);
        return true;
    }
    c->lines = NULL;
    agent_link_leave(c);
    a->handlers.reader(a->ctx, n->name, m.reader.question, fd, NULL);
    return true;
}

static void accept_message(struct agent_link *c, struct agent_node *n, const json_t *message)
{
    int64_t origin = json_integer_value(json_object_get(message, "origin"));
    int64_t id = json_integer_value(json_object_get(message, "id"));
    const json_t *body = json_object_get(message, "body");

    if (become_reader(c, n, body))
        return;
    if (!c->node)
        agent_link_prove(c, n);
    if (id > 0)
        accept_spooled(c, n, origin, id, body);
    else
        accept_unspooled(c, n, body);
}

static void on_refreshed(void *ctx, const json_t *answer)
{
    struct agent_node *n = ctx;

    n->addresses.asked = false;
    node_addresses_learn(&n->addresses, answer, mono_us());
}

/* While it is asked for, the address that was found last holds. */
static void refresh(struct agents *a, struct agent_node *n, const char *address)
{
    if (!node_addresses_are_due(&n->addresses, mono_us()))
        return;
    n->addresses.asked =
        helper_ask(a->resolver, json_pack("{s:s}", "resolve", address), on_refreshed, n) == 0;
}

static struct claim *claim_free(struct claim *claim)
{
    json_decref(claim->message);
    free(claim);
    return NULL;
}

/* A munged that does not know its host's address vouches for the loopback's, or for 0.0.0.0. */
static const char *origin_of(const struct claim *claim)
{
    bool known = claim->from[0] && !str_startswith(claim->from, "127.") &&
                 !str_startswith(claim->from, "0.");

    return known ? claim->from : claim->link->peer;
}

static void check_address(struct claim *claim, struct agent_node *n)
{
    struct agent_link *c = claim->link;
    char why[200];

    if (node_addresses_has(&n->addresses, origin_of(claim))) {
        accept_message(c, n, claim->message);
    } else if (n->addresses.n == 0) {
        agent_link_refuse(c, CANNOT_LOOK_UP);
    } else {
        STR_PRINTF(why, "a message of node %s comes from %s, which is not its address", n->name,
                   origin_of(claim));
        agent_link_refuse(c, why);
    }
}

static void on_resolved(void *ctx, const json_t *answer)
{
    struct claim *claim = ctx;
    struct agent_link *c = claim->link;
    struct agent_node *n =
        agents_node(c->agents, json_string_value(json_object_get(claim->message, "node")));

    c->pending--;
    c->resolving--;
    if (n && c->lines && !c->refused) {
        node_addresses_learn(&n->addresses, answer, mono_us());
        check_address(claim, n);
    }
    claim_free(claim);
    agent_link_answered(c);
}

/* Takes the claim over. An address that is not the node's may have become so a moment ago. */
static void locate(struct claim *claim, struct agent_node *n)
{
    struct agent_link *c = claim->link;
    const char *address = c->agents->handlers.address(c->agents->ctx, n->name);

    if (address && c->resolving == 0 && node_addresses_has(&n->addresses, origin_of(claim))) {
        refresh(c->agents, n, address);
        accept_message(c, n, claim->message);
    } else if (address && helper_ask(c->agents->resolver, json_pack("{s:s}", "resolve", address),
                                     on_resolved, claim) == 0) {
        c->pending++;
        c->resolving++;
        return;
    } else {
        agent_link_refuse(c, CANNOT_LOOK_UP);
    }
    claim_free(claim);
}

void agents_take(struct agent_link *c, const json_t *opened)
{
    const char *text = json_string_value(json_object_get(opened, "text"));
    const char *from = json_string_value(json_object_get(opened, "from"));
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *word = json_string_value(json_object_get(j, "word"));
    const char *name = json_string_value(json_object_get(j, "node"));
    json_int_t protocol = json_integer_value(json_object_get(j, "v"));
    char clean[NODE_NAME_LEN], other[100];
    struct claim *claim;
    struct agent_node *n;

    STR_PRINTF(other, "it speaks protocol %lld and reknitd %d: one of them is too old",
               (long long)protocol, AGENT_PROTOCOL);
    str_sanitize(clean, sizeof(clean), name ? name : "", name ? strlen(name) : 0);
    if (json_integer_value(json_object_get(opened, "uid")) != 0)
        agent_link_refuse(c, "a message that was not sealed by root");
    else if (protocol != AGENT_PROTOCOL)
        agent_link_refuse(c, other);
    else if (!word || !streq(word, c->words.word))
        agent_link_refuse(c, "a message that was sealed for another connection");
    else if (!name || !name[0] || !streq(name, clean) || (c->node && !streq(name, c->node->name)))
        agent_link_refuse(c, "a message of another node, or of none");
    else if (!c->agents->handlers.address(c->agents->ctx, name))
        agent_link_refuse(c, "a message of a node that the scheduler does not have");
    else if (!(n = agents_node_get(c->agents, name)))
        agent_link_refuse(c, "there are too many nodes");
    else {
        claim = xnew(struct claim);
        *claim = (struct claim){.link = c, .message = json_incref(j)};
        STR_COPY(claim->from, from ? from : "");
        locate(claim, n);
    }
    json_decref(j);
}
