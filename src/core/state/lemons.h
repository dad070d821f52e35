/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_LEMONS_H
#define REKNIT_CORE_STATE_LEMONS_H

#include "core/state/state.h"

/* Parts of model_apply(). */

/* An attempt was judged: its nodes were used for so long, and it may have failed by one. */
void lemons_judged(struct model *m, const struct job *j);
/* A fact that is a fault of the node by itself. */
void lemons_fact(struct model *m, struct node_ledger *l, const struct node_fact *f, usec_t at);
/* The node was not in the books: it was used as much as the others. */
void lemons_open(const struct model *m, struct node_ledger *l);

#endif
