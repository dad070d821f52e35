/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_POLICY_LEMON_H
#define REKNIT_CORE_POLICY_LEMON_H

#include "core/state/state.h"

struct lemon_score {
    uint32_t incidents; /* that are remembered */
    uint32_t percent;   /* of the rate at which the other nodes fail: 100 = as they do */
    bool lemon;
};

void lemon_score(const struct model *m, const struct node_ledger *l, struct lemon_score *ret);

#endif
