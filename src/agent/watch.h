/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_WATCH_H
#define REKNIT_AGENT_WATCH_H

/* The steps of jobs on this node, and what their processes do: looked at now and then, and only
 * while there are any. */

#include "base/cleanup.h"
#include "wire/node_message.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

#define WATCH_STEPS_MAX 2048

struct watch_handlers {
    /* Worth telling now. false: it could not be told. */
    bool (*activity)(void *ctx, const struct node_message *m);
    bool (*logs)(void *ctx, const struct node_message *m);
    void (*gone)(void *ctx, const struct node_message *m); /* must be told */
};

struct watch;

/* node: our name. path: a file for the attempts that are not gone yet, or NULL. every: how often to
 * look. NULL when the loop refuses. */
struct watch *watch_new(sd_event *event, const char *node, const char *path, usec_t every,
                        const struct watch_handlers *handlers, void *ctx);
struct watch *watch_free(struct watch *w);
DEFINE_CLEANUP(struct watch *, watch_free);

/* A task was started. */
void watch_task(struct watch *w, const struct node_message *m);

/* Takes up the attempts of the file, and the steps that run already, as slurmstepd's processes show
 * them. */
void watch_recover(struct watch *w);

/* Whoever listens may have missed what was told: logs, and ranks that are stopped, blocked or dead,
 * are told again. */
void watch_repeat(struct watch *w);

/* Whether a job of that user runs here, or did so within the last minutes. */
bool watch_has_user(const struct watch *w, uid_t user);

size_t watch_count(const struct watch *w);
uint64_t
watch_missed(const struct watch *w); /* steps that are not watched: too many, or nameless */

#endif
