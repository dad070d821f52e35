/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_ACTION_LOCAL_H
#define REKNIT_ACTION_LOCAL_H

/* This machine as the scheduler: starts an attempt under a keeper, ends it, and says what became
 * of its processes. At most one attempt exists at a time: start refuses until the last is gone. */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>
#include <termios.h>

struct local_handlers {
    void (*started)(void *ctx, pid_t pid);      /* before any of its output can be read */
    void (*start_failed)(void *ctx, int error); /* errno of exec; `exited` follows all the same */
    void (*exited)(void *ctx, pid_t pid, int code, int signal, bool unkept); /* the first process;
                                                                   code -1 when a signal ended it */
    void (*stuck)(void *ctx, unsigned count, pid_t pid); /* SIGKILL does not end these */
    void (*gone)(void *ctx, bool keeper_lost);           /* no process of it is left */
};

struct local_spec {
    char *const *argv;
    char *const *env; /* added to the environment, "NAME=value", NULL at the end */
    int in, out, err; /* the job's 0, 1, 2; the caller closes its copies afterwards */
    int terminal;     /* 0, 1, 2: that one is a terminal of the job's own; -1: none */
    int lock;         /* held open as long as the keeper lives */
    int restore;      /* the user's terminal, or -1, and its settings */
    struct termios saved;
    const char *cgroup_name; /* of the attempt's own cgroup, if one can be made */
};

struct local;

/* Call before any signal is blocked or ignored: the job gets what holds now. Ignores SIGPIPE
 * and SIGXFSZ. */
struct local *local_new(sd_event *event, const struct local_handlers *handlers, void *ctx);
struct local *local_free(struct local *l); /* the keeper then kills what still runs */
DEFINE_CLEANUP(struct local *, local_free);

/* -EBUSY: the last attempt is not gone. */
int local_start(struct local *l, const struct local_spec *spec, struct err *e);
bool local_is_idle(const struct local *l);
pid_t local_keeper(const struct local *l); /* root of the attempt's tree; 0 = none */
const char *local_cgroup(const struct local *l);

enum local_whom {
    LOCAL_FIRST, /* the first process */
    LOCAL_GROUP, /* its process group */
    LOCAL_ALL,   /* every process of the attempt */
};
void local_signal(struct local *l, enum local_whom whom, int sig); /* FIRST or ALL */

/* Signals GROUP or ALL, and after `grace` SIGKILLs all that is left; SIGKILL or no grace: now. */
void local_kill(struct local *l, enum local_whom whom, int sig, usec_t grace);

#endif
