/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_GATHER_H
#define REKNIT_CORE_ATTRIBUTE_GATHER_H

/* How signals become evidence, by kind; evidence_add() sends each to its place. `now` is the
 * signal's clock as far as it is believed, else the latest one of its stream. */

#include "core/attribute/evidence.h"

/* hits.c: lines that matched. */
void gather_hit(struct evidence *e, const struct signal *s, const struct stream *stream,
                usec_t now);
void gather_cleared(struct evidence *e, const struct signal *s); /* trouble that is over */

/* exits.c: processes that ended. */
void gather_exit(struct evidence *e, const struct signal *s, const struct stream *stream,
                 usec_t now);

/* progress.c: steps, and the silence after them. */
void gather_step(struct evidence *e, const struct signal *s, struct stream *stream, usec_t now);
void gather_silence(struct evidence *e, usec_t now); /* any line with a clock */
void gather_sign_of_work(struct evidence *e);        /* silence is counted anew */

#endif
