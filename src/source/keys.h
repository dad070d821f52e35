/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_KEYS_H
#define REKNIT_SOURCE_KEYS_H

/* What the user types, on its way to the job's pseudo-terminal. */

#include "source/terminal.h"

#include <systemd/sd-event.h>

struct keys;

/* The terminal must be interactive; all borrowed. NULL when the loop refuses. */
struct keys *keys_new(sd_event *event, const struct terminal *t, int master);
struct keys *keys_free(struct keys *k);

#endif
