/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_POLICY_NODES_H
#define REKNIT_CORE_POLICY_NODES_H

#include "core/state/state.h"

/* Whether what stands against the node differs from its verdict; then the next. Or what it shares
 * with others is at fault, or a rule wants too much: a verdict without a node. */
bool nodes_judge(const struct model *m, const struct node_ledger *l, struct node_verdict *ret);
/* When time alone may change that; USEC_NEVER. */
usec_t nodes_judge_due(const struct model *m, const struct node_ledger *l);

#endif
