/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_JUDGE_H
#define REKNIT_CORE_ATTRIBUTE_JUDGE_H

/* The judgement in the making, for the files of this folder only. Each file answers one question
 * and fills its part of it; attribute.c asks them in order. */

#include "core/attribute/evidence.h"
#include "core/measure/trend.h"

struct judge {
    const struct evidence *e;
    enum ending ending;
    const char *only_node; /* that the attempt had, by its scheduler's word; "" = not known */
    struct incident *in;

    /* episode.c: what was not followed by progress, in order of time */
    const struct hit **current;
    size_t n_current;
    const struct hit *interrupt;  /* the scheduler's or user's word that it ended the job */
    const struct hit *notice;     /* the first that announced it, some steps before the end */
    const struct hit *first_wait; /* earliest line that tells of waiting */
    bool adrift_out; /* lines whose time cannot be told are no part of it, but for hard facts */
    bool told_end;   /* a launcher, the scheduler or an exit says that it failed */
    usec_t silence;  /* how long other output went on after the last progress */
    usec_t patience; /* how long a silence is normal for this job */

    /* primary.c */
    const struct hit *primary; /* decisive line */
    const struct exit_seen *first_exit;
    size_t n_failing_ranks; /* that report the primary, or that the launcher lists with it */

    /* rules.c */
    struct holdup_finding holdup;
    enum divergence divergence;
    const struct series *loss, *slow;
    bool gradient_lost;
    usec_t idle; /* how long nothing useful had been done when it was interrupted; 0 = not known */
    const struct hit *telling; /* what says why it waits, or who is slow */
};

void episode_build(struct judge *j);
bool episode_is_current(const struct evidence *e, const struct hit *h);
bool hit_is_adrift(const struct evidence *e, const struct hit *h); /* when it was is not known */
bool hit_before(const struct hit *a, const struct hit *b);
bool hit_is_interrupt(const struct hit *h);
bool hit_is_wait(const struct hit *h);
bool hits_concurrent(const struct hit *a, const struct hit *b); /* the order proves nothing */

void primary_choose(struct judge *j);
const struct hit *primary_symptom(const struct judge *j);
const struct hit *primary_last_resort(const struct judge *j); /* of a crash that nothing explains */
int hit_category(const struct hit *h); /* which of concurrent roots explains the others */
bool hit_is_soft_repeat(const struct hit *h);
bool hit_is_everywhere(const struct judge *j, const struct hit *h); /* other devices show it, too */
const struct hit *episode_first(const struct judge *j, enum role role);

#define HARD_FACT         80 /* confidence of a line that needs no other */
#define CATEGORY_GENERIC  0
#define CASCADE_HEARD     20 /* confidence of a victim's line that is listened to */
#define SYMPTOM_HEARD     15 /* ... of a symptom; less tells that something is wrong, not what */
#define CATEGORY_SPECIFIC 2
#define CATEGORY_HARDWARE 5

void rules_apply(struct judge *j); /* class, cause, primary, confidence */
/* An ambiguous error, where nothing else tells that a job ran; NULL = it does, or there is none. */
const struct hit *rules_only_sign(const struct judge *j);

void culprit_name(struct judge *j);
void advice_choose(struct judge *j);
void proof_collect(struct judge *j); /* evidence lines */
void ruled_collect(struct judge *j); /* what it was not */
void summary_write(struct judge *j);
void fingerprint_make(struct judge *j);

void ruled_add(struct judge *j, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t rules_confidence(const struct judge *j, enum cause cause, int32_t own);
bool cause_is_hardware(enum cause c);

#endif
