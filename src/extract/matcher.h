/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_MATCHER_H
#define REKNIT_EXTRACT_MATCHER_H

/* Which entries of a catalogue match a cleaned line, and what their groups captured. */

#include "extract/catalog.h"
#include "extract/cover.h"
#include "extract/pattern.h"
#include "extract/stance.h"

#include <stdint.h>

struct line_hit {
    const struct entry *entry;
    const char *pattern; /* the one that matched */
    size_t start, end;   /* of the match in the line */
    struct capture fields[FIELD_MAX];
    const struct entry *dropped_by; /* by yields_to or hides; NULL = none */
    enum stance stance;             /* of failure entries: whether the line tells of it at all */
};

#define LINE_HITS_MAX 48 /* of one line; what is beyond is not reported */

struct matcher;

/* Refers to the catalogue, which must outlive it. -EINVAL names the entry whose pattern is bad. */
int matcher_new(const struct catalog *c, struct matcher **ret, struct err *e);
struct matcher *matcher_free(struct matcher *m);
DEFINE_CLEANUP(struct matcher *, matcher_free);

const struct catalog *matcher_catalog(const struct matcher *m);

/* What it looks for before it tries anything. */
const struct prefilter *matcher_words(const struct matcher *m);

/* The first pattern of the entry that has no word to look for, NULL = all have. Such a pattern is
 * tried on every line that is looked at closely, and makes none be looked at. */
const char *matcher_wordless(const struct matcher *m, const struct entry *e);

/* Fills hits[0..n) in the order of the line, dropped ones included; returns n. An entry may hit
 * several times, where a line holds several messages. */
size_t matcher_line(struct matcher *m, const char *line, size_t len,
                    struct line_hit hits[LINE_HITS_MAX]);

/* Whether an entry that is more than progress or noise may match a raw record; quick. */
bool matcher_may_matter(struct matcher *m, const char *raw, size_t len);

/* For the choice of triggers: the literals of such entries, and what the examples of progress, or
 * of progress and noise, say about ordinary text. */
const struct cover_literal *matcher_literals(const struct matcher *m, size_t *ret_n);
void matcher_learn_examples(const struct matcher *m, struct rarity *progress,
                            struct rarity *ordinary);

/* The triggers of logs that have taught nothing yet, kept here for all of them; NULL = none yet. */
struct prefilter *matcher_triggers(const struct matcher *m);
void matcher_keep_triggers(struct matcher *m, struct prefilter *p); /* takes a reference */

#endif
