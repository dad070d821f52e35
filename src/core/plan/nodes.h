/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_PLAN_NODES_H
#define REKNIT_CORE_PLAN_NODES_H

#include "core/state/state.h"

/* The next intent about the node that the state calls for, if any. */
bool plan_node(const struct model *m, const struct node_ledger *l, struct intent_facts *ret);
/* When time alone may call for one; USEC_NEVER. */
usec_t plan_node_due(const struct model *m, const struct node_ledger *l);

/* Whether it may still be carried out: asked again then, since people may have said otherwise. */
bool plan_node_permits(const struct model *m, const struct intent_facts *f);

/* Why a node that stands convicted is not drained, in words; NULL = it is, or soon will be. */
const char *plan_node_waits(const struct model *m, const struct node_ledger *l);

#endif
