/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_DAEMON_SCHED_H
#define REKNIT_DAEMON_SCHED_H

/* Inside of struct sched_watch: sched.c asks the scheduler, sched_jobs.c keeps the records of jobs
 * and tells core what they mean, sched_layouts.c asks where their tasks run. */

#include "base/vec.h"
#include "daemon/daemon.h"
#include "source/sched_nodes.h"
#include "source/sole.h"

/* A request that is asked again and again. */
struct poll {
    usec_t asked_at; /* monotonic; 0 = never */
    usec_t took;     /* the last time */
};

struct watched {
    struct sched_job *r;
    /* Of a heterogeneous job's first part, whose r->nodes and r->n_tasks are those of all. */
    char *own_nodes;
    uint32_t own_tasks;
    char key[SCHED_KEY_LEN];
    uint32_t successors[SUCCESSORS_MAX], n_successors; /* as in struct look_facts */
    bool over;         /* it had ended before it was looked at, or opted in */
    uint32_t followed; /* the attempt whose logs are read */
    struct job_terms terms;
    uint64_t told; /* hash of the notes in them that core was told */
};

struct layouts;

struct sched_watch {
    struct daemon *d;
    struct layouts *layouts;
    VEC(struct watched *) jobs; /* by id */
    struct sched_nodes *nodes;
    sd_event_source *timer;
    struct sole *sole; /* the cluster is ours; NULL, too, where it has no name */
    bool alone; /* nobody else of this host works for it: before that, nothing is looked at */
    bool full;  /* all jobs were seen since the adapter started */
    bool asking;
    struct poll of_jobs, of_nodes;
    usec_t jobs_answered_at;
    bool awaits_nodes;       /* they are asked for, and not answered yet */
    usec_t free_at;          /* monotonic: before, nothing is asked, for it cost too much of late */
    json_t *held;            /* an answer about jobs that waits for one about nodes; or NULL */
    usec_t clock_at;         /* when its clock and configuration are to be asked for */
    usec_t pressing_until;   /* monotonic: look often until then */
    usec_t wall;             /* this host's clock before the monotonic one, when clock_ahead was
                                measured: what becomes of it until the next time moves nothing */
    int64_t clock_ahead;     /* seconds, of the scheduler's clock before this host's */
    bool failing;            /* said so */
    uint64_t past;           /* seq of the last intent of before this process began */
    VEC(struct event) early; /* intents that came before the first look at all jobs */
    char trouble[256];       /* "" = it answers */
    char cluster[64];
    enum log_mode log_mode; /* of jobs that do not say themselves */
    usec_t looked_at;       /* of the pump's clock; 0 = never */
    usec_t look_began;      /* monotonic, of the same look */
    uint64_t errors;
};

struct layouts *layouts_new(struct daemon *d);
struct layouts *layouts_free(struct layouts *l);
/* The job as it was just seen. */
void layouts_follow(struct layouts *l, const struct sched_job *r, const char *key);
/* Asks for what is due. */
void layouts_look(struct layouts *l);

/* An answer to `jobs`. */
void sched_jobs_take(struct sched_watch *w, const json_t *answer);
/* Whether it says that an attempt ended or began anew: then what became of its nodes matters. */
bool sched_jobs_end_in(const struct sched_watch *w, const json_t *answer);
/* Records that did not change, but may now be taken, or mean something else. */
void sched_jobs_again(struct sched_watch *w);
/* Core knows jobs that the scheduler has forgotten while nobody looked. */
void sched_jobs_forget_missing(struct sched_watch *w);
/* Something is under way with one of them. */
bool sched_jobs_press(const struct sched_watch *w);
void sched_jobs_done(struct sched_watch *w);

#endif
