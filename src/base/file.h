/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_FILE_H
#define REKNIT_BASE_FILE_H

/* Files that a person named: configuration, keys, tokens. And files of our own that hold a state.
 */

#include "base/err.h"
#include "base/str.h"

/* For reading, at once: what would be waited for (a FIFO) or has no end (a device) is refused with
 * -EINVAL; of devices only the null device is taken, as a file that says nothing. The descriptor,
 * or a negative errno and e says "PATH: why". */
int file_open(const char *path, struct err *e);

/* Whether the open file is the one that has that name now; not through a link. */
bool file_has_name(int fd, const char *path);

/* All of such a file, at most max bytes. -EFBIG: it is larger, and out holds its beginning. */
int file_read(const char *path, size_t max, struct strbuf *out, struct err *e);

/* In one step the file holds that text instead of what it held; on failure (negative errno) what it
 * held. Of a folder that is open, or AT_FDCWD and a path. Another file beside it, NAME.new, is used
 * up. It is not waited for the disk. */
int file_replace(int folder, const char *name, const char *text, size_t len);

#endif
