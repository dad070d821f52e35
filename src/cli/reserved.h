/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_RESERVED_H
#define REKNIT_CLI_RESERVED_H

#include <jansson.h>
#include <stdbool.h>

/* Whether the reservation (as the adapter lists it) is Reknit's, and the job whose nodes it keeps
 * has no use for it any more: it runs again, or will not. */
bool reservation_is_stale(const json_t *reservation, const json_t *jobs);

#endif
