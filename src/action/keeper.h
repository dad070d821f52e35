/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_ACTION_KEEPER_H
#define REKNIT_ACTION_KEEPER_H

/* The keeper: a small process between reknit and the job. It starts the job's first process,
 * reaps everything that descends from it, and ends all of it when it is told to or when reknit is
 * gone. It is reached over a SOCK_SEQPACKET pair, one struct per message. */

#include "action/cgroup.h"
#include "base/time.h"

#include <signal.h>
#include <stdint.h>
#include <termios.h>

/* Started as: argv0 KEEPER_VERB SOCKET SPEC LOCK, three descriptor numbers. SPEC is a memfd:
 * struct keeper_spec, then argc strings with their NULs. LOCK is held, never used: the job's lock
 * lasts as long as the keeper. Descriptors 0, 1 and 2 are the job's. */
struct keeper_spec {
    uint32_t argc;
    int32_t terminal;     /* of 0, 1, 2: becomes the job's controlling terminal; -1 = none */
    int32_t restore;      /* descriptor of the user's terminal, whose settings the keeper puts
                             back when reknit is killed; -1 = none */
    struct termios saved; /* those settings */
    sigset_t mask;        /* signal mask for the job; the keeper's own, from its fork on, is full */
    char cgroup[CGROUP_PATH_MAX]; /* folder of the job's own cgroup v2, "" = none */
};

enum keeper_request {
    KEEPER_SIGNAL_FIRST = 1, /* signal the first process alone */
    KEEPER_SIGNAL_ALL,       /* ... every process of the job */
    KEEPER_KILL_GROUP,       /* signal its group, and SIGKILL all that is left after `grace` */
    KEEPER_KILL_ALL,         /* the same, beginning with all */
};

struct keeper_command {
    uint32_t request;
    int32_t signal;
    usec_t grace;
};

enum keeper_event {
    KEEPER_STARTED = 1,  /* pid; comes before any output of the job */
    KEEPER_START_FAILED, /* code: errno of execvp; after STARTED */
    KEEPER_EXITED,       /* the first process ended: pid, code (-1) or signal */
    KEEPER_STUCK,        /* SIGKILL does not end them: how many, pid of one */
    KEEPER_GONE,         /* no process is left; the keeper's last word */
};

struct keeper_report {
    uint32_t event;
    int32_t pid, code, signal;
    uint32_t count;
};

#define KEEPER_VERB "__keeper"
/* The program's main when it was started as keeper; argv[0] is KEEPER_VERB. */
int keeper_main(int argc, char **argv);

/* SIGKILLs every descendant of the calling process (a subreaper) and, where cgroup is not "",
 * everything in there. Call again, with a pause, until waitpid() says ECHILD. Returns how many
 * were found alive. */
size_t keeper_kill_pass(const char *cgroup, int32_t *ret_pid);

#endif
