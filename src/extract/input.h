/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_INPUT_H
#define REKNIT_EXTRACT_INPUT_H

/* A log as a stream of bytes: a file, standard input, either of them packed with gzip or zstd
 * (told by their first bytes, not by their names). */

#include "base/cleanup.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct input;

/* path "-" = standard input. Errors name the file; a folder is one. */
int input_open(const char *path, struct input **ret, struct err *e);
struct input *input_free(struct input *in);
DEFINE_CLEANUP(struct input *, input_free);

/* Bytes that will come, as far as that is known beforehand: of a plain file; else 0. */
uint64_t input_size(const struct input *in);

/* The next bytes; they stay valid until the next call. Returns 1, 0 at the end, or a negative
 * errno with text: what came before is good (a cut archive gives all that can be unpacked). What is
 * no text gives nothing: -EBADMSG. */
int input_read(struct input *in, const char **ret_data, size_t *ret_len, struct err *e);

#endif
