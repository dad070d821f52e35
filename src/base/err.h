/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_ERR_H
#define REKNIT_BASE_ERR_H

/* What went wrong, for a person. Functions return a negative errno; those on parsing and action
 * paths also take an optional `struct err *` and put the text there. The text names the thing
 * (file, line, key), says what to do, and is printable whatever it names. */

#include <stddef.h>

struct err {
    int code; /* negative errno, 0 = none */
    char text[480];
};

/* Fills e (may be NULL) and returns code, so that `return err_set(e, -EINVAL, ...)` reads well. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text that is there; returns e->code, or code when e is NULL. */
int err_prefix(struct err *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "; suffix" behind the text, which gives way where both are too long: what a person can do.
 */
int err_suffix(struct err *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
