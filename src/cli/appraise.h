/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_APPRAISE_H
#define REKNIT_CLI_APPRAISE_H

/* What was decided, beside what people did with that job afterwards: folded from the events of a
 * journal. docs/CLUSTER.md says what counts as agreement. */

#include "base/vec.h"
#include "core/model/event.h"

#define APPRAISE_PATIENCE  USEC_PER_DAY        /* after which nobody is expected to do anything */
#define APPRAISE_UNDO      (10 * USEC_PER_MIN) /* a cancel so soon after a restart takes it back */
#define APPRAISE_CASES_MAX 100000
#define APPRAISE_NODES_MAX 4 /* of a case, that are named */
#define APPRAISE_NODE_LEAD                                                                         \
    USEC_PER_HOUR /* who took a node out so long before had the same reason */

/* What became of a decision. Those up to AFTER_GONE_ON are people's (or the job's) own doing. */
enum aftermath {
    AFTER_OPEN,        /* nothing yet, and it is early */
    AFTER_LEFT,        /* nothing, and enough time has passed */
    AFTER_REQUEUED,    /* queued again by a person or another tool */
    AFTER_RESUBMITTED, /* its user submitted one of that name after it */
    AFTER_CANCELLED,
    AFTER_APPROVED,
    AFTER_REJECTED,
    AFTER_GONE_ON, /* the attempt went on by itself, whatever was thought of it */
    AFTER_UNDONE,  /* carried out, and cancelled at once */
    AFTER_SLURM,   /* the scheduler queued it again, of itself */
    AFTER_DONE,    /* carried out; nobody objected */
    AFTER_MAX,
    AFTER_INVALID = -EINVAL,
};
DECLARE_NAMES(aftermath, enum aftermath);

enum agreement {
    AGREEMENT_NONE, /* not known, or nobody was asked */
    AGREEMENT_YES,
    AGREEMENT_NO,
    AGREEMENT_MAX,
    AGREEMENT_INVALID = -EINVAL,
};
DECLARE_NAMES(agreement, enum agreement);

/* Of a job, as far as these events tell. */
struct appraise_names {
    bool known;
    uint32_t uid;
    char label[32], name[64], user[64], partition[64];
};

/* Somebody took a node out of service. */
struct appraise_word {
    char node[NODE_NAME_LEN], who[64], reason[256];
    usec_t at;
};

struct appraisal {
    char job[JOB_NAME_LEN];
    uint32_t attempt;
    uint64_t decision; /* its seq */
    usec_t at;
    enum action action; /* a restart or a stop; others are not compared */
    enum mode mode;
    char rule[48];
    uint32_t n_nodes;
    char nodes[APPRAISE_NODES_MAX][NODE_NAME_LEN]; /* blamed: kept out from then on */
    uint32_t taken_out[APPRAISE_NODES_MAX]; /* ... 1 + which of the words takes it out; 0 = none */
    enum incident_class class;
    enum cause cause;
    char fingerprint[17];
    struct appraise_names names;

    enum aftermath after;
    usec_t after_at;                /* 0 = not at a moment */
    char who[64];                   /* who said so, "" = not known */
    char as[JOB_NAME_LEN];          /* AFTER_RESUBMITTED: which job that is */
    enum agreement agreement;       /* set by appraise_end() */
    uint64_t requeue;               /* the intent that asks for one, 0 = none */
    bool requeue_failed, came_back; /* it was queued again, by whomever */
    bool ended;                     /* the attempt has */
};

struct appraise {
    VEC(struct appraisal) cases;
    VEC(struct appraise_job *) jobs; /* by name */
    uint64_t dropped;                /* cases beyond the limit */
    VEC(struct appraise_word) words;
};

void appraise_done(struct appraise *a);
#define _cleanup_appraise_ __attribute__((cleanup(appraise_done)))

/* Whether the job's JOB_SEEN was among the events. */
bool appraise_knows(const struct appraise *a, const char *job);

/* In the order of their numbers: JOB_SEEN, ATTEMPT_STARTED, LOOK, FINDING, VERDICT, DECISION,
 * INTENT, RESULT, OPERATOR; others change nothing. */
void appraise_add(struct appraise *a, const struct event *e);
/* After the events: by whose word a node is out of service now. What reknit or Slurm itself said is
 * none of people. */
void appraise_add_word(struct appraise *a, const struct appraise_word *w);
/* What can be said at that time. */
void appraise_end(struct appraise *a, usec_t now);

struct appraise_tally {
    char word[64];
    uint32_t decisions, agreed, differed, unknown, done;
};
/* Percent of those that are known; -1 = none is. */
int appraise_rate(const struct appraise_tally *t);

/* By what cases are counted together. */
typedef const char *(*appraise_key_fn)(const struct appraisal *c);
const char *appraise_by_cause(const struct appraisal *c);
const char *appraise_by_rule(const struct appraisal *c);
const char *appraise_by_partition(const struct appraisal *c);
const char *appraise_by_nothing(const struct appraisal *c);

/* The most frequent first; the caller frees *ret. Returns how many. */
size_t appraise_count(const struct appraise *a, appraise_key_fn key, struct appraise_tally **ret);

#endif
