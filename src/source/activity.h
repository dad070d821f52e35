/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_ACTIVITY_H
#define REKNIT_SOURCE_ACTIVITY_H

/* What the job's processes do, seen from outside: CPU time, I/O, states. The second opinion about
 * a job whose log is silent. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/signal.h"

#include <stdio.h>
#include <sys/types.h>

struct activity;
typedef void (*activity_sink_fn)(void *ctx, const struct signal *s);

struct activity *activity_new(activity_sink_fn sink, void *ctx);
struct activity *activity_free(struct activity *a);
DEFINE_CLEANUP(struct activity *, activity_free);

/* Looks at the descendants of root. The first look, and one whose last is further back than
 * max_age, only sets the beginning; the others hand on one SIGNAL_ACTIVITY for all processes,
 * and before it one for each rank (RANK of torchrun, OMPI_..., SLURM_PROCID) that is newly stopped
 * or blocked, and SIGNAL_EXIT for each rank that newly lies dead, unnoticed by its parent. */
void activity_sample(struct activity *a, pid_t root, usec_t now, usec_t max_age);

/* A step is reported: whatever was told of its ranks counts no longer, and what still holds is to
 * be told again. */
void activity_forget(struct activity *a);

struct proc_list;
/* Adds the processes of the last look. */
void activity_processes(const struct activity *a, struct proc_list *ret);

/* A page about every process for people: state, rank, CPU time, where it waits in the kernel. */
int activity_report(struct activity *a, pid_t root, FILE *out);

#endif
