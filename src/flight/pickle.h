/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_FLIGHT_PICKLE_H
#define REKNIT_FLIGHT_PICKLE_H

/* Python's pickles (protocols 0 to 5; Lib/pickletools.py is their description), as far as they are
 * data. Whatever would look up a name, call something, or ask for an object from elsewhere is
 * refused by its opcode: this reader has no way to run anything. */

#include "flight/tree.h"

#define PICKLE_STACK_MAX (1U << 20)
#define PICKLE_MEMO_MAX  (4U << 20)

/* -EBADMSG (broken or cut short), -EPERM (not data), -E2BIG; e names the opcode and its place.
 * Adds to t; ret is within it. */
int pickle_read(const char *data, size_t len, struct tree *t, struct tree_value *ret,
                struct err *e);

#endif
