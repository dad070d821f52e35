/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_HOSTLIST_H
#define REKNIT_BASE_HOSTLIST_H

/* Compressed lists of hosts as schedulers write them: "n[1-4,7],gpu-a[01-12]-r[0-1],login". */

#include <stdbool.h>
#include <stddef.h>

/* Whether the list names the host. What is no list names nobody. */
bool hostlist_has(const char *list, const char *name);

/* Copies as much of the list as fits and is still a list. Where something is missing, it ends with
 * an element "...": whom it does not name may have been on it. size > 8. */
void hostlist_copy(char *dst, size_t size, const char *list);
bool hostlist_is_cut(const char *list);

#endif
