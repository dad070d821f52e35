/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_SIM_CLUSTER_H
#define REKNIT_TESTS_SIM_CLUSTER_H

/* A cluster in virtual time: the unmodified core, the translation of looks, a Slurm (slurm.h), an
 * adapter that loses answers, people who cancel, hold and requeue, and a reknitd that is killed
 * behind any event. All drawn from a seed.
 *
 *   cluster.c   time, the jobs' work, people
 *   warden.c    reknitd as far as it stands between core and the adapter
 *   reader.c    what attempts write, and who reads it
 *   inspect.c   what must hold */

#include "slurm.h"

#include "core/state/state.h"

struct arg {
    uint64_t a, b, c;
    void *p;
};

struct cluster;

struct happening {
    usec_t at;
    uint64_t order;
    void (*happen)(struct cluster *c, struct arg arg);
    struct arg arg;
};

/* What kind of cluster this is; constant during a run. */
struct scene {
    enum mode mode;
    bool mode_changes, freezes;
    bool comments;       /* users change how far reknit may go with their jobs */
    bool words;          /* they and operators say so of single jobs */
    unsigned lost, late; /* percent of actions: done but not answered; answered, and done later */
    unsigned deaths;     /* of 10000 events */
    unsigned reader_deaths, slow_readers; /* percent of ends of attempts; of starts */
    unsigned bad_nodes;
    nodeset bad;
    bool rough;  /* people interfere */
    bool touchy; /* nodes fall silent */
    struct brakes brakes;
    usec_t horizon; /* from then on nothing goes wrong any more */
};

/* Of reknitd: what it knows of a record besides core. */
struct watched {
    uint32_t id;
    char key[JOB_NAME_LEN];
    struct fake_job last; /* as it was shown */
    bool successor;
    uint32_t followed; /* the attempt whose log is read */
    bool draining;     /* ... to its end */
    unsigned downs;    /* how often nobody read then */
};

/* What one attempt writes. */
struct log {
    uint32_t index, attempt;
    VEC(struct signal) lines;
    size_t told;
};

/* Of one job that core knows, from its events. */
struct story {
    char key[JOB_NAME_LEN];
    uint32_t index; /* of the fake job */
    uint64_t decision;
    unsigned requeues_of_decision;
    uint32_t begun, judged; /* the last attempt */
    usec_t unread_at;       /* core was told so, last */
    unsigned restarts;      /* that reknit asked for and got */
    enum mode allowed;      /* by the operators, when core was told last */
    bool ordered;           /* ... in their own word about this job, which stands before rules */
    struct {
        usec_t since;
        unsigned n;
    } asked[INTENT_MAX]; /* in the present ten minutes */
};

struct cluster {
    uint64_t seed;
    struct rng rng;
    bool trace;
    struct scene scene;
    struct slurm slurm;
    usec_t now;
    uint64_t order;
    VEC(struct happening) heap;
    usec_t deaf_until; /* slurmctld answers nobody */

    struct core *core;
    struct journal journal;
    uint64_t seq;
    VEC(struct watched) watch;
    VEC(struct story) stories;
    VEC(struct log) logs;
    bool reading;         /* there is a reader ... */
    usec_t read_since;    /* ... since then */
    uint64_t reader_life; /* changes whenever one begins or ends */
    bool alive, full;
    uint64_t life;                  /* of reknitd */
    uint64_t past;                  /* the last event before it */
    usec_t alive_since, well_since; /* since when its adapter was answered */
    usec_t adapter_free_at, polled_at;
    uint64_t seen_changes;
    bool poll_waits;

    unsigned requeues, cancels, deaths, attempts;
    unsigned guards, fences, copies; /* copies: that nobody could have prevented */
    unsigned reader_deaths, unread;  /* unread: verdicts that waited in vain for a reader */
    unsigned let_go;                 /* how often a job was no longer watched */
    unsigned silences;               /* for which running attempts were interrupted */
};

#define LAG_MAX   USEC_PER_SEC /* of a reader, behind what is written and asked */
#define BEGINNING ((usec_t)1767225600 * USEC_PER_SEC) /* 2026-01-01 */

void cluster_init(struct cluster *c, uint64_t seed, bool trace);
void cluster_run(struct cluster *c);
void cluster_done(struct cluster *c);

void cluster_later(struct cluster *c, usec_t span, void (*happen)(struct cluster *, struct arg),
                   struct arg arg);
usec_t cluster_between(struct cluster *c, usec_t least, usec_t most);
bool cluster_is_quiet(const struct cluster *c); /* nothing goes wrong any more */
struct fake_job *cluster_job(const struct cluster *c, uint64_t index);
void cluster_fail(const struct cluster *c, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* warden.c */
void warden_begin(struct cluster *c, struct arg none);
void warden_feed(struct cluster *c, struct event e);
void warden_poll(struct cluster *c, struct arg life);
/* The key of the job, while core follows this attempt of it; NULL = it does not. */
const char *warden_follows(const struct cluster *c, const struct fake_job *f);

/* reader.c */
void reader_write(struct cluster *c, const struct fake_job *f, const struct signal *s);
void reader_start(struct cluster *c); /* after a while */
void reader_lost(struct cluster *c);  /* reknitd was killed, and the reader with it */
void reader_is_unknown(struct cluster *c);
void reader_follow(struct cluster *c, const char *key);
void reader_drain(struct cluster *c, const char *key);
/* How many lines of the attempt, written until then, were not told. */
size_t reader_left(struct cluster *c, uint32_t index, uint32_t attempt, usec_t until);
void reader_done(struct cluster *c);

/* inspect.c: each ends the program when something does not hold. */
void inspect_step(struct cluster *c, const struct event *input, struct core_output *out);
void inspect_derived(struct cluster *c, const struct event *e);
/* reknitd hands it to the adapter, or to the site's program. */
void inspect_carried_out(struct cluster *c, const struct event *intent);
void inspect_granted(struct cluster *c, const struct event *intent, struct fake_job *f, bool late);
void inspect_begun(struct cluster *c, struct fake_job *f);
void inspect_forgotten(struct cluster *c, const struct fake_job *f);
void inspect_job(struct cluster *c, struct fake_job *f); /* once a second */
void inspect_end(struct cluster *c);
struct story *inspect_story(struct cluster *c, const char *key);

#endif
