/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_TOLD_FILES_H
#define REKNIT_SOURCE_TOLD_FILES_H

/* The files of an attempt that nodes have told of one by one, as one reader is to read them; and
 * who has told of each, for as long as nobody has seen it: a path that is missing here may be
 * there, and one path may be as many files as there are nodes. Paths and names are hostile; how
 * many there are is bounded by whoever adds them.
 *
 * `tellers`: a list of names of nodes. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define TOLD_FILES_TELLERS_MAX 64 /* of one path; more of them make no difference */

struct told_files;

struct told_files *told_files_new(void);
struct told_files *told_files_free(struct told_files *f);

size_t told_files_count(const struct told_files *f);

/* That node has told of it (NULL: nobody has), and `here` is the node whose reader reads these
 * ("" = this host). False: it is news, and to be added. */
bool told_files_hear(struct told_files *f, const char *path, const char *node, const char *here);

/* 0; -EINVAL: the path is no text. */
int told_files_add(struct told_files *f, const char *path, json_t *tellers);

/* Those of `other` that are not among them. */
void told_files_take_over(struct told_files *f, const struct told_files *other);

/* It is there, of_node: on that node alone, so that each teller has another. Who had told of it
 * until then, NULL = nobody, or that is known; owned by the caller. */
json_t *told_files_settle(struct told_files *f, const char *path, bool of_node);

/* It is not there: forgotten, and who had told of it, likewise; NULL: it stays. */
json_t *told_files_leave(struct told_files *f, const char *path);

void told_files_clear(struct told_files *f);

/* Puts all of them into what the reader is asked (reader/serve.c). */
void told_files_ask(struct told_files *f, json_t *question);
/* Whether some came since. */
bool told_files_are_new(const struct told_files *f);

#endif
