/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_FACTS_H
#define REKNIT_EXTRACT_FACTS_H

/* From a hit to a signal: what the entry says and what its groups captured, as values. */

#include "extract/line.h"
#include "extract/matcher.h"

/* Everything but file, line, offset. */
struct signal facts_from_hit(const struct catalog *c, const struct line_hit *hit,
                             const struct line *line, enum provenance provenance);

/* Fills text and message: the line, or the part around the match when it is longer than keep. */
void facts_text(struct signal *s, const struct line *line, size_t match, size_t keep);

/* Whether what the line compares differs: `slowest` is at least a fifth above `fastest`, or it
 * gives no such numbers. */
bool facts_differ(const struct line_hit *hit);

/* PCI addresses in any spelling ("00000000:4D:00.0", "4d:00.0", "PCI:0000:4d:00") to the form
 * "0000:4d:00"; false and an empty ret when it is none. */
bool facts_device(const char *s, size_t len, char ret[DEVICE_NAME_LEN]);

#endif
