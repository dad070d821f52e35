/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READING_H
#define REKNIT_SOURCE_READING_H

/* Inside of struct readers: readers.c is told which jobs to follow, reading.c asks the readers of
 * their owners in the places where they are read, reading_hear.c hears them, reading_files.c places
 * the files that nodes tell of. */

#include "base/vec.h"
#include "source/reader_process.h"
#include "source/reader_seen.h"
#include "source/reader_state.h"
#include "source/reader_word.h"
#include "source/readers.h"
#include "source/told_files.h"

/* What is read of a job in one place. */
struct reading {
    struct reading_owner *owner;
    char key[JOB_NAME_LEN];
    uint32_t attempt;
    json_t *request;        /* follow, without marks */
    json_t *marks, *before; /* by path */
    struct told_files *files;
    bool part;                                 /* of what a node has and home has not */
    uint32_t n_numbers;                        /* of home: that were given to files of parts */
    char record[JOB_NAME_LEN + NODE_NAME_LEN]; /* name of its marks */
    bool full;                                 /* said so */
    bool refused;                              /* its reader has no room for it yet */
    bool draining;
    bool ended;   /* and was to be drained */
    bool nowhere; /* its reader misses the folder of a log */
    usec_t moved_at;
    bool told_unread;             /* of the end of this attempt */
    VEC(struct reader_seen) seen; /* by file */
    uint32_t n_named;             /* of them, whose path was told */
    uint32_t n_troubles;          /* how often it was told that one cannot be read */
    uint32_t n_unread, n_shown;   /* that cannot now; of which it is kept which and why */
    struct reader_rate signals;
};

/* A reader, and all that it reads. */
struct reading_owner {
    struct readers *readers;
    uid_t uid;
    gid_t gid;
    char node[NODE_NAME_LEN]; /* "" = this host */
    unsigned failures;        /* since a reader ran */
    char trouble[200];
    struct reader_process *process;
    struct reader_rate complaints;
    size_t n_jobs, n_files; /* files that were told one by one */
};

struct readers {
    sd_event *event;
    struct readers_config config;
    struct readers_handlers handlers;
    void *ctx;
    struct readers_counts counts;
    VEC(struct reading_owner *) owners;
    VEC(struct reading *) jobs; /* by key; where one is read in several places, home is the first */
    VEC(struct reading *) gone; /* forgotten, maybe by a handler that is told of them */
    sd_event_source *bury, *files_timer;
    struct reader_state *state;
    struct event decoded;
};

/* reading.c */

/* Where it is among the jobs, or would be. Those of one key stand beside each other. */
size_t reading_place(const struct readers *r, const char *key);
struct reading *reading_find(const struct readers *r, const char *key); /* home */
struct reading *reading_find_at(const struct reading_owner *o, const char *key);
void reading_forget_seen(struct reading *j);
void reading_free(struct reading *j);
struct reader_record reading_record(const struct reading *j); /* borrowed from it */
void reading_gap(const struct reading *j, const char *text);

void reading_ask_follow(struct reading *j);
void reading_ask(const struct reading *j, const char *op);
void reading_ask_files(struct reading *j); /* those that its reader was not told of yet */
void reading_ask_all(void *ctx);           /* of a reader that knows nothing yet; the owner */

/* Who waits is told whether it is read. */
void reading_tell_read(struct reading *j);
void reading_tell_all(void *ctx); /* that are of this owner */

/* The end of the path, in LOG_PATH_LEN bytes. */
char *reading_shorten(const char *path);

/* reading_unread.c: the file can be read, or cannot, as its reader says. */
void reading_note_file(struct reading *j, struct reader_seen *s, const struct reader_file *f);
void reading_forget_unread(struct reading *j, struct reader_seen *s);

/* node: NULL or "" = on this host. NULL when the loop refuses, or too many run on nodes. */
struct reading_owner *reading_owner_get(struct readers *r, uid_t uid, gid_t gid, const char *node);
void reading_owner_free(struct reading_owner *o);
void reading_owner_drop(struct reading_owner *o); /* if nothing is to be read */

void reading_drop_files(struct reading *j);
void reading_end(struct reading *j); /* it is freed later: see struct readers */

/* Where it was, it is read no more. */
void reading_move(struct reading *j, const char *node);
/* Likewise, where somebody else has a reader for it. */
void reading_elsewhere(struct reading *j, const char *other_than);

/* reading_files.c */

/* To a node that has told of it, but not to that one. */
void reading_place_file(struct reading *home, const char *path, json_t *tellers,
                        const char *other_than);
/* It is there. local: on that host alone. */
void reading_settle_file(struct reading *j, const char *path, bool local);
void reading_end_parts(struct reading *home); /* all that is not read at home */

/* reading_hear.c; the context is a struct reading_owner. */
extern const struct reader_process_handlers reading_handlers;

#endif
