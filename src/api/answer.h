/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_ANSWER_H
#define REKNIT_API_ANSWER_H

/* A request as the HTTP server hands it on, and what becomes of it. No connection is known here,
 * so that tests and the fuzzer ask without one. */

#include "api/access.h"
#include "core/model/event.h"

#include <jansson.h>

#define BODY_MAX     ((size_t)64 << 10) /* bytes of a request's body */
#define PAGE_MAX     500                /* results of one answer */
#define PAGE_DEFAULT 100

struct api_request {
    const char *method; /* "GET", "POST" */
    const char *path;   /* with its %XX decoded */
    const char *body;   /* of body_len bytes; NULL = none */
    size_t body_len;
    const struct asker *asker;
    const char *last_event_id; /* NULL = none */
    bool wants_stream;         /* Accept: text/event-stream */
    /* Value of ?NAME=VALUE, "" for ?NAME; NULL = not given. */
    const char *(*arg)(void *ctx, const char *name);
    void *arg_ctx;
};

/* Which events a stream shows. */
struct stream_choice {
    uint64_t kinds;         /* a bit for each kind */
    uint64_t after;         /* seq; UINT64_MAX = from now on */
    char job[JOB_NAME_LEN]; /* "" = of all */
};

struct api_answer {
    unsigned status;   /* HTTP */
    const char *type;  /* of the text, static */
    const char *allow; /* with 405: the methods that there are, static */
    char *text;        /* owned by whoever gets the answer */
    size_t len;
    bool stream; /* no text: server-sent events as chosen */
    struct stream_choice choice;
};

void answer_done(struct api_answer *a);
#define _cleanup_answer_ __attribute__((cleanup(answer_done)))

void answer_json(struct api_answer *a, unsigned status, json_t *j); /* takes j */
/* {"error": "..."} */
void answer_error(struct api_answer *a, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void answer_text(struct api_answer *a, const char *type, char *text); /* takes text */

const char *request_arg(const struct api_request *r, const char *name);
/* A number of at least 0. Returns false, with the answer, when it is none. */
bool request_number(const struct api_request *r, const char *name, uint64_t absent, uint64_t *ret,
                    struct api_answer *a);
bool request_limit(const struct api_request *r, size_t *ret, struct api_answer *a);
/* The body as a JSON object, an empty one when there is none; NULL, with the answer. */
json_t *request_object(const struct api_request *r, struct api_answer *a);

#endif
