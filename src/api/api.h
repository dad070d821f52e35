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
    const char *const *seal;        /* argv of reknit-seal, for those; of api_new() */
    const char *operators;          /* group; "" or NULL: root, the scheduler's own user and we
                                       ourselves alone */
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
    uint32_t readers_on_nodes, unread; /* unread: jobs whose logs nobody reads now */
    char unread_job[JOB_NAME_LEN], unread_why[320];
    uint64_t readers_replaced;
    uint64_t journal_bytes;
    uint64_t journal_lost; /* entries, as of its start */
    const char *tilt;      /* why nothing is acted on; NULL = it is */
    const char *config;    /* its file */
    uint64_t config_hash;  /* of all that it says */
    struct api_agents {
        bool listening;
        uint32_t connected, gone; /* nodes; gone: were connected once */
        uint64_t messages, duplicates, refused, dropped;
        usec_t silent; /* the longest since one that is connected was heard */
    } agents;
    struct api_webhook {
        bool configured;
        uint64_t sent, failed, given_up, folded, dropped;
        uint32_t pending;
        const char *trouble; /* NULL = none */
    } webhook;
};

/* Of a compute node. */
struct api_agent {
    const char *node, *version;
    bool connected;
    usec_t heard, behind; /* behind: our clock less the node's */
    int64_t dropped, refused, watched, missed;
    int64_t kernel_gaps, kernel_lost; /* of the kernel's log; as in a heartbeat */
    const char *kernel_trouble;       /* "" = none */
};

/* What the scheduler says of a node. Text is sanitised. */
struct api_node {
    bool usable;
    char reason[256], who[64]; /* why it is out of service, and whose word that is */
    usec_t since;              /* 0 = not known */
};

/* What another system says of a node; borrowed, and not sanitised. */
struct api_alert {
    const char *name, *node;
    const char *device, *text; /* "" = not said */
    bool over;
};

/* All are called from the loop. */
struct api_backend {
    const struct model *(*model)(void *ctx);
    usec_t (*now)(void *ctx); /* the pump's */
    /* An operator's input: EVENT_OPERATOR or EVENT_MODE, of a job that the asker may command. Not
     * committed yet when it returns; it may call api_happened(). */
    int (*submit)(void *ctx, const struct event *input, struct err *e);
    void (*status)(void *ctx, struct api_status *ret);
    /* Calls fn for each agent that was ever heard, by the names of nodes, until it says no. */
    void (*agents)(void *ctx, bool (*fn)(void *fn_ctx, const struct api_agent *a), void *fn_ctx);
    /* What the job's comment asks for and is not granted or not understood; "" = all is. May be
     * NULL. */
    const char *(*notes)(void *ctx, const char *key);
    bool (*node)(void *ctx, const char *node, struct api_node *ret); /* false: there is none */
    /* Calls fn for each node of the scheduler. May be NULL. */
    void (*nodes)(void *ctx, void (*fn)(void *fn_ctx, const char *name, bool usable), void *fn_ctx);
    /* 1: it is taken; 0: it is known already; -ENOENT: there is no such node. May be NULL. */
    int (*alert)(void *ctx, const struct api_alert *a);
    /* Where the logs of a job are read, or why they are not, in words; "" = nowhere. May be NULL.
     */
    void (*logs)(void *ctx, const char *key, char *ret, size_t size);
    /* Calls fn for the first of its logs that cannot be read; how many there are. May be NULL. */
    uint32_t (*unread_logs)(void *ctx, const char *key,
                            void (*fn)(void *fn_ctx, const char *path, const char *why),
                            void *fn_ctx);
    const char *journal; /* its path: history is read through a connection of the API's own */
};

struct api;

/* -EINVAL: TCP without TLS, no such group, ...; or why a socket cannot be opened. */
int api_new(sd_event *event, const struct api_config *c, const struct api_backend *b, void *ctx,
            struct api **ret, struct err *e);
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api *, api_free);

/* Another configuration, tokens and certificates anew: what can be taken over is, and connections
 * stay where their listener does. What cannot be opened leaves the old one in place. */
int api_reload(struct api *a, const struct api_config *c, struct err *e);
/* The scheduler's own user is an operator. */
void api_set_admin(struct api *a, uid_t uid);

/* Every event, in order, once it was committed: for streams and metrics. */
void api_happened(struct api *a, const struct event *e);

#endif
