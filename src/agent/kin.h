/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_KIN_H
#define REKNIT_AGENT_KIN_H

/* Which processes of this node belong to which job of the scheduler. */

#include "base/proctree.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum kin {
    KIN_JOB,     /* of that job */
    KIN_NONE,    /* of none on this node */
    KIN_EXITING, /* on its way out, which may take a while: of any job of its user */
    KIN_UNKNOWN, /* it cannot be read: likewise */
};

struct kin_fact {
    enum kin kin;
    uint32_t job;     /* KIN_JOB */
    uint32_t restart; /* as the environment says, which the job may have changed */
    bool by_cgroup;   /* ... and nothing was read of the environment: restart means nothing */
};

/* The job that the kernel's control groups put the process into: text is its /proc/PID/cgroup. */
bool kin_of_cgroup(const char *text, uint32_t *ret_job);

typedef void (*kin_fn)(void *ctx, const struct proc *p, const struct kin_fact *f);

/* Calls fn for each of the processes that can be of a job; node: our name. With their restarts,
 * environments are read also of those whose control group says the job. Takes little more than a
 * second at most. */
void kin_look(const struct proc_list *processes, const char *node, bool restarts, kin_fn fn,
              void *ctx);

/* The user whose process it is. -ENOENT, -ESRCH: it is gone. */
int kin_user(pid_t pid, uid_t *ret);

#endif
