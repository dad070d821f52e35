/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SCHED_JOB_H
#define REKNIT_SOURCE_SCHED_JOB_H

/* A job's record as an adapter gives it (docs/ADAPTER.md), of which only what is used. */

#include "base/err.h"
#include "core/model/sched.h"

#include <jansson.h>
#include <sys/types.h>

struct sched_job {
    uint32_t id;
    char *label; /* "25_3"; never NULL, as all texts */
    char *name, *user, *account, *partition, *qos, *comment, *dependency;
    char *command, *work_dir, *std_out, *std_err; /* the last two: paths, or patterns of them */
    char *reason, *reason_kind, *nodes, *failed_node, *batch_host;
    uid_t uid;
    gid_t gid;
    uint32_t array_id, array_task;                /* array_id 0 = of no array */
    uint32_t het_leader, het_offset;              /* het_leader 0 = not heterogeneous */
    bool batch, requeue, completing, held, noted; /* noted: that reknit holds it */
    bool dependency_cut;                          /* the text is only its beginning */
    enum sched_state state;                       /* SCHED_NONE: a state without a word for it */
    uint32_t restarts, n_nodes, n_tasks, gpus, priority;
    int64_t submit, eligible, start, end; /* seconds since 1970; 0 = none */
    int64_t noted_until;                  /* likewise, of the clock of who left the note */
    int32_t exit_code, exit_signal;
    json_t *exclude, *required; /* arrays of names, owned */
};

/* -EBADMSG: it has no id or no state. */
int sched_job_parse(const json_t *j, struct sched_job **ret, struct err *e);
struct sched_job *sched_job_free(struct sched_job *j);

#define SCHED_KEY_LEN 32
/* The name under which core knows this very job: the id is reused, the first submission is not. */
void sched_job_key(const struct sched_job *j, char ret[SCHED_KEY_LEN]);
/* When the job of that key was submitted, or queued again before it was first seen: the scheduler's
 * clock, in seconds. */
int64_t sched_key_submit(const char *key);

/* What tells a later state of a job from another one that was given its number. */
struct sched_identity {
    uint32_t uid;
    char name[64]; /* as much of it as core keeps */
    uint32_t restarts;
    int64_t submit;
};
struct sched_identity sched_job_identity(const struct sched_job *r);

/* It has ended, and no attempt that the scheduler tells of had begun. */
bool sched_job_never_began(const struct sched_job *r);

/* Whether r can be a later state of a job of the same number, of which this was known some time
 * ago. */
bool sched_job_may_follow(const struct sched_job *r, const struct sched_identity *known);

/* Whether b, of one of the next looks, is what became of a: the same job, perhaps queued again and
 * renamed meanwhile. */
bool sched_job_is_same(const struct sched_job *a, const struct sched_job *b);

#endif
