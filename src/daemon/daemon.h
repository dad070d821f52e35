/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_DAEMON_DAEMON_H
#define REKNIT_DAEMON_DAEMON_H

/* The parts of reknitd, and what each may do with the others. All of it runs in one loop. */

#include "api/api.h"
#include "config/daemon_file.h"
#include "config/terms.h"
#include "core/state/state.h"
#include "pump/pump.h"
#include "source/adapter.h"
#include "source/children.h"
#include "source/readers.h"
#include "source/sched_events.h"

#include <limits.h>

#define JOURNAL_NAME "journal.db"

struct sched_watch;
struct log_watch;
struct node_watch;
struct node_message;
struct vacated;
struct notifier;
struct webhook_counts;
struct keeping;

struct daemon {
    bool new_journal; /* nobody was here before */
    sd_event *event;
    struct daemon_config *config;
    const char *config_path, *drop_ins; /* to be read again on SIGHUP */
    uint64_t config_hash;               /* of what holds */
    int state_dir; /* stays the one that was opened, whatever becomes of its name */
    int lock;
    char lock_path[PATH_MAX];
    char programs[PATH_MAX]; /* where those that go with this one lie */
    struct journal *journal;
    struct pump *pump;
    struct children *children;
    struct node_readers *node_readers;
    struct adapter *adapter;
    struct sched_watch *sched;
    struct log_watch *logs;
    struct api *api;
    usec_t started;
    struct node_watch *nodes;
    uint64_t refused;    /* inputs that no journal may hold */
    usec_t said_refused; /* monotonic */
    struct err tilt;     /* why the journal could not be written when that began */
    struct notifier *notifier;
    struct keeping *keeping;
};

int daemon_new(sd_event *event, const char *config_path, const char *drop_ins, struct daemon **ret,
               struct err *e);
struct daemon *daemon_free(struct daemon *d);
DEFINE_CLEANUP(struct daemon *, daemon_free);

/* SIGHUP: what is wrong with the new configuration leaves the old one in force. */
void daemon_reload(struct daemon *d);

/* What core works with beside its jobs. It is an input like any other, and told when it is new. */
void daemon_tell_brakes(struct daemon *d);

/* ingest.c: what other systems say of nodes. 1: it is taken; 0: known already; -ENOENT: there is no
 * such node. */
struct api_alert;
int ingest_alert(struct daemon *d, const struct api_alert *a);

/* sched.c: looks at the scheduler, again and again, and tells core what it saw. */
struct sched_watch *sched_watch_new(struct daemon *d);
struct sched_watch *sched_watch_free(struct sched_watch *w);
/* Handlers of the adapter; ctx is the sched_watch. */
void sched_watch_hello(void *ctx, const json_t *hello);
void sched_watch_down(void *ctx, const char *text);
void sched_watch_stray(void *ctx);
/* Something happened: look sooner than the next poll. */
void sched_watch_poke(struct sched_watch *w);
/* A new configuration: first those are told whom it allows less, then, behind what holds for all
 * jobs, the terms of all anew. */
void sched_watch_lower(struct sched_watch *w);
void sched_watch_reload(struct sched_watch *w);
/* The record of the job as it was last seen; NULL = none. */
const struct sched_job *sched_watch_record(const struct sched_watch *w, const char *key);
const struct job_terms *sched_watch_terms(const struct sched_watch *w, const char *key);
/* A record of an answer of the adapter (a "job"). False: it shows the end of an attempt, which
 * cannot be understood without a look at the nodes behind it; the next look at all has both. */
bool sched_watch_take(struct sched_watch *w, const json_t *job);
/* The record of the job of that number, or of the first part of the one that it is a part of, and
 * its key, "" when it is not watched; NULL = none. */
const struct sched_job *sched_watch_find(const struct sched_watch *w, uint32_t id,
                                         const char **ret_key);
size_t sched_watch_nodes(const struct sched_watch *w); /* how many there are; 0 = not known yet */
/* Where the scheduler reaches the node, as an address or a name; NULL = it has no such node. */
const char *sched_watch_address(const struct sched_watch *w, const char *node);
/* Whether the scheduler has that node, as far as is known. */
bool sched_watch_may_have(const struct sched_watch *w, const char *node);
/* As sched_nodes_word(). */
struct sched_node_word;
bool sched_watch_word(const struct sched_watch *w, const char *node, struct sched_node_word *ret);
/* All of them. */
void sched_watch_each_node(const struct sched_watch *w,
                           void (*fn)(void *ctx, const char *node,
                                      const struct sched_node_word *word),
                           void *ctx);
/* Something was done to one: look at them soon. */
void sched_watch_poke_nodes(struct sched_watch *w);
/* How many nodes the job could run on, without those that are excluded in its record or here; -1:
 * that cannot be told. */
int sched_watch_usable(const struct sched_watch *w, const struct sched_job *r,
                       const struct intent_facts *without);
/* Whether the intent is kept until the first look at all jobs, after which act_on_intent() is
 * called with it again: before that, nothing is asked of the scheduler. */
bool sched_watch_defer(struct sched_watch *w, const struct event *intent);
/* The further parts of a heterogeneous job. */
void sched_watch_each_part(const struct sched_watch *w, const struct sched_job *r,
                           void (*fn)(void *ctx, const struct sched_job *part), void *ctx);
/* All jobs of the scheduler, watched or not. */
void sched_watch_each(const struct sched_watch *w, void (*fn)(void *ctx, const struct sched_job *r),
                      void *ctx);
/* Those nodes of a compressed list that there are, as an array of names; but not those that the
 * intent names. */
json_t *sched_watch_nodes_of(const struct sched_watch *w, const char *list,
                             const struct intent_facts *without);
/* Seconds that the scheduler's clock is ahead of the pump's. */
int64_t sched_watch_ahead(const struct sched_watch *w);
/* "" = none, "" = not known, 0 = never. */
const char *sched_watch_trouble(const struct sched_watch *w);
const char *sched_watch_cluster(const struct sched_watch *w);
usec_t sched_watch_looked_at(const struct sched_watch *w); /* for people */
/* When the last look that was answered was asked for, monotonic; 0 = none was. */
usec_t sched_watch_look_began(const struct sched_watch *w);
/* A point in time of the scheduler's clock, in seconds, on our monotonic one. */
usec_t sched_watch_to_mono(const struct sched_watch *w, int64_t seconds);
uint64_t sched_watch_errors(const struct sched_watch *w);

/* act.c: carries out what core asks of the scheduler. Each result follows a fresh look. */
void act_on_intent(struct daemon *d, const struct event *intent);

/* Whether it may still be carried out. */
bool act_may(struct daemon *d, const struct event *intent);

/* Asks the adapter, if it may be when its turn comes; the answer, and a look behind it, become the
 * intent's result. */
void act_ask(struct daemon *d, const struct event *intent, json_t *request);

/* The result of an intent. */
void act_report(struct daemon *d, const struct event *intent, enum outcome outcome,
                const char *detail);

/* place.c: the place of a job in the queue, and the jobs behind it. */
bool place_is_outranked(const struct daemon *d, const struct sched_job *r);
bool place_has_stranded(const struct daemon *d, const struct sched_job *r);
uint32_t place_before_all(const struct daemon *d, const struct sched_job *r); /* a priority */
/* Carries the intent out if it is one of these; r may be NULL. */
bool place_act(struct daemon *d, const struct sched_job *r, const struct event *intent);

/* site.c: a program of the site, about a node. */
/* status: -1: it gave no answer; how: in words. Called once, later. */
typedef void site_answer_fn(void *ctx, int status, const char *how);
/* name: in words, static. On failure fn is not called. */
int site_ask(struct daemon *d, const struct command *c, const char *name, const char *node,
             site_answer_fn *fn, void *ctx);

/* isolate.c: nodes that are sick. */
void isolate_tell_terms(struct daemon *d);
void isolate_look(struct daemon *d); /* they were just looked at */
void isolate_act(struct daemon *d, const struct event *intent);

/* fence.c: asks the site's own program whether a lost node is really gone. */
void fence_start(struct daemon *d, const struct event *intent);

/* logs.c: has the logs of attempts read. */
struct log_watch *log_watch_new(struct daemon *d);
struct log_watch *log_watch_free(struct log_watch *w);
/* From now on; see readers_follow(). */
void log_watch_follow(struct log_watch *w, const char *key, uint32_t attempt,
                      const struct sched_job *r, const struct job_terms *terms, enum log_mode mode);
/* A file that the attempt writes to, as a node of it says. */
void log_watch_found(struct log_watch *w, const char *key, uint32_t attempt, const char *path,
                     const char *node);
/* The attempt is over: its last lines are wanted. */
void log_watch_drain(struct log_watch *w, const char *key, uint32_t attempt);
void log_watch_happened(struct log_watch *w, const struct event *e);
/* Where the job's logs are read, or why they are not, in words; "" = nobody follows it. */
void log_watch_say(const struct log_watch *w, const char *key, char *ret, size_t size);
/* As readers_unread(). */
uint32_t log_watch_unread(const struct log_watch *w, const char *key, unread_log_fn *fn, void *ctx);
/* The agent of that node is connected. */
void log_watch_node_up(struct log_watch *w, const char *node);
void log_watch_counts(const struct log_watch *w, struct readers_counts *ret);
/* This process has only begun: nobody has read since the last one, and nobody reads yet. */
void logs_are_unread(struct pump *p);

/* backend.c: the API, and what it may ask of us; d->api on success. */
int backend_new(struct daemon *d, struct err *e);
int backend_reload(struct daemon *d, struct err *e);
/* The scheduler can be asked: who it runs as. */
void backend_learn(struct daemon *d);

/* nodes.c and nodes_hear.c: the agents of the compute nodes, where the configuration has them. */
struct node_watch *node_watch_new(struct daemon *d);
struct node_watch *node_watch_free(struct node_watch *w);
void node_watch_reload(struct node_watch *w);
/* More of the journal is written. */
void node_watch_written(struct node_watch *w);
void node_watch_happened(struct node_watch *w, const struct event *e);
void node_watch_agents(const struct node_watch *w, bool (*fn)(void *ctx, const struct api_agent *a),
                       void *ctx);
void node_watch_counts(const struct node_watch *w, struct api_agents *ret);
/* A node of that list whose agent can start readers of logs: `first` if it is one, but never
 * `other_than` (may be NULL). NULL = there is none. Valid until the next turn of the loop. */
const char *node_watch_reads(const struct node_watch *w, const char *list, const char *first,
                             const char *other_than);
/* Whether a message tells of a time before there was the job of that key. */
bool node_watch_is_older(const struct daemon *d, const struct node_message *m, const char *key);
/* Whether its agent says that nothing of the job is left on the node: then core is told. */
bool node_watch_fences(struct node_watch *w, const char *key, const char *node);

/* vacated.c: on which nodes nothing of an attempt is left, as their agents say. */
struct vacated *vacated_new(struct daemon *d);
struct vacated *vacated_free(struct vacated *v);
void vacated_message(struct vacated *v, const struct node_message *m);
bool vacated_fences(struct vacated *v, const char *key, const char *node);
void vacated_forget(struct vacated *v, const char *key);

/* notify.c: tells people, by the webhook. */
struct notifier *notifier_new(struct daemon *d);
struct notifier *notifier_free(struct notifier *n);
void notifier_reload(struct notifier *n);
void notifier_happened(struct notifier *n, const struct event *e);
/* False: there is none. */
bool notifier_counts(const struct notifier *n, struct webhook_counts *ret);

/* keep.c: keeps the journal within bounds. */
struct keeping *keeping_new(struct daemon *d);
struct keeping *keeping_free(struct keeping *k);

#endif
