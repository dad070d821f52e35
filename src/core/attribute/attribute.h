/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_ATTRIBUTE_ATTRIBUTE_H
#define REKNIT_CORE_ATTRIBUTE_ATTRIBUTE_H

/* Evidence of one attempt, gathered signal by signal in bounded memory, and the judgement on it.
 * The same two functions serve a dead log (`reknit diagnose`) and a live attempt. */

#include "base/cleanup.h"
#include "core/model/incident.h"

struct evidence;

struct evidence *evidence_new(void);
struct evidence *evidence_free(struct evidence *e);
DEFINE_CLEANUP(struct evidence *, evidence_free);

/* In the order in which the source wrote them, per file. */
void evidence_add(struct evidence *e, const struct signal *s);

/* Not all that was written could be read; what is missing may tell anything. */
void evidence_add_gap(struct evidence *e);

enum ending {
    ENDING_UNKNOWN,   /* a log alone: it may have ended or still be running */
    ENDING_EXITED,    /* the job's process ended; evidence holds its SIGNAL_EXIT */
    ENDING_HUNG,      /* a live detector found that it stopped making progress */
    ENDING_REQUESTED, /* somebody asked for the end: the user, or a scheduler whatever it is for */
    ENDING_BY_USER,   /* the user asked for it, at the keyboard */
    ENDING_MAX,
    ENDING_INVALID = -EINVAL,
};

/* Judges what has been gathered. Pure: may be called at any time, again after more evidence. */
void attribute(const struct evidence *e, enum ending ending, struct incident *ret);

/* The same of an attempt that had this node alone, by its scheduler's word; "" = it had others, or
 * that is not known. */
void attribute_on_node(const struct evidence *e, enum ending ending, const char *node,
                       struct incident *ret);

/* As attribute(), and the node on which it failed first, which blames nobody; "" unknown, or the
 * only one.
 */
void attribute_scene(const struct evidence *e, enum ending ending, struct incident *ret,
                     char ret_node[NODE_NAME_LEN]);

#endif
