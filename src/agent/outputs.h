/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_OUTPUTS_H
#define REKNIT_AGENT_OUTPUTS_H

/* Which files the processes of attempts write their output to. None of them is ever opened here. */

#include "agent/attempt_id.h"
#include "base/str.h"
#include "wire/node_message.h"

#include <sys/types.h>

#define OUTPUTS_MAX 64 /* files of an attempt that are told */

struct outputs;

/* Files that were not told yet. Whether they could be told; else they come again. */
typedef bool (*outputs_fn)(void *ctx, const struct attempt_id *whose, const struct node_paths *p);

struct outputs *outputs_new(outputs_fn fn, void *ctx);
struct outputs *outputs_free(struct outputs *o);

/* A process of the attempt, to be looked at. */
void outputs_ask(struct outputs *o, const struct attempt_id *whose, pid_t pid);
/* Looks at those that were asked for; of each attempt, the files that most of them write to are
 * told first. It takes a second at most. */
void outputs_look(struct outputs *o);

/* All is told again by the next look. */
void outputs_repeat(struct outputs *o);
void outputs_forget(struct outputs *o, const struct attempt_id *whose);

/* Its files, each with its NUL. As outputs_look() has it read aside. */
int outputs_read(pid_t pid, struct strbuf *ret);

#endif
