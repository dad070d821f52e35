/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_SPAWN_H
#define REKNIT_BASE_SPAWN_H

/* Programs that run as we do, ours or the site's. Each is a process group, for it may start others,
 * and has no signal blocked or ignored. What is not close-on-exec it inherits. */

#include <sys/types.h>

/* argv ends with NULL; argv[0] is a path, or a name that is sought in PATH. standard: its standard
 * input and output, -1 = ours. Negative errno. */
int spawn_program(char *const argv[], int standard, pid_t *ret);

/* SIGKILL, also to what it has started. It must not have been waited for. */
void spawn_kill(pid_t pid);

#endif
