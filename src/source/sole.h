/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_SOLE_H
#define REKNIT_SOURCE_SOLE_H

/* One reknitd alone works for a cluster on this host, whatever folders its state lies in. Which
 * cluster it is, the adapter's answer to `config` says: by its name and where its controller is. */

#include "base/cleanup.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct sole;

struct sole_holder {
    pid_t pid; /* 0 = of another pid namespace */
    uid_t uid;
};

/* Claims the cluster until it is freed, or the process ends in any way. -EBUSY: another one has it,
 * and e says who, and what to do. A cluster without a name cannot be claimed: that succeeds, too.
 */
int sole_claim(sd_event *event, const json_t *config, struct sole **ret, struct err *e);
struct sole *sole_free(struct sole *s);
DEFINE_CLEANUP(struct sole *, sole_free);

/* Whether it is the cluster that was claimed. */
bool sole_is_of(const struct sole *s, const json_t *config);

/* Who has claimed it, at most `max` of them; how many these are, or a negative errno. */
int sole_holders(const json_t *config, struct sole_holder *ret, unsigned max, struct err *e);

#endif
