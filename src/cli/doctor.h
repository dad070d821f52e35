/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_DOCTOR_H
#define REKNIT_CLI_DOCTOR_H

/* reknit doctor: the links of the chain, one after the other. Each adds rows; what it cannot test
 * because another link is broken, it says. */

#include "base/vec.h"
#include "config/daemon_file.h"
#include "source/sole.h"

#include <jansson.h>

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_SKIP, /* not there, or could not be tested; no fault by itself */
    DOCTOR_WARN,
    DOCTOR_FAIL,
    DOCTOR_MAX,
    DOCTOR_INVALID = -EINVAL,
};
DECLARE_NAMES(doctor_state, enum doctor_state);

struct doctor_row {
    const char *name;
    enum doctor_state state;
    char found[480], mend[320]; /* printable; mend: "" = nothing is to be done */
};

struct doctor {
    const char *config_path;
    struct daemon_config *config; /* the default where it is not sound */
    VEC(struct doctor_row) rows;
    /* Which reknitds of this host work for the cluster, as far as that was seen. */
    struct sole_holder holders[4];
    int n_holders;
};

/* mend: what to do about it, NULL for nothing. */
void doctor_row(struct doctor *d, enum doctor_state state, const char *name, const char *mend,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

void doctor_here(struct doctor *d);   /* of this host: programs, users, state, MUNGE, plugin */
void doctor_slurm(struct doctor *d);  /* the adapter, and what it says of the scheduler */
void doctor_daemon(struct doctor *d); /* reknitd, and what it says of itself */

/* Whether each job's log can be read as its owner; jobs: as the adapter lists them. */
void doctor_logs(struct doctor *d, const json_t *jobs);

#endif
