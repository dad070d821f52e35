/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_STRANGERS_H
#define REKNIT_SOURCE_STRANGERS_H

/* Connections that have not proven anything yet, and which of them makes room for the next: the
 * oldest, one that did not even greet before others, and never the new one, or who holds some would
 * keep a node's agent out. What root opened, by its port, does not count with what a node's users
 * did. */

#include "source/node_addresses.h"

#include "base/vec.h"

struct stranger {
    void *who;
    char peer[NODE_ADDRESS_LEN];
    bool by_root, greeted;
};
typedef VEC(struct stranger) strangers; /* oldest first */

void strangers_add(strangers *s, void *who, const char *peer, bool by_root);
void strangers_greeted(strangers *s, const void *who);
/* He has proven who he is, or is gone. May be called for who is none. */
void strangers_remove(strangers *s, const void *who);

/* Who is to go before another comes from there: NULL while fewer than max have. */
void *strangers_crowd(const strangers *s, const char *peer, bool by_root, size_t max);
/* Who is to go before another comes from anywhere; NULL: there are none. */
void *strangers_first(const strangers *s);

void strangers_done(strangers *s);

#endif
