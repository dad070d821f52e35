/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_RULES_H
#define REKNIT_PROBE_RULES_H

/* Inside of the judge: the table of what is a trouble. */

#include "probe/judge.h"

enum answer {
    ANSWER_UNKNOWN,
    ANSWER_NO,
    ANSWER_YES,
};

#define TURNS_KEPT 3

/* What is remembered of one thing. */
struct past {
    bool was_up;              /* a port: ever, while we look */
    int64_t links_best;       /* most NVLinks of a GPU that were up at once */
    usec_t turns[TURNS_KEPT]; /* when the link last went up or down; newest first */
    size_t n_turns;
};

struct sight {
    const struct observation *now, *before; /* before: NULL at the first look */
    usec_t now_us, between_us;
    const struct past *past;
};

struct rule {
    const char *signature;
    const char *text; /* behind what it is about */
    enum area area;
    enum item item; /* whose number is told with it */
    enum answer (*is)(const struct rule *r, const struct sight *s);
    int64_t limit;  /* of `is` */
    uint8_t looks;  /* so many in a row must show it; and so many, that it is over */
    bool passes;    /* it is a moment, not a state: told each time, and never over */
    bool compares;  /* one look alone cannot show it */
    bool straggler; /* the device is held back */
    enum isolation isolation;
    enum cause cause;
    enum role role;
    enum blame blame;
    int32_t confidence;
};

extern const struct rule rules[];
extern const size_t rules_count;
#define RULES_MAX 64

#endif
