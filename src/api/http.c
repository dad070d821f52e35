/* SPDX-License-Identifier: Apache-2.0 */

/* libmicrohttpd inside of an sd-event loop.
 *
 * It waits by an epoll descriptor of its own, which the loop watches; what it wants to do by the
 * clock it says by MHD_get_timeout(), which is asked after each run and after whatever else touches
 * it. Connections are accepted here, not by it, so that the kernel's word about who connects can
 * bound what one user may have.
 *
 * Where the kernel does not say who connects, it is known with the first request whose token or
 * credential is good. Until then a connection is a stranger's: of too many, of one address or of
 * all, the oldest is dropped for the new one, but for those whose credential is just being opened;
 * and of one user who has too many, the one that has been idle for longest: so whoever holds many
 * keeps nobody else out.
 *
 * Who is slow is dropped: a request must be there REQUEST_SECONDS_MAX after its connection was
 * opened or the last answer was sent, an answer must be taken within ANSWER_SECONDS_MAX; and a
 * connection on which nothing moves ends by libmicrohttpd's own timeout, streams too while there is
 * something to send.
 *
 * A suspended connection is one whose stream has nothing to say; all of them must be resumed before
 * MHD_stop_daemon(), which aborts otherwise. */

#include "api/http.h"

#include "api/answer.h"
#include "api/routes.h"
#include "base/acceptor.h"
#include "base/str.h"
#include "base/timer.h"
#include "wire/request_claim.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define INACTIVE_SECONDS 30u
#define MEMORY_MAX       ((size_t)32 << 10) /* headers of one connection */
#define SWEEP_EVERY      (5 * USEC_PER_SEC)
#define ARGS_MAX         32 /* of a request, whatever it asks: libmicrohttpd keeps all */
#define UPLOAD_MAX       ((size_t)1 << 20) /* of a body that is too large, before it is cut off */
#define DYING_MAX        64u               /* dropped, and libmicrohttpd has not closed them yet */
#define TURNED_MAX       16                /* who were turned away, and may not have read it yet */
#define PRIORITY         50                /* behind everything that keeps jobs running */

struct connection {
    struct http *http;
    int fd;
    struct asker who; /* on the Unix socket; elsewhere each request says */
    char peer[64];    /* the address, there */
    bool known;       /* there, a request has proven who asks: */
    uid_t uid;
    bool dropped;
    usec_t opened, since; /* ... when it began to do what it does */
    enum { CONNECTION_ASKS, CONNECTION_TAKES, CONNECTION_STREAMS } state;
    struct stream *stream;
    struct MHD_Connection *mhd;
    bool suspended;
    bool ends; /* its stream does */
};

struct http {
    struct http_config c;
    struct MHD_Daemon *daemon;
    struct acceptor *acceptor;
    sd_event_source *epoll, *timer, *sweep;
    VEC(struct connection *) connections;
    struct connection *adding; /* that is being handed to libmicrohttpd */
    int turned[TURNED_MAX];    /* descriptors, in a ring; -1 = none */
    unsigned next_turned;
    bool ending;
};

/* One request, while its body is read, and its credential opened. */
struct exchange {
    struct connection *connection;
    char *target; /* as it was sent: path and query */
    bool begun;
    struct strbuf body;
    size_t seen; /* bytes of it, kept or not */
    struct proof *proof;
    struct asker who;
    bool asked; /* about the credential; the answer is `who` */
};

/* A credential that is being opened. */
struct proof {
    struct exchange *x; /* NULL: its connection is gone */
    char *claim;        /* that it must make */
};

/* Turns of the loop */

static void arm(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        timer_arm(h->timer, mono_us() + (usec_t)ms * USEC_PER_MSEC);
    else
        timer_stop(h->timer);
}

static void run(struct http *h)
{
    MHD_run(h->daemon);
    arm(h);
}

static int on_epoll(sd_event_source *s, int fd, uint32_t revents, void *ctx)
{
    run(ctx);
    return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *ctx)
{
    run(ctx);
    return 0;
}

static usec_t patience(const struct connection *c)
{
    switch (c->state) {
    case CONNECTION_ASKS:
        return REQUEST_SECONDS_MAX * USEC_PER_SEC;
    case CONNECTION_TAKES:
        return ANSWER_SECONDS_MAX * USEC_PER_SEC;
    default:
        return USEC_NEVER / 2;
    }
}

static void close_turned(struct http *h)
{
    for (unsigned i = 0; i < TURNED_MAX; i++)
        closep(&h->turned[i]);
}

/* Shutting a socket down makes libmicrohttpd see its end and close it. */
static int on_sweep(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct http *h = ctx;
    usec_t now = mono_us();

    close_turned(h);
    VEC_FOREACH (&h->connections, c)
        if (now - (*c)->since > patience(*c))
            shutdown((*c)->fd, SHUT_RDWR);
    if (h->connections.n > 0)
        timer_arm(h->sweep, now + SWEEP_EVERY);
    return 0;
}

static void enter(struct connection *c, int state)
{
    c->state = state;
    c->since = mono_us();
}

/* Connections */

static void read_peer(struct connection *c, const struct sockaddr *a, socklen_t len)
{
    if (getnameinfo(a, len, c->peer, sizeof(c->peer), NULL, 0, NI_NUMERICHOST) != 0)
        STR_COPY(c->peer, "?");
}

/* How many there are, from that address or (NULL) any; and the oldest of them that may go. */
static size_t count_remote(const struct http *h, const char *peer, struct connection **ret_oldest)
{
    size_t n = 0;

    *ret_oldest = NULL;
    VEC_FOREACH (&h->connections, c) {
        const struct connection *oldest = *ret_oldest;

        if ((*c)->dropped || (peer && !streq((*c)->peer, peer)))
            continue;
        n++;
        if (!(*c)->known && !(*c)->suspended && (!oldest || (*c)->opened < oldest->opened))
            *ret_oldest = *c;
    }
    return n;
}

/* Shutting it down makes libmicrohttpd see its end, at its next turn. */
static bool is_room_made(struct connection *oldest)
{
    if (!oldest)
        return false;
    oldest->dropped = true;
    shutdown(oldest->fd, SHUT_RDWR);
    return true;
}

/* Who asks is known now: with one connection more than are due another is lost. */
static void bound_user(struct http *h, const struct connection *asking)
{
    struct connection *idle = NULL;
    size_t n = 0;

    VEC_FOREACH (&h->connections, c) {
        if ((*c)->dropped || !(*c)->known || (*c)->uid != asking->uid)
            continue;
        n++;
        if (*c != asking && (*c)->state == CONNECTION_ASKS && !(*c)->suspended &&
            (!idle || (*c)->since < idle->since))
            idle = *c;
    }
    if (n > CONNECTIONS_PER_USER_MAX)
        is_room_made(idle);
}

static bool has_too_many_remote(const struct http *h, const char *peer)
{
    struct connection *oldest;

    if (count_remote(h, peer, &oldest) >= CONNECTIONS_PER_ADDRESS && !is_room_made(oldest))
        return true;
    if (count_remote(h, NULL, &oldest) >= CONNECTIONS_MAX && !is_room_made(oldest))
        return true;
    return h->connections.n >= CONNECTIONS_MAX + DYING_MAX;
}

/* Who they are is known on the Unix socket only: there some places are kept for operators. */
static bool has_too_many(const struct http *h, const struct connection *new)
{
    const struct asker *who = &new->who;
    size_t same = 0;

    if (!h->c.local)
        return has_too_many_remote(h, new->peer);
    if (who->is_operator)
        return h->connections.n >= CONNECTIONS_MAX;
    VEC_FOREACH (&h->connections, c)
        same += (*c)->who.uid == who->uid;
    return same >= CONNECTIONS_PER_USER_MAX ||
           h->connections.n >= CONNECTIONS_MAX - CONNECTIONS_OF_OPERATORS;
}

/* Closed at once, what is still being asked would be answered by the kernel, which resets the
 * connection, and the answer may be lost with it: so it stays open for a while. */
static void refuse(struct http *h, int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                               "Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
                               "{\"error\":\"too many connections\"}\r\n";

    int *turned = &h->turned[h->next_turned++ % TURNED_MAX];

    (void)!send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    closep(turned);
    *turned = fd;
    if (!timer_is_armed(h->sweep))
        timer_arm(h->sweep, mono_us() + SWEEP_EVERY);
}

static void add_connection(struct http *h, int fd, const struct sockaddr *a, socklen_t len)
{
    struct connection *c = xnew(struct connection);

    c->http = h;
    c->fd = fd;
    enter(c, CONNECTION_ASKS);
    c->opened = c->since;
    if (h->c.local)
        identity_of_socket(h->c.identity, fd, &c->who);
    else
        read_peer(c, a, len);
    if (has_too_many(h, c)) {
        free(c);
        refuse(h, fd);
        return;
    }
    h->adding = c;
    if (MHD_add_connection(h->daemon, fd, a, len) != MHD_YES && h->adding)
        free(c); /* and the socket is closed */
    h->adding = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = cls;
    struct connection *c = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        assert(h->adding);
        *socket_context = h->adding;
        *VEC_PUSH(&h->connections) = h->adding; /* CONNECTIONS_MAX bounds them */
        h->adding = NULL;
        if (!timer_is_armed(h->sweep))
            timer_arm(h->sweep, mono_us() + SWEEP_EVERY);
        return;
    }
    for (size_t i = h->connections.n; i-- > 0;)
        if (h->connections.v[i] == c)
            VEC_REMOVE(&h->connections, i);
    free(c);
}

static void on_accepted(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    static const struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    bool named = len >= sizeof(from->sa_family) && from->sa_family != AF_UNSPEC;

    add_connection(ctx, fd, named ? from : (const struct sockaddr *)&nameless, len);
    run(ctx);
}

/* Answers */

static const char *get_arg(void *ctx, const char *name)
{
    const char *value = NULL;
    size_t len = 0;

    if (MHD_lookup_connection_value_n(ctx, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                                      &len) != MHD_YES)
        return NULL;
    return value ? value : "";
}

static const char *get_header(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, name);
}

static enum MHD_Result send_answer(struct MHD_Connection *mhd, struct api_answer *a)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(a->len, a->text, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result r;

    if (!response)
        return MHD_NO;
    a->text = NULL;
    MHD_add_response_header(response, "Content-Type", a->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (a->allow)
        MHD_add_response_header(response, "Allow", a->allow);
    if (a->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer, MUNGE");
    if (a->status == 413)
        MHD_add_response_header(response, "Connection", "close");
    r = MHD_queue_response(mhd, a->status, response);
    MHD_destroy_response(response);
    return r;
}

/* Streams */

static void on_wake(void *ctx)
{
    struct connection *c = ctx;

    if (!c->suspended)
        return;
    c->suspended = false;
    MHD_resume_connection(c->mhd);
    timer_arm(c->http->timer, mono_us()); /* its descriptor does not become ready by that */
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct connection *c = cls;
    ssize_t n = c->http->ending || c->ends ? -ENOENT : stream_read(c->stream, buf, max);

    if (n < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        c->suspended = true;
        MHD_suspend_connection(c->mhd);
    }
    return n;
}

static void free_stream(void *cls)
{
    struct connection *c = cls;

    c->stream = stream_free(c->stream);
    c->ends = false;
    enter(c, CONNECTION_ASKS);
}

static enum MHD_Result send_stream(struct connection *c, struct MHD_Connection *mhd,
                                   const struct asker *who, struct api_answer *a)
{
    struct MHD_Response *response;
    enum MHD_Result r;

    c->mhd = mhd;
    c->stream = stream_new(c->http->c.streams, who, &a->choice, on_wake, c);
    if (!c->stream) {
        answer_error(a, 503, "too many streams of events: at most %d, %d for a user", STREAMS_MAX,
                     STREAMS_PER_USER_MAX);
        return send_answer(mhd, a);
    }
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, (size_t)32 << 10, read_stream, c,
                                                 free_stream);
    if (!response) {
        c->stream = stream_free(c->stream);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    r = MHD_queue_response(mhd, 200, response);
    enter(c, CONNECTION_STREAMS);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result answer(struct exchange *x, struct MHD_Connection *mhd, const char *method,
                              const char *url)
{
    struct connection *c = x->connection;
    const char *accept = get_header(mhd, "Accept");
    _cleanup_answer_ struct api_answer a = {0};
    struct asker who = c->who;
    struct api_request r = {
        .method = method,
        .path = url,
        .body = x->body.s,
        .body_len = x->body.len,
        .asker = &who,
        .last_event_id = get_header(mhd, "Last-Event-ID"),
        .wants_stream = accept && strcasestr(accept, "text/event-stream"),
        .arg = get_arg,
        .arg_ctx = mhd,
    };

    if (x->asked)
        who = x->who;
    else if (!c->http->c.local)
        identity_of_header(c->http->c.identity, get_header(mhd, "Authorization"), &who);
    if (!c->http->c.local && who.known) {
        c->known = true;
        c->uid = who.uid;
        if (!who.is_operator)
            bound_user(c->http, c);
    }
    route_answer(c->http->c.store, &r, &a);
    enter(c, CONNECTION_TAKES);
    if (a.stream && streq(method, "GET"))
        return send_stream(c, mhd, &who, &a);
    if (a.stream)
        answer_text(&a, "text/event-stream", xstrdup(""));
    return send_answer(mhd, &a);
}

static void proof_free(struct proof *p)
{
    free(p->claim);
    free(p);
}

static void on_opened(void *ctx, const json_t *opened)
{
    struct proof *p = ctx;
    struct exchange *x = p->x;

    if (x) {
        struct http *h = x->connection->http;

        identity_of_credential(h->c.identity, opened, p->claim, &x->who);
        x->proof = NULL;
        on_wake(x->connection);
        run(h);
    }
    proof_free(p);
}

/* Whether the request waits for what its credential says. A suspended connection is looked at again
 * once it is known. */
static bool wait_for_proof(struct exchange *x, struct MHD_Connection *mhd, const char *method)
{
    struct connection *c = x->connection;
    const struct http_config *h = &c->http->c;
    const char *credential =
        h->local || !h->seal || x->asked
            ? NULL
            : identity_credential(h->identity, get_header(mhd, "Authorization"));

    if (!credential)
        return false;
    x->asked = true;
    x->proof = xnew(struct proof);
    *x->proof = (struct proof){
        .x = x, .claim = request_claim(method, x->target, strbuf_str(&x->body), x->body.len)};
    c->mhd = mhd;
    c->suspended = true;
    MHD_suspend_connection(mhd);
    if (helper_ask(h->seal, json_pack("{s:s, s:b}", "open", credential, "names", 1), on_opened,
                   x->proof) < 0) {
        proof_free(x->proof);
        x->proof = NULL;
        on_wake(c); /* and is nobody */
    }
    return true;
}

static enum MHD_Result refuse_body(struct exchange *x, struct MHD_Connection *mhd)
{
    _cleanup_answer_ struct api_answer a = {0};

    answer_error(&a, 413, "the body is too large: at most %zu bytes", BODY_MAX);
    enter(x->connection, CONNECTION_TAKES);
    return send_answer(mhd, &a);
}

static enum MHD_Result take_body(struct exchange *x, const char *data, size_t len)
{
    x->seen += len;
    if (x->seen > UPLOAD_MAX)
        return MHD_NO;
    if (x->seen <= BODY_MAX)
        strbuf_add(&x->body, data, len);
    return MHD_YES;
}

/* More arguments than there is room for would leave libmicrohttpd none for an answer. */
static void refuse_arguments(const struct connection *c)
{
    static const char text[] = "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\n"
                               "Content-Type: application/json\r\nContent-Length: 30\r\n\r\n"
                               "{\"error\":\"too many arguments\"}";

    if (!c->http->c.tls_cert) /* there only its library can answer */
        (void)!send(c->fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(c->fd, SHUT_RDWR);
}

/* The first word of a request, from which on it is ours until it is completed. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct exchange *x = xnew(struct exchange);

    x->connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    x->target = xstrdup(target);
    if (str_count(target, strlen(target), '&') >= ARGS_MAX)
        refuse_arguments(x->connection);
    return x;
}

static enum MHD_Result begin(struct exchange *x, struct MHD_Connection *mhd)
{
    const char *length = get_header(mhd, "Content-Length");
    long long v;

    x->begun = true;
    if (length && (str_to_i64(length, &v) < 0 || v > (long long)BODY_MAX))
        return refuse_body(x, mhd);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **ctx)
{
    struct exchange *x = *ctx;

    if (!x->begun)
        return begin(x, mhd);
    if (*len > 0) {
        enum MHD_Result r = take_body(x, data, *len);

        *len = 0;
        return r;
    }
    if (x->seen > BODY_MAX)
        return refuse_body(x, mhd);
    return wait_for_proof(x, mhd, method) ? MHD_YES : answer(x, mhd, method, url);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *ctx;

    if (!x)
        return;
    if (x->connection->state == CONNECTION_TAKES)
        enter(x->connection, CONNECTION_ASKS);
    strbuf_done(&x->body);
    free(x->target);
    if (x->proof)
        x->proof->x = NULL;
    free(x);
    *ctx = NULL;
}

/* Life */

static void ignore_log(void *cls, const char *format, va_list ap)
{
}

static int start_daemon(struct http *h, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)h->c.tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)h->c.tls_key},
        {MHD_OPTION_END, 0, NULL},
    };

    if (h->c.tls_cert)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX + DYING_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        INACTIVE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_MAX,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!h->daemon)
        return err_set(e, -EIO, "the HTTP server does not start%s",
                       h->c.tls_cert ? "; are certificate and key right?" : "");
    return 0;
}

static int watch(struct http *h, sd_event *event)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int r = sd_event_add_io(event, &h->epoll, info->epoll_fd, EPOLLIN, on_epoll, h);

    if (r >= 0)
        r = acceptor_new(event, h->c.listener, on_accepted, h, &h->acceptor);
    if (r >= 0)
        r = timer_new(event, on_timer, h, &h->timer);
    if (r >= 0)
        r = timer_new(event, on_sweep, h, &h->sweep);
    if (r < 0)
        return r;
    sd_event_source_set_priority(h->epoll, PRIORITY);
    acceptor_set_priority(h->acceptor, PRIORITY);
    sd_event_source_set_priority(h->timer, PRIORITY);
    return 0;
}

int http_new(sd_event *event, const struct http_config *c, struct http **ret, struct err *e)
{
    struct http *h = xnew(struct http);
    int r;

    h->c = *c;
    for (unsigned i = 0; i < TURNED_MAX; i++)
        h->turned[i] = -1;
    r = start_daemon(h, e);
    if (r >= 0) {
        r = watch(h, event);
        if (r < 0)
            err_set(e, r, "the loop refuses: %s", strerror(-r));
    }
    if (r < 0) {
        http_free(h);
        return r;
    }
    *ret = h;
    return 0;
}

int http_listener(const struct http *h)
{
    return h->c.listener;
}

void http_identify(struct http *h)
{
    VEC_FOREACH (&h->connections, c) {
        if (h->c.local)
            identity_of_socket(h->c.identity, (*c)->fd, &(*c)->who);
        (*c)->known = false;
        if (!(*c)->stream)
            continue;
        (*c)->ends = true;
        on_wake(*c);
    }
    run(h);
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    h->ending = true;
    acceptor_free(h->acceptor);
    sd_event_source_disable_unref(h->epoll);
    sd_event_source_disable_unref(h->timer);
    sd_event_source_disable_unref(h->sweep);
    VEC_FOREACH (&h->connections, c)
        on_wake(*c);
    if (h->daemon) {
        MHD_run(h->daemon); /* the ends of streams leave */
        VEC_FOREACH (&h->connections, c)
            on_wake(*c);
        MHD_stop_daemon(h->daemon);
    }
    VEC_DONE(&h->connections);
    close_turned(h);
    closep(&h->c.listener);
    free(h);
    return NULL;
}
