/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_SESSION_PARTS_H
#define REKNIT_CLI_SESSION_PARTS_H

/* What the parts of a session share; for src/cli/session*.c alone. */

#include "action/local.h"
#include "cli/home.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/state.h"
#include "cli/story.h"
#include "cli/watch.h"
#include "extract/catalog.h"
#include "pump/pump.h"
#include "source/gpus.h"
#include "source/keys.h"
#include "source/terminal.h"

struct session {
    const struct session_options *o;
    sd_event *event;
    struct job_home home;
    struct journal *journal;
    struct catalog *catalog;
    struct matcher *matcher;
    struct pump *pump;
    struct local *local;
    struct say *say;
    struct story story;
    struct terminal terminal;
    struct policy policy;

    struct watch *watch; /* of the present or last attempt */
    struct keys *keys;
    struct gpu gpus[DEVICES_MAX]; /* that the job can use */
    uint32_t n_gpus;
    int master;              /* of the attempt's pseudo-terminal, -1 = none */
    uint32_t attempt;        /* its number */
    uint64_t intent;         /* the START that asked for it, 0 = the first */
    struct intent_facts how; /* ... and what it asked */
    bool started;            /* its first process runs or ran */
    char log_path[PATH_MAX];
    int start_error;       /* errno of an exec that failed, 0 = none */
    struct exit_fact exit; /* of its first process */

    struct event start;     /* an INTENT_START that waits for its time */
    sd_event_source *timer; /* for that */
    unsigned interrupts;    /* how often the user asked for the end */
    sd_event_source *hurry; /* after that: when the end is waited for no longer */
    bool impatient;         /* that time has come */
    struct ended_facts end;
    bool unread;               /* nobody reads our output any more; that was said */
    unsigned refused;          /* bit n: descriptor n, a file, takes no output now; that was said */
    VEC(struct event) waiting; /* decisions and their kin that no journal holds yet */
    uint32_t undecided;        /* the attempt whose verdict was told without a decision */
    bool end_waits;            /* JOB_ENDED among them */
    bool closing;              /* the loop is over */
    bool ended;                /* JOB_ENDED was committed */
    bool begun;    /* what happens is about this run; before, it is the end of a lost one */
    bool archived; /* what came before this run was put aside: it is not in the journal */
    struct learned_facts learned; /* ... but what it taught */
    bool no_state;                /* the lock, the folders or the journal could not be opened */
    struct err untold;            /* why the journal could not be written before that */
};

/* session.c: inputs for the pump, and the end */

struct event session_event(const struct session *s, enum event_kind kind);
void session_input(struct session *s, enum event_kind kind);
void session_report(struct session *s, const struct event *intent, enum outcome outcome,
                    const char *detail);
void session_ask_for_end(struct session *s, int sig, const char *who);

/* Nothing more will happen: leaves the loop. Called whenever one of the conditions may be new. */
void session_maybe_finish(struct session *s);

/* The command was there, but exec failed all the same (its interpreter is missing): then what was
 * said about that is all there is to say. The exit status 126 or 127, as a shell would give it,
 * leads to the verdict and to the stop. */
bool session_never_ran(const struct session *s);

/* session_open.c: what is read before the job starts */

/* What execvp() would find, so that a slip of the pen leaves no job behind. -ENOENT, -EACCES. */
int session_find_command(const char *name, struct err *e);
int session_load_policy(struct session *s, struct err *e);
int session_open_state(struct session *s, struct err *e); /* lock, folders, journal */

/* The job was not started because of that error of its state: says so, and what to do. */
void session_advise(const struct session *s, int error);

/* session_attempt.c: the life of one attempt, from its start to the end of its output */

extern const struct local_handlers session_local_handlers;
int session_add_start_timer(struct session *s);
/* start: the INTENT_START that asked for it, NULL = the first. */
int session_start_attempt(struct session *s, const struct event *start, struct err *e);
void session_carry_out(struct session *s, const struct event *intent);

/* session_signals.c: what the user and the terminal send */

int session_add_signals(struct session *s);
void session_release_signals(void); /* from now on they end the program, as they usually do */

/* The end was asked for and could be now, if it were not for the reader of our output: it is not
 * waited for much longer. */
void session_hurry(struct session *s);

/* session_tell.c: what is said on standard error */

void session_tell(struct session *s, const struct event *e);
/* A decision about the last attempt waits for the journal: what is known of its end is told. */
void session_tell_undecided(struct session *s);
void session_tell_lost_run(struct session *s);
void session_tell_lost_events(struct session *s);
void session_sum_up(struct session *s, int status, const char *error); /* NULL: none */

#endif
