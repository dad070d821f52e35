/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd greets each connection with a word that it has just made up, and each message on it must
 * repeat the word under its seal: so nothing that was recorded on another connection counts again.
 * A message is therefore sealed when it is sent, never when it is spooled; what was being sealed
 * while the connection was lost is sealed anew.
 *
 *   reknitd: {"reknit":2,"word":"..."}
 *   we:      {"reknit":2,"ask_with":"...","node":"n7"}
 *   reknitd: {"sealed":"..."}           see greet.h
 *   we:      {"sealed":"..."}           see envelope()
 *   reknitd: {"ack":17,"origin":1}      number 17 of origin 1 and all before it are delivered
 *            {"refused":"why"}          and it closes the connection
 *            {"sealed":"..."}           see take_question()
 *
 * It works the other way round too, and first: who listens at reknitd's address need not be
 * reknitd. Before it has proven that it is, by the seal of reknitd's user or of root over the word
 * that we made up for this connection, nothing is told, and no ack counts. From then on the
 * connection is believed, but for what reknitd asks: that is sealed, with the word, each time, for
 * we are root.
 *
 * Until reknitd has answered the first message, which proves who we are, it takes no other. Then at
 * most WINDOW messages of the spool are on their way. `next` is the place of the first that was not
 * handed to the sealer yet; on any trouble it goes back to the first that was not acked. */

#include "agent/uplink.h"

#include "agent/dial.h"
#include "base/alloc.h"
#include "base/str.h"
#include "wire/lines.h"
#include "wire/node_message.h"

#include <errno.h>
#include <string.h>

#define WINDOW         32
#define TELL_MAX       256 /* such messages that wait for the sealer */
#define PAUSE_MIN      (200 * USEC_PER_MSEC)
#define PAUSE_MAX      (10 * USEC_PER_SEC)
#define PATIENCE       (15 * USEC_PER_SEC) /* for a connection */
#define SEAL_PAUSE     (2 * USEC_PER_SEC)  /* after the sealer failed */
#define ACK_PATIENCE   (60 * USEC_PER_SEC)
#define PROOF_PATIENCE ACK_PATIENCE /* of either: many may come at once, and a seal takes time */
#define LINE_BYTES     4096
#define QUESTIONS_MAX  64 /* being opened */

enum phase_of_link {
    LINK_DOWN,       /* the timer starts the next try */
    LINK_RESOLVING,  /* ... */
    LINK_CONNECTING, /* ... */
    LINK_GREETING,   /* connected; reknitd is to prove that it is reknitd */
    LINK_PROVING,    /* the first message is to be sent, or to be answered */
    LINK_UP,
};

struct uplink {
    sd_event *event;
    char *host, *port, *node, *asker;
    char address[64]; /* of the host, that is being tried or was reached */
    struct spool *spool;
    struct uplink_handlers handlers;
    void *ctx;
    struct helper *sealer, *resolver; /* a resolver may hang longer than munged */
    enum phase_of_link phase;
    struct lines *lines;
    int fd; /* connecting */
    sd_event_source *connected, *timer, *seal_timer;
    usec_t pause;
    struct greet *greet; /* of the connection */
    size_t opening;      /* questions */
    uint64_t generation; /* of the connection: what was sealed for another is not sent */
    uint64_t next;
    bool proof_wanted; /* the first message was not handed to the sealer yet */
    size_t telling;
    bool lost; /* of what was to be told now; not said yet */
    usec_t last_ack;
    char why[200]; /* the connection is about to be closed; "" = nobody said */
    char last_said[256];
};

/* What the sealer is asked, with whom to tell. */
struct errand {
    struct uplink *u;
    uint64_t generation;
    bool spooled;
};

static void say(struct uplink *u, const char *text)
{
    if (!streq(u->last_said, text))
        u->handlers.said(u->ctx, text);
    STR_COPY(u->last_said, text);
}

static void set_timer(struct uplink *u, usec_t in)
{
    sd_event_source_set_time_relative(u->timer, (uint64_t)in);
    sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
}

/* Never from within what the lines call, but for closed(). */
static void fall(struct uplink *u, const char *why)
{
    char text[256];

    STR_PRINTF(text, "not connected to reknitd at %s port %s: %s", u->host, u->port, why);
    u->connected = sd_event_source_disable_unref(u->connected);
    closep(&u->fd);
    u->greet = greet_free(u->greet);
    u->lines = lines_free(u->lines);
    u->phase = LINK_DOWN;
    u->generation++;
    u->next = spool_first(u->spool);
    u->why[0] = '\0';
    /* Not all nodes at once, when reknitd was away: of 10,000 that wait for PAUSE_MAX, 1,000 come
     * in a second, and reknitd's MUNGE can greet and open three times as many (measured, one core).
     * Whom it has no room for comes again. */
    set_timer(u, u->pause / 2 + (usec_t)random() % u->pause);
    u->pause = u->pause * 2 < PAUSE_MAX ? u->pause * 2 : PAUSE_MAX;
    say(u, text);
}

static void hang_up(struct uplink *u, const char *why)
{
    STR_COPY(u->why, why);
    lines_close(u->lines);
}

json_t *uplink_envelope(const char *word, const char *node, json_t *body)
{
    return json_pack("{s:i, s:s, s:s, s:i, s:i, s:o}", "v", AGENT_PROTOCOL, "word", word, "node",
                     node, "origin", 0, "id", 0, "body", body);
}

/* m: of the spool; NULL: the body is told once, or never. */
static json_t *envelope(const struct uplink *u, const struct spool_message *m, json_t *body)
{
    json_t *j = uplink_envelope(greet_words(u->greet)->word, u->node, body);

    if (m) {
        json_object_set_new(j, "origin", json_integer((json_int_t)m->origin));
        json_object_set_new(j, "id", json_integer((json_int_t)m->number));
    }
    return j;
}

static void ask_for_proof(struct uplink *u)
{
    u->proof_wanted = true;
    u->handlers.greeted(u->ctx);
}

static bool is_sealing_paused(struct uplink *u)
{
    int on = SD_EVENT_OFF;

    sd_event_source_get_enabled(u->seal_timer, &on);
    return on != SD_EVENT_OFF;
}

/* Not while nothing is sealed: it would be told in vain again. */
static void say_lost(struct uplink *u)
{
    if (!u->lost || u->phase != LINK_UP || is_sealing_paused(u))
        return;
    u->lost = false;
    u->handlers.lost(u->ctx);
}

static int on_seal_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct uplink *u = userdata;

    if (u->phase == LINK_PROVING)
        ask_for_proof(u);
    else
        uplink_poke(u);
    say_lost(u);
    return 0;
}

static void pause_sealing(struct uplink *u, const char *why)
{
    char text[256];

    u->next = spool_first(u->spool);
    u->generation++;
    sd_event_source_set_time_relative(u->seal_timer, SEAL_PAUSE);
    sd_event_source_set_enabled(u->seal_timer, SD_EVENT_ONESHOT);
    STR_PRINTF(text, "messages cannot be sealed: %s", why);
    say(u, text);
}

static void on_sealed(void *ctx, const json_t *answer)
{
    struct errand errand = *(struct errand *)ctx;
    struct uplink *u = errand.u;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));
    const char *why = json_string_value(json_object_get(answer, "error"));

    free(ctx);
    if (!errand.spooled)
        u->telling--;
    if (u->phase != LINK_UP && u->phase != LINK_PROVING)
        return;
    if (!errand.spooled && (!sealed || errand.generation != u->generation))
        u->lost = true;
    if (errand.generation == u->generation && !sealed)
        pause_sealing(u, why ? why : "reknit-seal does not answer");
    else if (errand.generation == u->generation)
        lines_send(u->lines, json_pack("{s:s}", "sealed", sealed));
    say_lost(u);
}

json_t *uplink_sealing(const char *text, const struct greet *g)
{
    return json_pack("{s:s, s:I}", "seal", text, "for", (json_int_t)greet_uid(g));
}

static int ask_to_seal(struct uplink *u, const struct spool_message *m, json_t *body)
{
    json_t *j = envelope(u, m, body);
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);
    struct errand *errand = xnew(struct errand);
    int r;

    json_decref(j);
    *errand = (struct errand){.u = u, .generation = u->generation, .spooled = m};
    r = text ? helper_ask(u->sealer, uplink_sealing(text, u->greet), on_sealed, errand) : -EINVAL;
    if (r < 0)
        free(errand);
    return r;
}

void uplink_poke(struct uplink *u)
{
    if (u->phase != LINK_UP || is_sealing_paused(u))
        return;
    if (u->next < spool_first(u->spool)) /* the oldest were dropped meanwhile */
        u->next = spool_first(u->spool);
    if (u->next == spool_first(u->spool))
        u->last_ack = mono_us();
    while (u->next < spool_end(u->spool) && u->next < spool_first(u->spool) + WINDOW) {
        const struct spool_message *m = spool_get(u->spool, u->next);
        json_t *body = json_loads(m->text, 0, NULL);

        /* A file of the spool may hold anything; null is refused there, and done with. */
        if (ask_to_seal(u, m, body ? body : json_null()) < 0)
            break;
        u->next++;
    }
}

static bool may_tell(struct uplink *u)
{
    bool first = u->phase == LINK_PROVING && u->proof_wanted;

    return (u->phase == LINK_UP || first) && u->telling < TELL_MAX && !is_sealing_paused(u);
}

bool uplink_tell(struct uplink *u, json_t *body)
{
    if (u->phase == LINK_UP && u->next > spool_first(u->spool) &&
        mono_us() > u->last_ack + ACK_PATIENCE)
        hang_up(u, "it does not say that it got anything");
    if (!may_tell(u)) {
        json_decref(body);
        return false;
    }
    if (ask_to_seal(u, NULL, body) < 0)
        return false;
    u->telling++;
    u->proof_wanted = false;
    return true;
}

static void on_greeted(void *ctx, const char *why)
{
    struct uplink *u = ctx;

    if (why) {
        hang_up(u, why);
        return;
    }
    u->phase = LINK_PROVING;
    u->generation++;
    u->lost = false; /* who is greeted tells all anew */
    u->next = spool_first(u->spool);
    set_timer(u, PROOF_PATIENCE);
    ask_for_proof(u);
}

static void on_ack(struct uplink *u, const json_t *j)
{
    json_int_t number = json_integer_value(json_object_get(j, "ack"));
    char text[256];

    u->pause = PAUSE_MIN;
    u->last_ack = mono_us();
    if (number > 0)
        spool_ack(u->spool, json_integer_value(json_object_get(j, "origin")), (uint64_t)number);
    if (u->phase == LINK_PROVING) {
        u->phase = LINK_UP;
        sd_event_source_set_enabled(u->timer, SD_EVENT_OFF);
        STR_PRINTF(text, "connected to reknitd at %s port %s", u->host, u->port);
        say(u, text);
    }
    uplink_poke(u);
}

/* {"v":2,"ask_with":"our word","node":"n7","question":17,...} */
static void take_question(struct uplink *u, const json_t *answer, const char *text)
{
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *word = json_string_value(json_object_get(j, "ask_with"));
    const char *node = json_string_value(json_object_get(j, "node"));
    char why[200];

    STR_PRINTF(why, "what reknitd asks was sealed by uid %lld, who may not: see --asker",
               (long long)json_integer_value(json_object_get(answer, "uid")));
    if (!greet_is_askers(u->asker, answer))
        say(u, why);
    else if (json_integer_value(json_object_get(j, "v")) != AGENT_PROTOCOL || !word ||
             !streq(word, greet_words(u->greet)->ask_with) || !node || !streq(node, u->node))
        say(u, "what reknitd asks was sealed for another connection");
    else
        u->handlers.asked(u->ctx, j);
    json_decref(j);
}

static void on_opened(void *ctx, const json_t *answer)
{
    struct errand errand = *(struct errand *)ctx;
    struct uplink *u = errand.u;
    const char *text = json_string_value(json_object_get(answer, "text"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    char why[200];

    free(ctx);
    u->opening--;
    if (u->phase != LINK_UP || errand.generation != u->generation)
        return;
    STR_PRINTF(why, "what reknitd asks cannot be opened: %s",
               error ? error : "reknit-seal does not answer");
    if (text)
        take_question(u, answer, text);
    else
        say(u, why);
}

/* By the helper for what may hang, since names of users are looked up. A question that is lost is
 * asked again. */
static void open_question(struct uplink *u, const char *sealed)
{
    struct errand *errand;

    if (u->phase != LINK_UP || u->opening >= QUESTIONS_MAX)
        return;
    errand = xnew(struct errand);
    *errand = (struct errand){.u = u, .generation = u->generation};
    if (helper_ask(u->resolver, json_pack("{s:s,s:b}", "open", sealed, "names", 1), on_opened,
                   errand) < 0)
        free(errand);
    else
        u->opening++;
}

static void on_object(void *ctx, const json_t *j)
{
    struct uplink *u = ctx;
    const char *refused = json_string_value(json_object_get(j, "refused"));
    const char *sealed = json_string_value(json_object_get(j, "sealed"));

    if (u->phase == LINK_GREETING) {
        greet_take(u->greet, j);
    } else if (json_is_integer(json_object_get(j, "ack"))) {
        on_ack(u, j);
    } else if (sealed) {
        open_question(u, sealed);
    } else if (refused) {
        char clean[160];

        str_sanitize(clean, sizeof(clean), refused, strlen(refused));
        STR_PRINTF(u->why, "it refuses us: %s", clean);
    }
}

static void on_closed(void *ctx)
{
    struct uplink *u = ctx;
    char why[sizeof(u->why)];

    STR_COPY(why, u->why[0] ? u->why : "the connection was closed");
    fall(u, why);
}

struct greet_config uplink_greets(const struct uplink *u)
{
    return (struct greet_config){.opener = u->resolver, .node = u->node, .asker = u->asker};
}

static int on_connected(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    static const struct lines_options options = {.line_max = LINE_BYTES, .owed_max = 1024 * 1024};
    static const struct lines_handlers handlers = {.object = on_object, .closed = on_closed};
    struct uplink *u = userdata;
    struct greet_config greets = uplink_greets(u);
    int r = dial_done(fd);

    if (r < 0) {
        fall(u, strerror(-r));
        return 0;
    }
    u->connected = sd_event_source_disable_unref(u->connected);
    u->lines = lines_new(u->event, fd, fd, &options, &handlers, u);
    u->fd = -1;
    if (!u->lines) {
        fall(u, "the event loop takes nothing more");
        return 0;
    }
    u->greet = greet_new(&greets, u->lines, fd, on_greeted, u);
    u->phase = LINK_GREETING;
    set_timer(u, PROOF_PATIENCE);
    return 0;
}

static int connect_to(struct uplink *u, const char *address)
{
    u->fd = dial(address, u->port);
    return u->fd < 0 ? u->fd
                     : sd_event_add_io(u->event, &u->connected, u->fd, EPOLLOUT, on_connected, u);
}

static void on_resolved(void *ctx, const json_t *answer)
{
    struct uplink *u = ctx;
    const json_t *list = json_object_get(answer, "addresses");
    const char *why = json_string_value(json_object_get(answer, "error"));
    /* Another address at each try, should there be several. */
    size_t n = json_array_size(list), i = n ? (size_t)u->generation % n : 0;
    const char *address = json_string_value(json_array_get(list, i));
    int r;

    if (u->phase != LINK_RESOLVING)
        return;
    if (!address) {
        fall(u, why ? why : "its name cannot be resolved now");
        return;
    }
    u->phase = LINK_CONNECTING;
    STR_COPY(u->address, address);
    set_timer(u, PATIENCE);
    r = connect_to(u, address);
    if (r < 0)
        fall(u, strerror(-r));
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct uplink *u = userdata;

    if (u->phase != LINK_DOWN) {
        fall(u, u->phase == LINK_GREETING ? "whoever answers there does not prove to be reknitd"
                                          : "it does not answer in time");
        return 0;
    }
    u->phase = LINK_RESOLVING;
    if (helper_ask(u->resolver, json_pack("{s:s}", "resolve", u->host), on_resolved, u) < 0)
        fall(u, "its name cannot be resolved now");
    return 0;
}

const char *uplink_address(const struct uplink *u)
{
    return u->phase == LINK_UP ? u->address : "";
}

struct helper *uplink_sealer(struct uplink *u)
{
    return u->sealer;
}

struct uplink *uplink_new(sd_event *event, const struct uplink_config *c, struct spool *spool,
                          const struct uplink_handlers *handlers, void *ctx)
{
    struct uplink *u = xnew(struct uplink);

    u->event = event;
    u->host = xstrdup(c->host);
    u->port = xstrdup(c->port);
    u->node = xstrdup(c->node);
    u->asker = xstrdup(c->asker);
    u->spool = spool;
    u->handlers = *handlers;
    u->ctx = ctx;
    u->fd = -1;
    u->pause = PAUSE_MIN;
    u->next = spool_first(spool);
    u->sealer = helper_new(event, c->seal, HELPER_PATIENCE);
    u->resolver = helper_new(event, c->seal, HELPER_PATIENCE);
    if (!u->sealer || !u->resolver ||
        sd_event_add_time_relative(event, &u->timer, CLOCK_MONOTONIC, 0, 0, on_timer, u) < 0 ||
        sd_event_add_time(event, &u->seal_timer, CLOCK_MONOTONIC, 0, 0, on_seal_timer, u) < 0 ||
        sd_event_source_set_enabled(u->seal_timer, SD_EVENT_OFF) < 0)
        return uplink_free(u);
    return u;
}

struct uplink *uplink_free(struct uplink *u)
{
    if (!u)
        return NULL;
    u->phase = LINK_DOWN; /* the answers that are outstanding mean nothing now */
    u->generation++;
    greet_free(u->greet);
    helper_free(u->sealer);
    helper_free(u->resolver);
    sd_event_source_disable_unref(u->connected);
    sd_event_source_disable_unref(u->timer);
    sd_event_source_disable_unref(u->seal_timer);
    lines_free(u->lines);
    closep(&u->fd);
    free(u->host);
    free(u->port);
    free(u->node);
    free(u->asker);
    free(u);
    return NULL;
}
