/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_API_H
#define REKNIT_API_API_H

/* The daemon's face for people and programs: HTTP on a Unix socket, on TCP when that is configured.
 * It reads core's state and the journal; the only thing it writes are operators' inputs. Everything
 * happens in the loop, from which it never keeps more than one bounded answer at a time.
 *
 * Who asks decides what is seen (api/access.h): operators all, others their own jobs. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/event.h"

#include <systemd/sd-event.h>

#define API_SOCKET_PATH "/run/reknit/reknitd.sock"

struct model;

/* Text is borrowed during api_new(). */
struct api_config {
    const char *socket;             /* "" or NULL: none */
    const char *listen;             /* address:port; "" or NULL: not on TCP */
    const char *tls_cert, *tls_key; /* PEM files; on TCP both, but for a loopback address */
    const char *token_file;         /* lines of "USER TOKEN", readable by us alone */
    bool munge;                     /* on TCP: "Authorization: MUNGE credential" too */
    const char *operators;          /* group; "" or NULL: root, `admin` and we ourselves alone */
    const char *admin;              /* the scheduler's own user (SlurmUser); "" or NULL: none */
};

/* What the daemon knows of itself. Text is the daemon's, and sanitised. */
struct api_status {
    const char *version, *cluster;
    usec_t started;
    enum mode mode;      /* of jobs that no rule says otherwise of */
    const char *adapter; /* "connected", or in words what is wrong */
    bool adapter_ok;
    usec_t last_look; /* when the scheduler last answered; 0 = never */
    uint64_t adapter_errors, adapter_restarts;
    uint32_t readers, readers_hung;
    uint64_t readers_replaced;
    uint32_t agents;
    uint64_t journal_bytes;
    const char *tilt; /* why nothing is acted on; NULL = it is */
};

/* All are called from the loop. */
struct api_backend {
    const struct model *(*model)(void *ctx);
    usec_t (*now)(void *ctx); /* the pump's */
    /* An operator's input: EVENT_OPERATOR or EVENT_MODE, of a job that the asker may command. Not
     * committed yet when it returns; it may call api_happened(). */
    int (*submit)(void *ctx, const struct event *input, struct err *e);
    void (*status)(void *ctx, struct api_status *ret);
    const char *journal; /* its path: history is read through a connection of the API's own */
};

struct api;

/* -EINVAL: TCP without TLS, no such group, ...; or why a socket cannot be opened. */
int api_new(sd_event *event, const struct api_config *c, const struct api_backend *b, void *ctx,
            struct api **ret, struct err *e);
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api *, api_free);

/* Every event, in order, once it was committed: for streams and metrics. */
void api_happened(struct api *a, const struct event *e);

#endif
