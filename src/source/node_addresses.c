/* SPDX-License-Identifier: Apache-2.0 */
#include "source/node_addresses.h"

#include "base/str.h"

#define GOOD_FOR (300 * USEC_PER_SEC)
#define AGAIN_IN (30 * USEC_PER_SEC) /* after it failed */

bool node_addresses_has(const struct node_addresses *a, const char *address)
{
    for (size_t i = 0; i < a->n; i++) {
        if (streq(a->v[i], address))
            return true;
    }
    return false;
}

bool node_addresses_are_due(const struct node_addresses *a, usec_t now)
{
    return !a->asked && now >= a->fresh_until;
}

void node_addresses_learn(struct node_addresses *a, const json_t *answer, usec_t now)
{
    const json_t *list = json_object_get(answer, "addresses");
    size_t count = json_array_size(list);

    a->fresh_until = now + (count > 0 ? GOOD_FOR : AGAIN_IN);
    if (count == 0)
        return;
    a->n = 0;
    for (size_t i = 0; i < count && i < NODE_ADDRESSES_MAX; i++)
        STR_COPY(a->v[a->n++], json_string_value(json_array_get(list, i)) ?: "");
}
