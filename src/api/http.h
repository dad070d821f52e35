/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_HTTP_H
#define REKNIT_API_HTTP_H

#include "api/identity.h"
#include "api/store.h"
#include "api/stream.h"
#include "wire/helper.h"

#define CONNECTIONS_MAX          256 /* of one server */
#define CONNECTIONS_OF_OPERATORS 32  /* of them on the Unix socket */
#define CONNECTIONS_PER_USER_MAX 32  /* operators as many as there are */
#define CONNECTIONS_PER_ADDRESS  64  /* elsewhere */
#define REQUEST_SECONDS_MAX      20  /* from its first byte, or the last answer, to its end */
#define ANSWER_SECONDS_MAX       120

/* An HTTP server on a socket that listens. */
struct http_config {
    int listener;                    /* owned from http_new() on, whether that succeeds or not */
    bool local;                      /* a Unix socket: the kernel says who asks */
    const char *tls_cert, *tls_key;  /* texts, PEM; NULL = no TLS */
    const struct identity *identity; /* borrowed, as the rest */
    struct helper *seal;             /* reknit-seal, for credentials; NULL = none are taken */
    struct store *store;
    struct streams *streams;
};

struct http;

int http_new(sd_event *event, const struct http_config *c, struct http **ret, struct err *e);
/* Its streams end. */
struct http *http_free(struct http *h);

/* Who is who has changed: streams end, and connections are looked at anew. */
void http_identify(struct http *h);
int http_listener(const struct http *h);

#endif
