/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_STORE_H
#define REKNIT_API_STORE_H

/* What answers are made from: the daemon's state, and its journal for what the state has forgotten
 * or never held. */

#include "api/access.h"
#include "api/api.h"
#include "core/state/state.h"
#include "journal/journal.h"

struct metrics;

#define OWNERS_MAX 1024

/* Of a job that the state has forgotten: that never changes. */
struct known_owner {
    char job[JOB_NAME_LEN]; /* "" = a free place */
    uid_t owner;
};

struct store {
    struct api_backend backend;
    void *ctx;
    char *journal_path;
    struct journal *journal; /* NULL: not opened yet, use store_journal() */
    struct metrics *metrics;
    usec_t loop_lag;            /* how late the loop was when it was last measured */
    struct known_owner *owners; /* by hash of the job */
    uint64_t owners_asked;      /* how often the journal was asked for one */
};

struct store *store_new(const struct api_backend *b, void *ctx);
struct store *store_free(struct store *store);
DEFINE_CLEANUP(struct store *, store_free);

const struct model *store_model(const struct store *store);
/* As in struct api_backend. */
const char *store_notes(const struct store *store, const char *key);
void store_logs(const struct store *store, const char *key, char *ret, size_t size);
uint32_t store_unread_logs(const struct store *store, const char *key,
                           void (*fn)(void *ctx, const char *path, const char *why), void *ctx);
usec_t store_now(const struct store *store);

/* A job as somebody names it and may see it. */
struct found_job {
    char key[JOB_NAME_LEN];
    uid_t owner;
    const struct job *job;  /* NULL: only the journal knows it */
    struct job_facts *seen; /* of a job that only the journal knows; owned */
    usec_t seen_at;
};
void found_job_done(struct found_job *f);
#define _cleanup_found_job_ __attribute__((cleanup(found_job_done)))

/* name: "4242-1796035193", "4242" or "25_3", of which the newest that he may see is meant. ret must
 * be zeroed. -ENOENT, or the journal cannot be read. */
int store_find_job(struct store *store, const struct asker *who, const char *name,
                   struct found_job *ret, struct err *e);

/* Whose job that is; 0 = root's, nobody's, or not known. */
uid_t store_owner(struct store *store, const char *key);
/* Whether he may see that job. */
bool store_shows(struct store *store, const struct asker *who, const char *key);

/* Opened when it is first needed. */
int store_journal(struct store *store, struct journal **ret, struct err *e);
int store_select(struct store *store, const struct journal_choice *c, struct journal_cursor **ret,
                 struct err *e);

#endif
