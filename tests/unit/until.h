/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_UNTIL_H
#define REKNIT_TESTS_UNTIL_H

#include "base/time.h"

#include <sched.h>

/* Takes `step` again and again until `condition` holds; fails after a minute. Include cmocka.h
 * before. */
#define UNTIL(condition, step)                                                                     \
    do {                                                                                           \
        usec_t until_end = mono_us() + USEC_PER_MIN;                                               \
        while (!(condition)) {                                                                     \
            assert_true(mono_us() < until_end);                                                    \
            step;                                                                                  \
        }                                                                                          \
    } while (0)

#endif
