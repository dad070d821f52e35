/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_WORDS_H
#define REKNIT_SLURM_WORDS_H

/* Slurm's numbers in the words of docs/ADAPTER.md. */

#include "slurm/fault.h"
#include "slurm/expect.h"

#include <jansson.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdint.h>

/* job_info_t.job_state: base state and flags. */
enum slurm_state words_job_state(uint32_t job_state);

const char *words_reason(uint32_t state_reason);      /* Slurm's own word, "BeginTime" */
const char *words_reason_kind(uint32_t state_reason); /* "time" */

/* node_info_t.node_state */
const char *words_node_state(uint32_t node_state);
json_t *words_node_flags(uint32_t node_state);
bool words_node_is_usable(uint32_t node_state);

/* Of a call that failed with this number of slurm_errno.h; acting: it might have changed something.
 */
enum fault words_fault(int slurm_errno, bool acting);

#endif
