/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_STATES_H
#define REKNIT_TESTS_STATES_H

#include "core/core.h"

/* "" or what differs between the states of the two. */
const char *states_differ(const struct core *a, const struct core *b);

#endif
