/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_ACTION_CGROUP_H
#define REKNIT_ACTION_CGROUP_H

/* A cgroup v2 folder for one attempt, where this process may make one: then all of the attempt
 * can be killed in one step (Linux 5.14). Without it everything still works, by /proc. */

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_PATH_MAX 512

/* Makes NAME ("reknit-...") below this process's own cgroup; "" in ret_path when that is not
 * possible. Removes what is empty and was left there by runs that were killed. */
void cgroup_create(const char *name, char ret_path[CGROUP_PATH_MAX]);

/* Removes it when it is empty, with the groups that the job may have made below it. */
void cgroup_remove(const char *path);

/* Whether a process is in it, or in one below it. */
bool cgroup_is_populated(const char *path);

/* Kills everything in it; harmless with "" or a path that is gone. */
void cgroup_kill(const char *path);

#endif
