/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_NODE_READERS_H
#define REKNIT_SOURCE_NODE_READERS_H

/* Readers of logs on compute nodes, which the nodes' agents start. To who talks to one it is like a
 * child (source/children.h), but that after started() its socket is all there is of it. */

#include "source/children.h"

struct node_readers;
struct node_reader;

/* ask: sends the question; 0, or a negative errno with why. */
typedef int (*node_readers_ask_fn)(void *ctx, const char *node, int64_t question, uid_t uid,
                                   gid_t gid, struct err *e);

/* NULL when the loop refuses. */
struct node_readers *node_readers_new(sd_event *event);
struct node_readers *node_readers_free(struct node_readers *all);

/* Who can ask; until then nothing can be. */
void node_readers_connect(struct node_readers *all, node_readers_ask_fn ask, void *ctx);

/* Never NULL; as child_start(). Either started() is called, and then nothing more, or ended(). In
 * both cases the pointer is gone then. */
struct node_reader *node_reader_start(struct node_readers *all, const char *node, uid_t uid,
                                      gid_t gid, const struct child_handlers *handlers, void *ctx);
struct node_reader *node_reader_drop(struct node_reader *r);

/* The answer. fd -1: there is none, and why. Takes the fd over. */
void node_readers_answer(struct node_readers *all, const char *node, int64_t question, int fd,
                         const char *trouble);
/* Whoever was asked there will not answer. */
void node_readers_lost(struct node_readers *all, const char *node, const char *why);

#endif
