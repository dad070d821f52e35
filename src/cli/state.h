/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_STATE_H
#define REKNIT_CLI_STATE_H

/* Where jobs leave their traces: ROOT/NAME/{lock,journal.db,run-N/}. ROOT is $REKNIT_STATE_DIR, or
 * $XDG_STATE_HOME/reknit, or ~/.local/state/reknit. */

#include "base/err.h"
#include "core/model/event.h"

#include <limits.h>
#include <stdbool.h>

/* Letters, digits, "._-+@", not beginning with a dot or dash: a folder name, safe to type. */
bool state_name_is_valid(const char *name);

/* "train.py-1a2b3c" of the script and of a hash over folder and command. */
void state_default_name(char *const *argv, char ret[JOB_NAME_LEN]);

int state_root(char ret[PATH_MAX], struct err *e);
int state_journal_path(const char *name, char ret[PATH_MAX], struct err *e);

/* printf into a path; -ENAMETOOLONG, and what e says then is about the state folder. */
int state_path(char ret[PATH_MAX], struct err *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* mkdir -p, for this user alone. An error too when nothing can be written there. */
int state_make_folders(const char *path, struct err *e);

/* Calls fn for the name of each job that has a journal, sorted. */
int state_each_job(int (*fn)(void *ctx, const char *name), void *ctx, struct err *e);

#endif
