/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_FLIGHT_H
#define REKNIT_CLI_FLIGHT_H

/* What the flight recorders prove, for a person and for a program. */

#include "core/measure/flight_judge.h"
#include "flight/dump.h"

#include <stdio.h>

void flight_print_text(FILE *out, const struct flight *f, const struct flight_judgement *j,
                       const struct dump_folder *d);
void flight_print_json(FILE *out, const struct flight *f, const struct flight_judgement *j,
                       const struct dump_folder *d); /* one object, one line */

/* One sentence about why a rank is to blame. */
void flight_tell_culprit(struct strbuf *out, const struct flight *f,
                         const struct flight_judgement *j, const struct flight_culprit *c);
/* The verdict in one sentence. */
void flight_tell_verdict(struct strbuf *out, const struct flight *f,
                         const struct flight_judgement *j);

/* The ranks of a group that stand so; of those behind only such by their own fault if blamed. */
void flight_ranks_of(const struct flight_group *g, enum flight_stand stand, bool blamed,
                     struct intset *ret);

#endif
