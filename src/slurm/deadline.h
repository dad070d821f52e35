/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_DEADLINE_H
#define REKNIT_SLURM_DEADLINE_H

/* A call of libslurm cannot be broken off, and this program has one thread. So a request that is
 * not answered in time is answered by a signal handler, which then ends the program. */

#include <stdint.h>

#define DEADLINE_EXIT_STATUS 75 /* EX_TEMPFAIL: start me again */

void deadline_init(int out_fd);
void deadline_start(int64_t id, int ms);
void deadline_acting(void); /* from now on the scheduler may have done something */
void deadline_stop(void);

#endif
