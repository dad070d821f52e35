/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_HOME_H
#define REKNIT_CLI_HOME_H

/* A job's folder while it is run: who may run it, and which processes a run before left behind. */

#include "base/cleanup.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define RUN_ID_LEN 17 /* 16 hexadecimal digits */

/* A job's folder, held by this process and by nobody else. */
struct job_home {
    char path[PATH_MAX];     /* ROOT/NAME */
    char run_path[PATH_MAX]; /* ROOT/NAME/run-N */
    char run_id[RUN_ID_LEN]; /* REKNIT_RUN of its processes */
    unsigned run;
    int lock;         /* the keeper holds it too: it lasts until no process is left */
    bool in_order;    /* the last run ended so, or there was none */
    size_t leftovers; /* processes of the last run that had to be killed */
};

/* Makes the folder and takes the lock. -EBUSY: somebody runs that job now; the text says who.
 * Waits while the keeper of a run whose reknit was killed still ends its processes, and kills what
 * a run left that lost its keeper too; -EBUSY also when that cannot be done, or some may be of it.
 * Then begins a run (cli/runs.h). On failure ret is as it was, but for its
 * path. */
int job_home_open(const char *name, struct job_home *ret, struct err *e);
void job_home_close(struct job_home *h); /* the run ended in order: nothing is left behind */

/* So that the next run can find the processes even if everything here is killed: the cgroup they
 * are in ("" = none), their keeper, and the session that the first of them leads (0 = it is not
 * there yet). */
void job_home_note_attempt(struct job_home *h, const char *cgroup, pid_t keeper, pid_t session);

/* So that the end of a run can be recorded on a disk that is full by then: some room is taken now,
 * as far as there is plenty, and given back. */
void job_home_keep_room(const struct job_home *h);
void job_home_give_room(const struct job_home *h);

/* Whether the lock is still where others look for it. When it or the folder was deleted, another
 * run of the job may have begun, and this one must start nothing more. */
bool job_home_is_held(const struct job_home *h);

#endif
