/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_STATE_LOG_NAMES_H
#define REKNIT_CORE_STATE_LOG_NAMES_H

/* The paths of an attempt's files, by the numbers that signals have. */

#include "base/vec.h"
#include "core/model/event.h"

#define LOG_NAMES_MAX 1024

struct log_name {
    uint32_t file;
    char *path;
};

typedef VEC(struct log_name) log_names;

void log_names_done(log_names *list);
/* A number that is given to a second path names neither from then on. False: there is no room. */
bool log_names_add(log_names *list, const struct log_facts *f);
/* Whether adding it would make a difference. */
bool log_names_lack(const log_names *list, const struct log_facts *f);
/* Fills in the paths that are known of its lines, of the first of them. */
void log_names_tell(const log_names *list, struct incident *in);

#endif
