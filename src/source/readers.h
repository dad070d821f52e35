/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READERS_H
#define REKNIT_SOURCE_READERS_H

/* The logs of jobs, followed by one reknit-reader for each owner of jobs, on this host or, where
 * this one does not have their file system, on a node of the attempt. What comes of a log
 * counts only for jobs of that owner, and as the job's own text, whatever the reader says. A reader
 * that hangs or dies is replaced, and goes on where the last one was. */

#include "base/log_pattern.h"
#include "core/model/event.h"
#include "source/node_readers.h"

#define LOG_PATTERNS_MAX 32
#define LOG_FILES_MAX    512   /* of one attempt, beside those of its patterns */
#define LOG_FILES_SUM    16384 /* likewise, of all jobs of one owner */

enum log_mode {
    LOG_MODE_UNKNOWN,  /* what the file shows decides */
    LOG_MODE_TRUNCATE, /* each attempt begins the file anew */
    LOG_MODE_APPEND,   /* it begins behind what the last attempt, or another job, left */
};

/* Where an attempt writes. All is copied; text may be hostile. A pattern may hold any of Slurm's
 * replacements; those that differ between tasks, steps and nodes stand for all files that fit. */
struct log_paths {
    const char *std_out, *std_err;    /* patterns; NULL or "" = the scheduler's default */
    const char *const *more;          /* patterns of the job's comment */
    size_t n_more;                    /* LOG_PATTERNS_MAX of all; what is beyond is a gap */
    const char *work_dir;             /* absolute; NULL = only absolute patterns count */
    uint32_t job_id, array_job_id;    /* array_job_id: of a task of an array */
    uint32_t array_task_id;           /* LOG_NO_TASK = no task of an array */
    const char *job_name, *user_name; /* NULL = not known: stand for any */
    usec_t started_us;                /* of the attempt; 0 = not known */
    enum log_mode mode;
};

struct readers_config {
    struct children *children;         /* borrowed, as the next */
    struct node_readers *node_readers; /* NULL = readers run on this host only */
    int state_dir; /* a descriptor, borrowed: where it is kept how far each log was read, for when
                      the daemon was restarted; -1 = nowhere */
    usec_t ping_every;    /* 0 = the defaults */
    usec_t ping_patience; /* so long without an answer is hung */
};

/* job and path are valid during the call only. */
struct readers_handlers {
    /* signal.file is the number that file() told; the provenance is PROVENANCE_JOB_TEXT. */
    void (*signal)(void *ctx, const char *job, uint32_t attempt, const struct signal *s);
    /* Something was written that will never be read, or it was too much. text: for people. */
    void (*gap)(void *ctx, const char *job, uint32_t attempt, const char *text);
    /* All that the attempt's files held when readers_drain() was called has been read, and its
     * signals have been told. */
    void (*drained)(void *ctx, const char *job, uint32_t attempt);
    /* Whether somebody reads it, from where it was read last: when it begins, and whenever its
     * reader has begun or ended, which need not make a difference. Behind readers_drain() true is
     * also told when none can be had, and false, for which somebody may wait, once. */
    void (*read)(void *ctx, const char *job, uint32_t attempt, bool is_read);
    /* The path of a file that signals come from (trouble NULL), before the first that may be
     * evidence: of as many files as may matter. Once in a daemon's life, and again should the
     * number mean another. Or that it cannot be read, and why, of the first few; and "" when such a
     * one can be after all. path (the end of a long one, behind "...") and trouble are sanitised.
     * May be NULL. */
    void (*named)(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                  const char *trouble);
    /* A file is being followed (trouble NULL), or cannot be read, and why. path is sanitised. */
    void (*file)(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                 const char *trouble);
    /* The reader of that owner there: "running", or what is wrong with it. node "": on this host.
     */
    void (*reader_state)(void *ctx, uid_t uid, const char *node, const char *text);
    /* The node that is to read the attempt's logs, NULL = this host; asked when the attempt
     * begins. May be NULL, as the next. */
    const char *(*home)(void *ctx, const char *job, uint32_t attempt);
    /* The same when the folder of a log is missing on this host (but NULL = there is none), or
     * `other_than` has no reader for it (NULL = nobody has any). */
    const char *(*elsewhere)(void *ctx, const char *job, uint32_t attempt, const char *other_than);
};

/* Where the logs of a job are read. */
struct readers_view {
    char node[NODE_NAME_LEN]; /* "" = on this host */
    bool running;             /* there is a reader there */
    bool missing;             /* it says that the folder of a log is missing there */
    char trouble[200];        /* of the reader, "" = none */
};

/* A file of it that cannot be read. */
struct unread_log {
    char path[LOG_PATH_LEN]; /* too long ones begin with "..." */
    char why[256];
};
typedef void unread_log_fn(void *ctx, const struct unread_log *log);

struct readers_counts {
    uint32_t running, hung, on_nodes; /* now; on_nodes: of those that are running */
    uint32_t unread;                  /* jobs that run, and whose logs nobody reads now */
    char unread_job[JOB_NAME_LEN];    /* one of them, "" = none */
    uint64_t replaced, signals, gaps;
};

struct readers;

/* NULL when the loop refuses. All handlers are called from the loop. */
struct readers *readers_new(sd_event *event, const struct readers_config *c,
                            const struct readers_handlers *handlers, void *ctx);
struct readers *readers_free(struct readers *r);

/* From now on; a new attempt ends the following of the one before, at once. May be called again
 * for the same attempt: the paths then add to those known. 0, -EINVAL (a job key that is none),
 * -EPERM (the job belongs to another uid), -E2BIG (too many jobs). */
int readers_follow(struct readers *r, uid_t uid, gid_t gid, const char *job, uint32_t attempt,
                   const struct log_paths *paths);

/* A file that the attempt writes to, by its absolute path; known ones are ignored. node: who says
 * so, and reads it where the host that reads the job's other logs does not have it; NULL = nobody
 * does. -ENOENT: that attempt is not followed; -E2BIG: there are too many, which is told as a gap
 * once. */
int readers_add_file(struct readers *r, const char *job, uint32_t attempt, const char *path,
                     const char *node);

/* The attempt has ended: drained() follows, sooner or later, or never, so set a deadline. Shortly
 * after it, reading of the attempt stops. */
void readers_drain(struct readers *r, const char *job, uint32_t attempt);

/* Keeps at once where all logs stand: to be called when whatever was told is safe, and before an
 * attempt is followed by another in the same file. It is done now and then by itself. */
void readers_save(struct readers *r);

void readers_forget(struct readers *r, const char *job);

/* Readers may run on that node from now on. */
void readers_node_up(struct readers *r, const char *node);

/* -ENOENT: the job is not followed. */
int readers_look(const struct readers *r, const char *job, struct readers_view *ret);
/* Calls fn for the first of its files that cannot be read; how many there are. */
uint32_t readers_unread(const struct readers *r, const char *job, unread_log_fn *fn, void *ctx);

void readers_counts(const struct readers *r, struct readers_counts *ret);

#endif
