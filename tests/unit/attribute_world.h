/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_ATTRIBUTE_WORLD_H
#define REKNIT_TESTS_ATTRIBUTE_WORLD_H

/* Judgement on hand-made signals: one job's story a test, told as the scanner would tell it. */

#include "core/attribute/attribute.h"

#define T0 ((usec_t)1700000000 * USEC_PER_SEC)

struct story {
    struct evidence *e;
    uint64_t line;
    usec_t now; /* of the next line; begins at T0 */
    struct incident in;
};

/* Of a test: *state is a story. */
int story_setup(void **state);
int story_teardown(void **state);
#define STORY_TEST(name) cmocka_unit_test_setup_teardown(name, story_setup, story_teardown)

/* A signal of the next line, its text the id; the caller adds it to the evidence. */
struct signal make(struct story *s, enum signal_kind kind, const char *id, enum role role);
struct signal hit(struct story *s, const char *id, enum role role, enum cause cause,
                  int32_t confidence);

/* These add what they make. */
void steps(struct story *s, int64_t from, int64_t to, usec_t each);
void say(struct story *s, const char *id, enum role role, enum cause cause, int32_t confidence,
         int32_t rank);
void wait_in(struct story *s, int32_t rank, const char *op, int64_t seq, int64_t enqueued);

/* The verdict on the story so far, nothing known of its end; s->in too. */
const struct incident *judge(struct story *s);

#endif
