/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_PROTOCOL_H
#define REKNIT_SLURM_PROTOCOL_H

/* Requests and answers as lines of JSON (docs/ADAPTER.md). Knows no scheduler. */

#include "base/err.h"
#include "base/str.h"
#include "slurm/fault.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PROTOCOL_VERSION    1
#define REQUEST_LINE_MAX    (256 * 1024)
#define REQUEST_ID_NONE     (-1)
#define REQUEST_ID_MAX      ((int64_t)1 << 53)
#define DEADLINE_DEFAULT_MS 10000
#define DEADLINE_MIN_MS     100
#define DEADLINE_MAX_MS     600000

struct request {
    int64_t id; /* REQUEST_ID_NONE: it had none that can be repeated */
    const char *op;
    int deadline_ms;
    json_t *body; /* the whole object; op points into it */
};
#define _cleanup_request_ __attribute__((cleanup(request_done)))
void request_done(struct request *r);

/* -EINVAL, e says why; ret->id is set then too, as far as the line tells it, for the answer. */
int request_parse(const char *line, size_t len, struct request *ret, struct err *e);

/* A member of the request. NULL, false or -ENOENT = there is none; -EINVAL = of another type. */
int request_text(const struct request *r, const char *name, const char **ret, struct err *e);
int request_flag(const struct request *r, const char *name, bool *ret, struct err *e);

struct answer {
    enum fault fault;
    int scheduler_errno; /* 0 = none */
    char text[480];
    json_t *now;        /* job or node as it is, with FAULT_CHANGED; NULL = none */
    json_t *body;       /* members of a good answer; NULL = none */
    struct strbuf list; /* more of them, as text: "jobs":[...] */
};
#define _cleanup_answer_ __attribute__((cleanup(answer_done)))
void answer_done(struct answer *a);

void answer_fail(struct answer *a, enum fault fault, int scheduler_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a member to a good answer; takes the reference of value. */
void answer_set(struct answer *a, const char *name, json_t *value);

/* The line, with its newline, added to out. */
void answer_write(const struct answer *a, int64_t id, struct strbuf *out);

#endif
