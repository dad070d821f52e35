/* SPDX-License-Identifier: Apache-2.0 */

/* The way of a message: a line on a connection → opened by a reknit-seal → it comes from where the
 * scheduler says its node is (names are resolved by another reknit-seal, for that may hang, and
 * remembered for a while) → not told before → handed on → safe with whom it was handed on to →
 * acked. src/agent/uplink.c has the other end.
 *
 * On one connection the order stays as it came: both helpers answer in the order of asking, and no
 * message passes one that waits for an address. A message names its node, and a connection is of
 * one node from its first message on. What has the seal, but makes no sense, is acked too, or it
 * would come for ever. An ack speaks for all before it, so one that is not safe holds the others
 * up.
 *
 * Anybody may connect, and have our greeting sealed, by which an agent knows us (wire/greeting.h).
 * Until its first message is believed a connection may send no other, has little time for it, and
 * few others from its address beside it: of too many the oldest is dropped, one that did not even
 * greet us before others, and never the new one, or who holds some would keep a node's agent out.
 * What root opened, by its port, does not count with what a node's users did. For others than
 * root a reknit-seal of its own seals and opens until they are believed, so that strangers do not
 * hold the nodes up.
 *
 * Nobody's clock is trusted to agree with ours, and any may be set while we run. So each heartbeat,
 * which is the first message of a connection, shows how far the node's clock is from our monotonic
 * one, and by that what happened on the node is told in our time.
 *
 * What there is no room for now is neither told nor acked, and nothing behind it in its spool is.
 * With its next heartbeat the connection is closed: its agent comes again, and so does all of that.
 *
 * Addresses that were found once hold until others are found: without a name server the agents are
 * heard as before, but for those never heard.
 *
 * Agents can be asked to start readers of logs. What is asked is sealed, with a word of the agent's
 * own, for we are asked to prove who we are as they are. The answer is another connection, which
 * begins like all others: with a message of that node, under its seal, for this connection. That
 * it was believed is said to it, and then it is no agent's any more, but the reader's.
 *
 * A connection that is lost while its messages are being opened stays in memory until the last of
 * them is answered. */

#include "source/agents.h"

#include "base/acceptor.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/greeting.h"
#include "wire/helper.h"
#include "wire/lines.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define LINE_BYTES     16384 /* a message of NODE_MESSAGE_BYTES_MAX, sealed */
#define PENDING_MAX    512   /* being opened, of one connection */
#define OPEN_MAX       1024  /* not safe yet, of one node */
#define ORIGINS_MAX    8     /* of one node; a spool has one for each start of its agent */
#define GREET_PATIENCE (10 * USEC_PER_SEC) /* for its greeting */
#define PROVE_PATIENCE (60 * USEC_PER_SEC) /* and then for the first message: seals take time */
#define ADDRESSES_FOR  (300 * USEC_PER_SEC)
#define LOOK_UP_AGAIN  (30 * USEC_PER_SEC) /* after it failed */
#define ADDRESSES_MAX  16
#define ADDRESS_LEN    64

#define CANNOT_LOOK_UP "its address cannot be looked up now"

/* The last message of an origin that was handed on. */
struct told {
    int64_t origin, last;
};

/* Handed on, and not acked: it is not safe yet, or one before it is not. */
struct open {
    int64_t origin, id;
    bool safe;
};

/* What is known of a node; not forgotten as long as this process lives, for its messages must not
 * be told again. */
struct node {
    char name[NODE_NAME_LEN];
    struct connection *connection;
    struct told told[ORIGINS_MAX]; /* oldest first */
    size_t n_told;
    VEC(struct open) open;                      /* in the order of the node's spool */
    char addresses[ADDRESSES_MAX][ADDRESS_LEN]; /* as they were last found */
    size_t n_addresses;
    usec_t fresh_until; /* our monotonic clock */
    bool refreshing;
    bool has_beaten;
    usec_t clock; /* the node's before our monotonic one, when it last beat */
    struct agent_view view;
};

struct connection {
    struct agents *agents;
    struct lines *lines; /* NULL = lost */
    struct node *node;   /* NULL = none has been proven yet */
    struct greeting words;
    char peer[ADDRESS_LEN];
    bool by_root; /* it comes from a port that others may not use, where they may not */
    enum { STAGE_HELLO, STAGE_SEALING, STAGE_GREETED } stage;
    size_t pending;   /* answers that are outstanding */
    size_t resolving; /* ... of them for addresses */
    bool spoke, refused;
    bool full;                 /* there was no room for a message of it */
    sd_event_source *deadline; /* for its greeting, then for the first message */
};

struct agents {
    sd_event *event;
    struct agents_handlers handlers;
    void *ctx;
    struct helper *opener, *resolver;
    struct helper *greeter; /* seals and opens for strangers */
    int fd;
    struct acceptor *acceptor;
    VEC(struct connection *) connections;
    VEC(struct node *) nodes; /* by name */
    struct agents_counts counts;
    bool ending;
};

/* A message whose seal is good, on its way. */
struct claim {
    struct connection *connection;
    json_t *message;
    char from[ADDRESS_LEN]; /* "" = the seal vouches for none */
};

static size_t position(const struct agents *a, const char *name)
{
    return VEC_BISECT(&a->nodes, n, strcmp((*n)->name, name) < 0);
}

static struct node *find_node(const struct agents *a, const char *name)
{
    size_t i = position(a, name);

    return i < a->nodes.n && streq(a->nodes.v[i]->name, name) ? a->nodes.v[i] : NULL;
}

/* NULL: there are too many. */
static struct node *get_node(struct agents *a, const char *name)
{
    struct node *n = find_node(a, name);

    if (n || a->nodes.n >= AGENTS_MAX)
        return n;
    n = xnew(struct node);
    STR_COPY(n->name, name);
    *VEC_INSERT(&a->nodes, position(a, name)) = n;
    return n;
}

static void tell_node(struct agents *a, const struct node *n, const char *trouble)
{
    if (a->handlers.node && !a->ending)
        a->handlers.node(a->ctx, n->name, trouble);
}

static void free_when_done(struct connection *c)
{
    if (c->lines || c->pending > 0)
        return;
    free(c);
}

static void forget_connection(struct connection *c)
{
    struct agents *a = c->agents;

    for (size_t i = 0; i < a->connections.n; i++) {
        if (a->connections.v[i] == c) {
            VEC_REMOVE(&a->connections, i);
            break;
        }
    }
}

/* The lines are gone, or go. */
static void drop(struct connection *c)
{
    struct agents *a = c->agents;
    struct node *n = c->node;

    forget_connection(c);
    c->lines = lines_free(c->lines);
    c->deadline = sd_event_source_disable_unref(c->deadline);
    if (n && n->connection == c) {
        n->connection = NULL;
        n->view.connected = false;
        a->counts.nodes--;
        tell_node(a, n, "its agent is not connected");
    }
    free_when_done(c);
}

static void refuse(struct connection *c, const char *why)
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

/* A node's new connection takes the place of its old one, which the node has lost. */
static void prove(struct connection *c, struct node *n)
{
    struct connection *old = n->connection;

    c->node = n;
    n->connection = c;
    n->view.connected = true;
    if (old)
        lines_close(old->lines);
    else
        c->agents->counts.nodes++;
    tell_node(c->agents, n, NULL);
}

static void note_heartbeat(struct node *n, const struct node_message *m)
{
    n->view.heartbeat = m->heartbeat;
    n->view.behind_us = now_us() - m->time_us;
    n->clock = m->time_us - mono_us();
    n->has_beaten = true;
}

/* When it was by our monotonic clock: not after now. */
static usec_t to_our_time(const struct node *n, usec_t time)
{
    usec_t now = mono_us();

    return n->has_beaten && time - n->clock < now ? time - n->clock : now;
}

static enum agent_taken hand_on(struct agents *a, struct node *n, const json_t *body,
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

static struct told *told_of(struct node *n, int64_t origin)
{
    for (size_t i = 0; i < n->n_told; i++) {
        if (n->told[i].origin == origin)
            return &n->told[i];
    }
    if (n->n_told == ORIGINS_MAX)
        memmove(n->told, n->told + 1, --n->n_told * sizeof(n->told[0]));
    n->told[n->n_told] = (struct told){.origin = origin};
    return &n->told[n->n_told++];
}

static struct open *find_open(struct node *n, int64_t origin, int64_t id)
{
    VEC_FOREACH (&n->open, o) {
        if (o->origin == origin && o->id == id)
            return o;
    }
    return NULL;
}

static void acknowledge(struct connection *c, int64_t origin, int64_t id)
{
    json_t *j = json_pack("{s:I, s:I}", "ack", (json_int_t)id, "origin", (json_int_t)origin);

    if (!c || !c->lines)
        json_decref(j);
    else if (lines_send(c->lines, j) < 0)
        lines_close(c->lines); /* it asks and does not listen */
}

static void acknowledge_safe(struct node *n)
{
    struct open last;
    size_t safe = 0;

    while (safe < n->open.n && n->open.v[safe].safe)
        last = n->open.v[safe++];
    if (safe == 0)
        return;
    memmove(n->open.v, n->open.v + safe, (n->open.n - safe) * sizeof(*n->open.v));
    n->open.n -= safe;
    acknowledge(n->connection, last.origin, last.id);
}

void agents_done(struct agents *a, const struct agent_receipt *r)
{
    struct node *n = find_node(a, r->node);
    struct open *o = n ? find_open(n, r->origin, r->id) : NULL;

    if (!o)
        return;
    o->safe = true;
    acknowledge_safe(n);
}

static void accept_spooled(struct connection *c, struct node *n, int64_t origin, int64_t id,
                           const json_t *body)
{
    struct told *told = told_of(n, origin);
    int64_t before = told->last;
    enum agent_taken taken;

    if (c->full)
        return;
    if (id <= told->last) {
        c->agents->counts.duplicates++;
        if (!find_open(n, origin, id)) /* then all before it are safe too */
            acknowledge(c, origin, id);
        return;
    }
    if (n->open.n >= OPEN_MAX) {
        refuse(c, "too much that waits to be written down: come again");
        return;
    }
    told->last = id;
    *VEC_PUSH(&n->open) = (struct open){.origin = origin, .id = id};
    taken = hand_on(c->agents, n, body, origin, id);
    if (taken == AGENT_NO_ROOM) {
        c->full = true;
        told->last = before;
        n->open.n--; /* it is the last */
    } else if (taken == AGENT_TAKEN) {
        find_open(n, origin, id)->safe = true;
    }
    acknowledge_safe(n);
}

/* Told once, or never. */
static void accept_unspooled(struct connection *c, struct node *n, const json_t *body)
{
    const char *kind = json_string_value(json_object_get(body, "kind"));

    if (c->full && kind && streq(kind, node_message_kind_name(NODE_MESSAGE_HEARTBEAT))) {
        refuse(c, "there was no room for all it told: it is to come again");
        return;
    }
    c->full |= hand_on(c->agents, n, body, 0, 0) == AGENT_NO_ROOM;
    acknowledge(c, 0, 0);
}

/* Whether the connection is a reader's from now on. It is freed by whoever had it opened. */
static bool become_reader(struct connection *c, const struct node *n, const json_t *body)
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
    forget_connection(c);
    a->handlers.reader(a->ctx, n->name, m.reader.question, fd, NULL);
    return true;
}

static void accept_message(struct connection *c, struct node *n, const json_t *message)
{
    int64_t origin = json_integer_value(json_object_get(message, "origin"));
    int64_t id = json_integer_value(json_object_get(message, "id"));
    const json_t *body = json_object_get(message, "body");

    if (become_reader(c, n, body))
        return;
    if (!c->node)
        prove(c, n);
    if (id > 0)
        accept_spooled(c, n, origin, id, body);
    else
        accept_unspooled(c, n, body);
}

static bool has_address(const struct node *n, const char *address)
{
    for (size_t i = 0; i < n->n_addresses; i++) {
        if (streq(n->addresses[i], address))
            return true;
    }
    return false;
}

static void learn_addresses(struct node *n, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "addresses");
    size_t count = json_array_size(list);

    n->fresh_until = mono_us() + (count > 0 ? ADDRESSES_FOR : LOOK_UP_AGAIN);
    if (count == 0)
        return;
    n->n_addresses = 0;
    for (size_t i = 0; i < count && i < ADDRESSES_MAX; i++)
        STR_COPY(n->addresses[n->n_addresses++], json_string_value(json_array_get(list, i)) ?: "");
}

static void on_refreshed(void *ctx, const json_t *answer)
{
    struct node *n = ctx;

    n->refreshing = false;
    learn_addresses(n, answer);
}

/* While it is asked for, the address that was found last holds. */
static void refresh(struct agents *a, struct node *n, const char *address)
{
    if (n->refreshing || mono_us() < n->fresh_until)
        return;
    n->refreshing =
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

    return known ? claim->from : claim->connection->peer;
}

static void check_address(struct claim *claim, struct node *n)
{
    struct connection *c = claim->connection;
    char why[200];

    if (has_address(n, origin_of(claim))) {
        accept_message(c, n, claim->message);
    } else if (n->n_addresses == 0) {
        refuse(c, CANNOT_LOOK_UP);
    } else {
        STR_PRINTF(why, "a message of node %s comes from %s, which is not its address", n->name,
                   origin_of(claim));
        refuse(c, why);
    }
}

static void on_resolved(void *ctx, const json_t *answer)
{
    struct claim *claim = ctx;
    struct connection *c = claim->connection;
    struct node *n =
        find_node(c->agents, json_string_value(json_object_get(claim->message, "node")));

    c->pending--;
    c->resolving--;
    if (n && c->lines && !c->refused) {
        learn_addresses(n, answer);
        check_address(claim, n);
    }
    claim_free(claim);
    free_when_done(c);
}

/* Takes the claim over. An address that is not the node's may have become so a moment ago. */
static void locate(struct claim *claim, struct node *n)
{
    struct connection *c = claim->connection;
    const char *address = c->agents->handlers.address(c->agents->ctx, n->name);

    if (address && c->resolving == 0 && has_address(n, origin_of(claim))) {
        refresh(c->agents, n, address);
        accept_message(c, n, claim->message);
    } else if (address && helper_ask(c->agents->resolver, json_pack("{s:s}", "resolve", address),
                                     on_resolved, claim) == 0) {
        c->pending++;
        c->resolving++;
        return;
    } else {
        refuse(c, CANNOT_LOOK_UP);
    }
    claim_free(claim);
}

/* The seal is good: what it says must be for us, from one node. */
static void take_opened(struct connection *c, const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "text"));
    const char *from = json_string_value(json_object_get(answer, "from"));
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *word = json_string_value(json_object_get(j, "word"));
    const char *name = json_string_value(json_object_get(j, "node"));
    json_int_t protocol = json_integer_value(json_object_get(j, "v"));
    char clean[NODE_NAME_LEN], other[100];
    struct claim *claim;
    struct node *n;

    STR_PRINTF(other, "it speaks protocol %lld and reknitd %d: one of them is too old",
               (long long)protocol, AGENT_PROTOCOL);
    str_sanitize(clean, sizeof(clean), name ? name : "", name ? strlen(name) : 0);
    if (json_integer_value(json_object_get(answer, "uid")) != 0)
        refuse(c, "a message that was not sealed by root");
    else if (protocol != AGENT_PROTOCOL)
        refuse(c, other);
    else if (!word || !streq(word, c->words.word))
        refuse(c, "a message that was sealed for another connection");
    else if (!name || !name[0] || !streq(name, clean) || (c->node && !streq(name, c->node->name)))
        refuse(c, "a message of another node, or of none");
    else if (!c->agents->handlers.address(c->agents->ctx, name))
        refuse(c, "a message of a node that the scheduler does not have");
    else if (!(n = get_node(c->agents, name)))
        refuse(c, "there are too many nodes");
    else {
        claim = xnew(struct claim);
        *claim = (struct claim){.connection = c, .message = json_incref(j)};
        STR_COPY(claim->from, from ? from : "");
        locate(claim, n);
    }
    json_decref(j);
}

static void on_opened(void *ctx, const json_t *answer)
{
    struct connection *c = ctx;
    const char *why = json_string_value(json_object_get(answer, "error"));

    c->pending--;
    if (c->lines && !c->refused) {
        if (json_object_get(answer, "text"))
            take_opened(c, answer);
        else /* munged is down, or it is a bad one: either way it must come again */
            refuse(c, why ? why : "reknit-seal does not answer");
    }
    free_when_done(c);
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct connection *c = userdata;

    refuse(c, "it says nothing");
    return 0;
}

static int set_deadline(struct connection *c, usec_t in)
{
    return sd_event_add_time_relative(c->agents->event, &c->deadline, CLOCK_MONOTONIC, (uint64_t)in,
                                      0, on_deadline, c);
}

static struct helper *sealer_for(const struct connection *c)
{
    return c->node || c->by_root ? c->agents->opener : c->agents->greeter;
}

static void on_greeting_sealed(void *ctx, const json_t *answer)
{
    struct connection *c = ctx;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    char why[160];

    c->pending--;
    STR_PRINTF(why, "reknitd cannot seal its greeting: %s",
               error ? error : "reknit-seal does not answer");
    if (c->lines && !c->refused && !sealed) {
        refuse(c, why);
    } else if (c->lines && !c->refused) {
        c->stage = STAGE_GREETED;
        lines_send(c->lines, json_pack("{s:s}", "sealed", sealed));
        set_deadline(c, PROVE_PATIENCE);
    }
    free_when_done(c);
}

/* Agents are root, and nobody else needs to open it. */
static void take_hello(struct connection *c, const json_t *j)
{
    _cleanup_(freep) char *text = NULL;
    json_t *greeting;
    struct err e;

    if (greeting_take_hello(j, &c->words, &e) < 0) {
        refuse(c, e.text);
        return;
    }
    greeting = greeting_to_seal(&c->words);
    text = json_dumps(greeting, JSON_COMPACT);
    json_decref(greeting);
    c->stage = STAGE_SEALING;
    if (!text || helper_ask(sealer_for(c), json_pack("{s:s, s:i}", "seal", text, "for", 0),
                            on_greeting_sealed, c) < 0)
        refuse(c, "too much to seal: come again");
    else
        c->pending++;
}

static void take_sealed(struct connection *c, const json_t *j)
{
    const char *sealed = json_string_value(json_object_get(j, "sealed"));
    struct helper *opener = sealer_for(c);

    if (!sealed)
        refuse(c, "no sealed message");
    else if (!c->node && c->spoke)
        refuse(c, "a second message before the first was answered");
    else if (c->pending >= PENDING_MAX)
        refuse(c, "too much at once");
    else if (helper_ask(opener, json_pack("{s:s}", "open", sealed), on_opened, c) < 0)
        refuse(c, "too much to open: come again");
    else
        c->pending++;
    c->spoke = true;
}

static void on_object(void *ctx, const json_t *j)
{
    struct connection *c = ctx;

    if (c->refused)
        return;
    c->deadline = sd_event_source_disable_unref(c->deadline);
    if (c->stage == STAGE_HELLO)
        take_hello(c, j);
    else if (c->stage == STAGE_SEALING)
        refuse(c, "a message before it was greeted");
    else
        take_sealed(c, j);
}

/* An agent that does not want us says nothing to us, but in its own log. One that was made before
 * agents greeted leaves at our protocol's number. */
static void on_closed(void *ctx)
{
    struct connection *c = ctx;
    struct agents *a = c->agents;

    if (!c->spoke && !c->refused && a->handlers.refused)
        a->handlers.refused(a->ctx, c->peer,
                            c->stage == STAGE_HELLO
                                ? "it left without a greeting: an agent that is too old does so"
                                : "it does not take us for reknitd: its own log says why");
    drop(c);
}

static void on_bad(void *ctx, const char *text)
{
    struct connection *c = ctx;

    if (!c->refused)
        refuse(c, text);
}

/* Takes fd over. */
static void add_connection(struct agents *a, int fd, const char *peer, bool by_root)
{
    static const struct lines_options options = {.line_max = LINE_BYTES, .owed_max = 65536};
    static const struct lines_handlers handlers = {
        .object = on_object, .bad = on_bad, .closed = on_closed};
    struct connection *c = xnew(struct connection);
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
    *VEC_PUSH(&a->connections) = c;
    lines_send(c->lines, json_pack("{s:i, s:s}", "reknit", AGENT_PROTOCOL, "word", c->words.word));
}

/* The oldest connection that has not proven anything, of those that did not greet us if there is
 * one; NULL = all have. peer: from there, and of the same kind; NULL = from anywhere. */
static struct connection *find_oldest_stranger(const struct agents *a, const char *peer,
                                               bool by_root, size_t *ret_count)
{
    struct connection *oldest = NULL;

    *ret_count = 0;
    VEC_FOREACH (&a->connections, c) {
        if ((*c)->node || (peer && ((*c)->by_root != by_root || !streq((*c)->peer, peer))))
            continue;
        (*ret_count)++;
        if (!oldest || (oldest->stage != STAGE_HELLO && (*c)->stage == STAGE_HELLO))
            oldest = *c;
    }
    return oldest;
}

static void shed(struct connection *c, const char *why)
{
    refuse(c, why);
    drop(c);
}

/* Takes fd over. */
static void turn_away(struct agents *a, int fd, const char *peer, const char *why)
{
    a->counts.refused++;
    close(fd);
    if (a->handlers.refused)
        a->handlers.refused(a->ctx, peer, why);
}

/* Takes fd over. */
static void make_room(struct agents *a, int fd, const char *peer, bool by_root)
{
    size_t n;
    struct connection *oldest = find_oldest_stranger(a, peer, by_root, &n);

    if (n >= (by_root ? AGENTS_UNPROVEN_OF_ROOT_MAX : AGENTS_UNPROVEN_MAX))
        shed(oldest, "too many connections from there have proven nothing yet");
    else if (a->connections.n >= AGENTS_MAX && (oldest = find_oldest_stranger(a, NULL, 0, &n)))
        shed(oldest, "there are too many connections");
    if (a->connections.n >= AGENTS_MAX)
        turn_away(a, fd, peer, "there are too many connections");
    else
        add_connection(a, fd, peer, by_root);
}

static void on_connection(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    struct agents *a = ctx;
    char peer[ADDRESS_LEN], port[8];
    const char *plain = peer;
    long long number = 0;

    if (getnameinfo(from, len, peer, sizeof(peer), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        STR_COPY(peer, "?");
    else
        str_to_i64(port, &number);
    if (str_startswith(peer, "::ffff:")) /* IPv4 on a socket for both */
        plain += strlen("::ffff:");
    make_room(a, fd, plain, number > 0 && number < IPPORT_RESERVED);
}

/* "1.2.3.4:5", "[::]:5" */
static int resolve_listen(const char *text, struct addrinfo **ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(text, ':');
    char host[ADDRESS_LEN];
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len > 2 && text[0] == '[' && colon[-1] == ']';

    if (!colon || !str_copy_n(host, sizeof(host), text + brackets, len - 2 * brackets))
        return -EINVAL;
    return getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, ret) == 0 ? 0 : -EINVAL;
}

static int listen_there(struct agents *a, const char *text, struct err *e)
{
    struct addrinfo *at = NULL;
    int on = 1, r = 0;

    if (resolve_listen(text, &at) < 0)
        return err_set(e, -EINVAL, "%s: not an address and a port", text);
    a->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0 || setsockopt(a->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(a->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(a->fd, SOMAXCONN) < 0)
        r = err_set(e, -errno, "%s: %s", text, strerror(errno));
    freeaddrinfo(at);
    return r;
}

static void stop_listening(struct agents *a)
{
    a->ending = true;
    a->acceptor = acceptor_free(a->acceptor);
    closep(&a->fd);
    while (a->connections.n > 0)
        drop(a->connections.v[a->connections.n - 1]);
    a->opener = helper_free(a->opener); /* frees what waits for it */
    a->greeter = helper_free(a->greeter);
    a->resolver = helper_free(a->resolver);
    a->ending = false;
}

int agents_move(struct agents *a, const struct agents_config *config, struct err *e)
{
    int r;

    stop_listening(a);
    a->opener = helper_new(a->event, config->seal, HELPER_PATIENCE);
    a->greeter = helper_new(a->event, config->seal, HELPER_PATIENCE);
    a->resolver = helper_new(a->event, config->seal, HELPER_PATIENCE);
    r = listen_there(a, config->listen, e);
    if (r == 0 && (!a->opener || !a->greeter || !a->resolver ||
                   acceptor_new(a->event, a->fd, on_connection, a, &a->acceptor) < 0))
        r = err_set(e, -ENOMEM, "the event loop refuses");
    return r;
}

int agents_new(sd_event *event, const struct agents_config *config,
               const struct agents_handlers *handlers, void *ctx, struct agents **ret,
               struct err *e)
{
    struct agents *a = xnew(struct agents);
    int r;

    a->event = event;
    a->handlers = *handlers;
    a->ctx = ctx;
    a->fd = -1;
    r = agents_move(a, config, e);
    if (r < 0)
        agents_free(a);
    else
        *ret = a;
    return r;
}

static void node_free(struct node *n)
{
    VEC_DONE(&n->open);
    free(n);
}

struct agents *agents_free(struct agents *a)
{
    if (!a)
        return NULL;
    stop_listening(a);
    VEC_FOREACH (&a->nodes, n)
        node_free(*n);
    VEC_DONE(&a->nodes);
    VEC_DONE(&a->connections);
    free(a);
    return NULL;
}

/* ---- asking ---- */

struct asking {
    struct agents *agents;
    char node[NODE_NAME_LEN];
    char ask_with[WORD_LEN];
    int64_t question;
};

static void on_question_sealed(void *ctx, const json_t *answer)
{
    struct asking *q = ctx;
    struct agents *a = q->agents;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));
    const struct node *n = find_node(a, q->node);
    struct connection *c = n ? n->connection : NULL;

    if (a->ending || !a->handlers.reader)
        ;
    else if (!sealed)
        a->handlers.reader(a->ctx, q->node, q->question, -1, "what it is asked cannot be sealed");
    else if (!c || !c->lines || !streq(c->words.ask_with, q->ask_with))
        a->handlers.reader(a->ctx, q->node, q->question, -1, "its agent is not connected");
    else
        lines_send(c->lines, json_pack("{s:s}", "sealed", sealed));
    free(q);
}

int agents_ask(struct agents *a, const char *node, int64_t question, uid_t uid, gid_t gid)
{
    const struct node *n = find_node(a, node);
    struct connection *c = n ? n->connection : NULL;
    _cleanup_(freep) char *text = NULL;
    struct asking *q;
    json_t *j;
    int r;

    if (!c || !c->lines)
        return -ENOTCONN;
    j = json_pack("{s:i,s:s,s:s,s:I,s:{s:I}}", "v", AGENT_PROTOCOL, "ask_with", c->words.ask_with,
                  "node", n->name, "question", (json_int_t)question, "reader", "uid",
                  (json_int_t)uid);
    if (gid != (gid_t)-1)
        json_object_set_new(json_object_get(j, "reader"), "gid", json_integer(gid));
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    q = xnew(struct asking);
    *q = (struct asking){.agents = a, .question = question};
    STR_COPY(q->node, n->name);
    STR_COPY(q->ask_with, c->words.ask_with);
    r = helper_ask(a->opener, json_pack("{s:s, s:i}", "seal", text, "for", 0), on_question_sealed,
                   q);
    if (r < 0)
        free(q);
    return r;
}

uint16_t agents_port(const struct agents *a)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);

    if (getsockname(a->fd, (struct sockaddr *)&at, &len) < 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

void agents_counts(const struct agents *a, struct agents_counts *ret)
{
    *ret = a->counts;
    ret->connections = (uint32_t)a->connections.n;
}

int agents_look(const struct agents *a, const char *node, struct agent_view *ret)
{
    const struct node *n = find_node(a, node);

    if (!n || n->view.heard_us == 0)
        return -ENOENT;
    *ret = n->view;
    return 0;
}

void agents_each(const struct agents *a,
                 bool (*fn)(void *ctx, const char *node, const struct agent_view *v), void *ctx)
{
    VEC_FOREACH (&a->nodes, n)
        if ((*n)->view.heard_us > 0 && !fn(ctx, (*n)->name, &(*n)->view))
            return;
}
