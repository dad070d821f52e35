/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_TROUBLES_H
#define REKNIT_AGENT_TROUBLES_H

/* What the kernel's log has told of this node: what belongs together is told once, and that it is
 * over only of what was told. A file keeps it, so that nothing is told twice after a restart. */

#include "core/model/node.h"

/* Records of the same signature, code, device, other end and job that are no further apart are one
 * burst: told with the first, and again with how many there were when it is over. */
#define BURST_APART  (15 * USEC_PER_SEC)
#define TROUBLES_MAX 128

typedef void (*troubles_tell_fn)(void *ctx, const struct node_fact *f);

struct troubles;

/* path: of the file, NULL = none. boot: names the machine's boot: troubles of another are none. */
struct troubles *troubles_new(const char *path, const char *boot, troubles_tell_fn tell, void *ctx);
struct troubles *troubles_free(struct troubles *t);

/* Takes up what the file holds; now: monotonic. Returns the number of the last record that it is
 * about, -1 = none. */
int64_t troubles_recall(struct troubles *t, usec_t now);

/* A record says so. boot_us: its own clock, by which it is apart from others. */
void troubles_add(struct troubles *t, const struct node_fact *f, usec_t boot_us, usec_t now);
/* A record says that what f->signal.clears names is over. Told once the burst is. */
void troubles_over(struct troubles *t, const struct node_fact *f, usec_t now);

/* Ends what is due; when to come again, USEC_NEVER = not before something is added. */
usec_t troubles_settle(struct troubles *t, usec_t now);

/* Writes the file where there is news since it was written; `always`: in any case. seq: the last
 * record that was read. */
int troubles_save(struct troubles *t, int64_t seq, bool always);

uint64_t troubles_untold(const struct troubles *t); /* too many at once, and none of the least */

#endif
