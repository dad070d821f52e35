/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_HOSTLIST_H
#define REKNIT_BASE_HOSTLIST_H

/* Compressed lists of hosts as schedulers write them: "n[1-4,7],gpu-a[01-12]-r[0-1],login". */

#include <stdbool.h>

/* Whether the list names the host. What is no list names nobody. */
bool hostlist_has(const char *list, const char *name);

#endif
