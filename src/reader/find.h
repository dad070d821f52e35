/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_FIND_H
#define REKNIT_READER_FIND_H

/* Which files a path with wild places (pattern.h) stands for. */

#include <stdbool.h>
#include <stddef.h>

typedef void (*find_fn)(void *ctx, const char *path);

#define FIND_ENTRIES_MAX 200000 /* names of folders that one search looks at */

/* Tells the existing ones in order of their names, `max` of them at most; fewer where the folders
 * are too large. Whether that was all. */
bool find_files(const char *path, size_t max, find_fn fn, void *ctx);

/* Tells each folder that a new file of the path could appear in and that exists. */
void find_folders(const char *path, size_t max, find_fn fn, void *ctx);

/* Whether the folder in which the search begins is there, or may be: that it cannot be seen says
 * nothing. */
bool find_has_folder(const char *path);

#endif
