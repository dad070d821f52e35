/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_JUDGE_H
#define REKNIT_PROBE_JUDGE_H

/* What a node's looks mean: what was seen before and what is seen now -> the changes that are worth
 * telling. Pure: the time is an argument, nothing is read. What is unknown is never ill. */

#include "core/model/node.h"
#include "probe/observation.h"

struct change {
    const char *signature; /* static */
    enum isolation isolation;
    enum cause cause;
    enum role role;
    enum blame blame;
    int32_t confidence; /* percent that this alone proves its cause */
    enum provenance provenance;
    bool straggler;
    bool cleared; /* it was told, and is over */
    enum area area;
    char subject[SUBJECT_LEN];
    char device[DEVICE_NAME_LEN]; /* of a GPU, else "" */
    char text[EXCERPT_LEN];
};

typedef void (*judge_fn)(void *ctx, const struct change *c);

struct judge; /* what was seen so far */

struct judge *judge_new(void);
struct judge *judge_free(struct judge *j);

/* A look begins at that moment of a clock that only goes forward. Then come its lines; at its end
 * the changes are told. Of an area whose ending did not come, what was seen counts. */
void judge_begin(struct judge *j, usec_t now);
void judge_take(struct judge *j, const struct probe_line *l);
void judge_end(struct judge *j, judge_fn fn, void *ctx);

/* What a restart must not forget: what was told and is not over, and how things were at their best.
 * Of a file that somebody wrote into, what is not understood is left out. */
json_t *judge_to_json(const struct judge *j);
void judge_from_json(struct judge *j, const json_t *array);

/* What the last look shows by itself, however often that must be seen to be told; not what takes
 * two looks to see. */
void judge_now(const struct judge *j, judge_fn fn, void *ctx);

#endif
