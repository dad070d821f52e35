/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SIM_CHECK_H
#define REKNIT_TESTS_SIM_CHECK_H

/* What must hold in every run, whatever happens. Each check ends the program when it does not. */

#include "machine.h"

#define BEGINNING ((usec_t)1767225600 * USEC_PER_SEC) /* 2026-01-01 */

/* Steps core with the input, journals both sides. At times a second core, made by folding the
 * journal so far, is stepped as well, must say the same, and takes the first one's place. */
void check_step(struct machine *m, const struct event *input, struct core_output *out);

void check_derived(struct machine *m, const struct event *e);
/* A copy is about to run; how: as the START asked, NULL = the first of a run. */
void check_start(struct machine *m, uint32_t number, const struct intent_facts *how);
void check_kill(struct machine *m, const struct copy *c);      /* core wants it ended */
void check_unnoticed(struct machine *m, const struct copy *c); /* it hangs and core left it alone */
void check_refold(struct machine *m); /* replaces core by one folded from the journal */
void check_end(struct machine *m);

#endif
