/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_HOLDER_H
#define REKNIT_CLI_HOLDER_H

/* What stands in a job's lock file: who holds the lock, and what his processes are found by. */

#include "action/cgroup.h"
#include "base/proctree.h"
#include "cli/home.h"

#include <stdbool.h>
#include <stdint.h>

#define PLACE_LEN 96

struct holder_number {
    int pid;        /* 0 = not known */
    uint64_t start; /* with pid it names a process of a place for good */
};

struct holder {
    struct holder_number self;
    char run_id[RUN_ID_LEN];
    char cgroup[CGROUP_PATH_MAX]; /* "" = none */
    struct holder_number session; /* its leader */
    char place[PLACE_LEN];        /* whose numbers these are; "" = not known */
    struct holder_number keeper;
};

/* This boot and this pid namespace; "" when it cannot be told. */
void holder_place(char ret[PLACE_LEN]);
struct holder_number holder_number(pid_t pid); /* .pid = 0: there is no such process */

bool holder_read(int fd, struct holder *ret); /* false: it names nobody */

/* With this process as `self`. Never empty in between: others look at it without the lock. */
void holder_write(int fd, struct holder *holder);

bool holder_is_here(const struct holder *h); /* or it is not known where */
bool holder_is_alive(const struct holder *h);
bool holder_keeper(const struct holder *h, struct proc *ret); /* false: it is gone, or unknown */

/* The processes that are proven to be the holder's, and, where doubtful is not NULL, those that
 * have nothing but the number of his session. */
int holder_find_leftovers(const struct holder *last, struct proc_list *ret,
                          struct proc_list *ret_doubtful);

#endif
