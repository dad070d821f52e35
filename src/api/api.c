/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include "api/http.h"
#include "api/identity.h"
#include "api/listen.h"
#include "api/metrics.h"
#include "api/store.h"
#include "api/stream.h"
#include "base/file.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define TICK_EVERY USEC_PER_SEC
#define BEAT_TICKS 15
#define PEM_MAX    ((size_t)256 << 10)

/* Where people come in. */
struct door {
    char *address; /* as configured; NULL = there is none */
    char *cert, *key;
    bool loopback;
    struct http *http;
};

struct api {
    sd_event *event;
    struct store *store;
    struct streams *streams;
    struct identity *identity;
    struct helper *seal; /* opens credentials */
    struct door local, remote;
    ino_t socket_ino;
    sd_event_source *tick;
    unsigned ticks;
};

static int on_tick(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct api *a = ctx;
    usec_t now = mono_us();

    a->store->loop_lag = now > (usec_t)usec ? now - (usec_t)usec : 0;
    if (++a->ticks % BEAT_TICKS == 0)
        streams_beat(a->streams);
    timer_arm(a->tick, now + TICK_EVERY);
    return 0;
}

static int read_pem(const char *path, char **ret, struct err *e)
{
    _cleanup_(closep) int fd = file_open(path, e);
    _cleanup_(freep) char *text = xmalloc(PEM_MAX + 1);
    ssize_t n = fd >= 0 ? read(fd, text, PEM_MAX) : 0;

    if (fd < 0)
        return fd;
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

static void door_done(struct door *d)
{
    http_free(d->http);
    free(d->address);
    free(d->cert);
    if (d->key)
        explicit_bzero(d->key, strlen(d->key));
    free(d->key);
    *d = (struct door){0};
}
#define _cleanup_door_ __attribute__((cleanup(door_done)))

static int open_http(struct api *a, struct door *d, int listener, bool local, struct err *e)
{
    struct http_config h = {.listener = listener,
                            .local = local,
                            .tls_cert = d->cert,
                            .tls_key = d->key,
                            .identity = a->identity,
                            .seal = local ? NULL : a->seal,
                            .store = a->store,
                            .streams = a->streams};

    return http_new(a->event, &h, &d->http, e);
}

static bool is_at(const struct door *d, const char *address)
{
    return d->address ? is_set(address) && streq(d->address, address) : !is_set(address);
}

/* Unless another daemon has put its own there. */
static void remove_socket(const struct api *a)
{
    struct stat st;

    if (a->local.address && stat(a->local.address, &st) == 0 && st.st_ino == a->socket_ino)
        unlink(a->local.address);
}

static int open_local(struct api *a, const struct api_config *c, struct err *e)
{
    _cleanup_door_ struct door d = {0};
    struct stat st;
    int listener, r;

    if (is_at(&a->local, c->socket))
        return 0;
    if (is_set(c->socket)) {
        d.address = xstrdup(c->socket);
        listener = listen_unix(c->socket, e);
        r = listener < 0 ? listener : open_http(a, &d, listener, true, e);
        if (r < 0)
            return r;
    }
    remove_socket(a);
    door_done(&a->local);
    a->local = d;
    d = (struct door){0};
    a->socket_ino = a->local.address && stat(a->local.address, &st) == 0 ? st.st_ino : 0;
    return 0;
}

/* What goes over a network is not readable for others, and nobody is trusted for his address. */
static int check_remote(const struct api_config *c, bool loopback, struct err *e)
{
    if (is_set(c->tls_cert) != is_set(c->tls_key))
        return err_set(e, -EINVAL, "give a certificate and its key, or none");
    if (!is_set(c->token_file) && !c->munge)
        return err_set(e, -EINVAL, "nobody could ask: give a token file, or take MUNGE");
    if (!is_set(c->tls_cert) && !loopback && is_set(c->token_file))
        return err_set(e, -EINVAL,
                       "tokens need TLS: give a certificate and its key, or a "
                       "loopback address");
    return 0;
}

/* The same address is not listened on anew: its listener is taken over. */
static int listen_remote(const struct api *a, const struct api_config *c, struct door *d, int *ret,
                         struct err *e)
{
    int fd;

    if (a->remote.http && is_at(&a->remote, c->listen)) {
        d->loopback = a->remote.loopback;
        fd = fcntl(http_listener(a->remote.http), F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return err_set(e, -errno, "%s", strerror(errno));
    } else {
        fd = listen_tcp(c->listen, &d->loopback, e);
        if (fd < 0)
            return fd;
    }
    *ret = fd;
    return check_remote(c, d->loopback, e);
}

static bool is_same_key(const struct door *a, const struct door *b)
{
    return (a->cert ? b->cert && streq(a->cert, b->cert) : !b->cert) &&
           (a->key ? b->key && streq(a->key, b->key) : !b->key);
}

static int make_remote(struct api *a, const struct api_config *c, struct door *d, struct err *e)
{
    _cleanup_(closep) int listener = -1;
    int r = 0;

    d->address = xstrdup(c->listen);
    if (is_set(c->tls_cert))
        r = read_pem(c->tls_cert, &d->cert, e);
    if (r >= 0 && is_set(c->tls_key))
        r = read_pem(c->tls_key, &d->key, e);
    if (r >= 0)
        r = listen_remote(a, c, d, &listener, e);
    if (r < 0 || (a->remote.http && is_at(&a->remote, c->listen) && is_same_key(&a->remote, d)))
        return r;
    return open_http(a, d, take_fd(&listener), false, e);
}

static int open_remote(struct api *a, const struct api_config *c, struct err *e)
{
    _cleanup_door_ struct door d = {0};
    int r = is_set(c->listen) ? make_remote(a, c, &d, e) : 0;

    if (r < 0)
        return err_prefix(e, r, "listen on %s", c->listen);
    if (is_set(c->listen) && !d.http)
        return 0; /* all is as it was */
    door_done(&a->remote);
    a->remote = d;
    d = (struct door){0};
    return 0;
}

int api_new(sd_event *event, const struct api_config *c, const struct api_backend *b, void *ctx,
            struct api **ret, struct err *e)
{
    _cleanup_(api_freep) struct api *a = xnew(struct api);
    int r;

    a->event = sd_event_ref(event);
    a->store = store_new(b, ctx);
    a->streams = streams_new(a->store);
    if (c->seal) {
        a->seal = helper_new(event, c->seal, HELPER_PATIENCE);
        if (!a->seal)
            return err_set(e, -ENOMEM, "api: the event loop refuses");
    }
    r = identity_new(c, &a->identity, e);
    r = r < 0 ? r : open_local(a, c, e);
    r = r < 0 ? r : open_remote(a, c, e);
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

static void look_anew(struct api *a)
{
    if (a->local.http)
        http_identify(a->local.http);
    if (a->remote.http)
        http_identify(a->remote.http);
}

int api_reload(struct api *a, const struct api_config *c, struct err *e)
{
    struct identity *fresh = NULL;
    int r = identity_new(c, &fresh, e);

    if (r < 0)
        return err_prefix(e, r, "api");
    r = open_remote(a, c, e);
    r = r < 0 ? r : open_local(a, c, e);
    if (r < 0) {
        identity_free(fresh);
        return err_prefix(e, r, "api");
    }
    if (identity_replace(a->identity, fresh))
        look_anew(a);
    return 0;
}

void api_set_admin(struct api *a, uid_t uid)
{
    if (identity_set_admin(a->identity, uid))
        look_anew(a);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    sd_event_source_disable_unref(a->tick);
    streams_close(a->streams);
    remove_socket(a);
    door_done(&a->local);
    door_done(&a->remote);
    helper_free(a->seal); /* nobody waits for it any more */
    identity_free(a->identity);
    streams_free(a->streams);
    store_free(a->store);
    sd_event_unref(a->event);
    free(a);
    return NULL;
}

void api_happened(struct api *a, const struct event *e)
{
    metrics_happened(a->store->metrics, e);
    streams_happened(a->streams, e);
}
