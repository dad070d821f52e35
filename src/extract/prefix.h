/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_PREFIX_H
#define REKNIT_EXTRACT_PREFIX_H

#include "extract/line.h"

/* Takes all prefixes off l->text and keeps what they say in l. */
void prefix_take_all(struct log_clock *clock, struct line *l);

/* Length of NAME where the message begins with "NAME: ", else 0; and the taking of it as the
 * node's, with what stands behind it, once it is known to be one. */
size_t prefix_name(const struct line *l);
void prefix_take_name(struct log_clock *clock, struct line *l, size_t n);

/* Rank of the last "[rankN]:" in s[0..len), printed by whoever printed what follows; RANK_NONE. */
int32_t prefix_rank_before(const char *s, size_t len);

#endif
