/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_SIBLINGS_H
#define REKNIT_BASE_SIBLINGS_H

/* The programs that belong to the one that runs: they are found from where it is itself, so that
 * what was built for one prefix works below another, and in the build folder. */

#include <stddef.h>

/* The absolute path of that program, or plugin of another's: 0, or -ENOENT with the place where it
 * should be. */
int sibling_find(const char *name, char *ret, size_t size);

#endif
