/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_NARRATE_H
#define REKNIT_CLI_NARRATE_H

/* Words for what happened, one line each, for `run`, `jobs` and `explain`. */

#include "base/str.h"
#include "cli/story.h"

/* "attempt 1 crashed after step 1200, exit status 1: ... (gpu-oom, 90 %)"; "" before there is a
 * verdict. */
void narrate_verdict(const struct story_attempt *a, struct strbuf *out);

/* "restarting in 30s (gpu-oom without progress: retry 1 of 1)" */
void narrate_decision(const struct story_attempt *a, struct strbuf *out);

/* "attempt 1 may hang: no new step for 2min (1min 30s allowed); ..." of a FINDING; false: not worth
 * a line. */
bool narrate_finding(const struct event *e, struct strbuf *out);

/* What was asked of a scheduler, or seen of it, or said by a person; "" = not worth a line. */
void narrate_scheduled(const struct event *e, struct strbuf *out);

/* "exit status 1", "killed by SIGSEGV" */
void narrate_exit(const struct exit_fact *x, struct strbuf *out);

/* "1-1200", "300 seen" where they have no numbers, "-" */
void narrate_steps(const struct story_attempt *a, struct strbuf *out);

/* "gpu-oom, rank 2", "hang: network", "-" where nothing failed */
void narrate_cause(const struct story_attempt *a, struct strbuf *out);

/* The table of attempts and the goodput, by lines of so many columns. The run must be accounted. */
void narrate_summary(const struct story_run *run, size_t width,
                     void (*line)(void *ctx, const char *text), void *ctx);

/* What it means that so many events of a job's journal are lost. */
void narrate_lost_events(uint64_t n, struct strbuf *out);

/* "running", "done", "stopped", "killed" (with reknit), "unrecorded" (it ended on a full disk).
 * alive: somebody runs the job now. */
void narrate_state(const struct story_run *run, bool alive, struct strbuf *out);

#endif
