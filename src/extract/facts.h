/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_FACTS_H
#define REKNIT_EXTRACT_FACTS_H

/* From a hit to a signal: what the entry says and what its groups captured, as values. */

#include "extract/line.h"
#include "extract/matcher.h"

/* Everything but file, line, offset. */
struct signal facts_from_hit(const struct catalog *c, const struct line_hit *hit,
                             const struct line *line, enum provenance provenance);

/* What the hit asks for about its node, by its entry or its code: ISOLATION_INVALID: nothing, it is
 * no fact about one. *ret_code: of the Xid or SXid, 0 = it has none. */
enum isolation facts_isolation(const struct catalog *c, const struct line_hit *hit,
                               int32_t *ret_code);

/* Fills text and message: the line, or the part around the match when it is longer than keep. */
void facts_text(struct signal *s, const struct line *line, size_t match, size_t keep);

/* Why a hit says nothing. */
enum silence {
    SILENCE_NONE,    /* it speaks */
    SILENCE_DROPPED, /* another entry says it: hit->dropped_by */
    SILENCE_STANCE,  /* the line does not tell of the failure: hit->stance */
    SILENCE_ALIKE,   /* what it compares differs too little: `slowest` is less than a fifth above
                        `fastest` */
};

/* `raised`: the line is what a traceback ends with, and tells of a failure whatever its words. */
enum silence hit_silence(const struct line_hit *hit, bool raised);

/* PCI addresses in any spelling ("00000000:4D:00.0", "4d:00.0", "PCI:0000:4d:00") to the form
 * "0000:4d:00"; false and an empty ret when it is none. */
bool facts_device(const char *s, size_t len, char ret[DEVICE_NAME_LEN]);

#endif
