/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SUCCESSION_H
#define REKNIT_SOURCE_SUCCESSION_H

#include "base/str.h"
#include "source/sched_job.h"

/* Whether `next` takes the place of r when r fails: it waits for that, or r has ended, and it is
 * the same user's next job of that name, which waits or has begun since. Were r restarted, both
 * would run. */
bool sched_job_succeeds(const struct sched_job *next, const struct sched_job *r);

/* Whether it waits for the failure of any job; once it has begun, it does not say so any more. */
bool sched_job_waits_for_failure(const struct sched_job *next);

/* Whether `next` waits for the success of r, and was told that it would never come. Other people's
 * jobs do not count. */
bool sched_job_is_stranded(const struct sched_job *next, const struct sched_job *r);

/* What it waits for, as one asks for it: without what the scheduler has noted of each,
 * "afterok:25(failed)". */
void sched_job_dependency_anew(const struct sched_job *next, struct strbuf *out);

#endif
