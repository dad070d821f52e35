/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_TERMS_H
#define REKNIT_CONFIG_TERMS_H

/* On which terms a job is watched: the operator's rules, and what its user's comment asks for
 * within them. A comment can lower what the rules allow, never raise it. */

#include "config/daemon_file.h"

/* As the scheduler says; NULL or "" = it says nothing. */
struct job_labels {
    const char *partition, *account, *qos, *user, *comment;
    bool interactive; /* nobody else can start it again */
};

struct job_terms {
    enum mode mode;       /* MODE_OFF: leave it alone; at most MODE_OBSERVE unless opted_in */
    bool opted_in;        /* by a rule or by the comment */
    struct policy policy; /* changed as the comment asks and may */
    struct comment comment;
    const char *why; /* the mode: whose word it is */
    char notes[512]; /* what was asked for and is not granted or not understood; "" = all is */
};

/* Pure. */
void daemon_config_for_job(const struct daemon_config *c, const struct job_labels *job,
                           struct job_terms *ret);

#endif
