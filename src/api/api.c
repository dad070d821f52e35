/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include "api/desk.h"
#include "api/http.h"
#include "api/identity.h"
#include "api/listen.h"
#include "api/metrics.h"
#include "api/stream.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define TICK_EVERY USEC_PER_SEC
#define BEAT_TICKS 15
#define PEM_MAX    ((size_t)256 << 10)

struct api {
    struct desk *desk;
    struct streams *streams;
    struct identity *identity;
    struct http *local, *remote;
    char *socket;
    ino_t socket_ino;
    char *cert, *key;
    sd_event_source *tick;
    unsigned ticks;
};

static int on_tick(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct api *a = ctx;
    usec_t now = mono_us();

    a->desk->loop_lag = now > (usec_t)usec ? now - (usec_t)usec : 0;
    if (++a->ticks % BEAT_TICKS == 0)
        streams_beat(a->streams);
    timer_arm(a->tick, now + TICK_EVERY);
    return 0;
}

static int read_pem(const char *path, char **ret, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_(freep) char *text = xmalloc(PEM_MAX + 1);
    ssize_t n = fd >= 0 ? read(fd, text, PEM_MAX) : -1;

    if (n < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    text[n] = '\0';
    *ret = TAKE(text);
    return 0;
}

static bool is_set(const char *s)
{
    return s && s[0];
}

static int open_local(struct api *a, sd_event *event, const struct api_config *c, struct err *e)
{
    struct http_config h = {
        .local = true, .identity = a->identity, .desk = a->desk, .streams = a->streams};
    struct stat st;

    h.listener = listen_unix(c->socket, e);
    if (h.listener < 0)
        return h.listener;
    a->socket = xstrdup(c->socket);
    a->socket_ino = stat(c->socket, &st) == 0 ? st.st_ino : 0;
    return http_new(event, &h, &a->local, e);
}

/* What goes over a network is not readable for others, and nobody is trusted for his address. */
static int check_remote(const struct api_config *c, bool loopback, struct err *e)
{
    if (c->munge)
        return err_set(e, -EOPNOTSUPP,
                       "this release takes no MUNGE credentials over HTTP: give a "
                       "token file");
    if (is_set(c->tls_cert) != is_set(c->tls_key))
        return err_set(e, -EINVAL, "give a certificate and its key, or none");
    if (!is_set(c->token_file))
        return err_set(e, -EINVAL, "nobody could ask: give a token file");
    if (!is_set(c->tls_cert) && !loopback)
        return err_set(e, -EINVAL,
                       "tokens need TLS: give a certificate and its key, or a "
                       "loopback address");
    return 0;
}

static int open_remote(struct api *a, sd_event *event, const struct api_config *c, struct err *e)
{
    struct http_config h = {.identity = a->identity, .desk = a->desk, .streams = a->streams};
    _cleanup_(closep) int listener = -1;
    bool loopback = false;
    int r = 0;

    listener = listen_tcp(c->listen, &loopback, e);
    if (listener < 0)
        return listener;
    r = check_remote(c, loopback, e);
    if (r >= 0 && is_set(c->tls_cert))
        r = read_pem(c->tls_cert, &a->cert, e);
    if (r >= 0 && is_set(c->tls_key))
        r = read_pem(c->tls_key, &a->key, e);
    if (r < 0)
        return err_prefix(e, r, "listen on %s", c->listen);
    h.tls_cert = a->cert;
    h.tls_key = a->key;
    h.listener = take_fd(&listener);
    return http_new(event, &h, &a->remote, e);
}

int api_new(sd_event *event, const struct api_config *c, const struct api_backend *b, void *ctx,
            struct api **ret, struct err *e)
{
    _cleanup_(api_freep) struct api *a = xnew(struct api);
    int r;

    a->desk = desk_new(b, ctx);
    a->streams = streams_new(a->desk);
    r = identity_new(c, &a->identity, e);
    if (r >= 0 && is_set(c->socket))
        r = open_local(a, event, c, e);
    if (r >= 0 && is_set(c->listen))
        r = open_remote(a, event, c, e);
    if (r >= 0) {
        r = timer_new(event, on_tick, a, &a->tick);
        if (r < 0)
            err_set(e, r, "%s", strerror(-r));
    }
    if (r < 0)
        return err_prefix(e, r, "api");
    timer_arm(a->tick, mono_us() + TICK_EVERY);
    *ret = TAKE(a);
    return 0;
}

/* Unless another daemon has put its own there. */
static void remove_socket(const struct api *a)
{
    struct stat st;

    if (a->socket && stat(a->socket, &st) == 0 && st.st_ino == a->socket_ino)
        unlink(a->socket);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    sd_event_source_disable_unref(a->tick);
    streams_close(a->streams);
    http_free(a->local);
    http_free(a->remote);
    remove_socket(a);
    identity_free(a->identity);
    streams_free(a->streams);
    desk_free(a->desk);
    free(a->socket);
    free(a->cert);
    if (a->key)
        explicit_bzero(a->key, strlen(a->key));
    free(a->key);
    free(a);
    return NULL;
}

void api_happened(struct api *a, const struct event *e)
{
    metrics_happened(a->desk->metrics, e);
    streams_happened(a->streams, e);
}
