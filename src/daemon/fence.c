/* SPDX-License-Identifier: Apache-2.0 */

/* A node that does not answer may still run what it ran. Whether it is off, or cut off from all
 * that matters, only the site can say: by a program of its own, of which status 0 means that
 * nothing runs there any more. It may power the node off first. Where the node's own agent is still
 * heard, and says that nothing of the job is left, nobody needs to be asked. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct fencing {
    struct daemon *d;
    struct event intent;
};

/* Unless it answers again by now. */
static void tell_fenced(struct fencing *f)
{
    struct event e = {.kind = EVENT_FENCED, .attempt = f->intent.attempt};
    const struct job *j = model_job(pump_model(f->d->pump), f->intent.job);

    STR_COPY(e.job, f->intent.job);
    STR_COPY(e.fenced.node, f->intent.intended.nodes[0]);
    STR_COPY(e.fenced.by, "the fence command");
    if (j && streq(j->sched.look.lost_node, e.fenced.node))
        pump_input(f->d->pump, &e);
    sched_watch_poke(f->d->sched);
}

static void on_answer(void *ctx, int status, const char *how)
{
    struct fencing *f = ctx;

    if (status == 0)
        tell_fenced(f);
    act_report(f->d, &f->intent, status == 0 ? OUTCOME_DONE : OUTCOME_FAILED, how);
    free(f);
}

void fence_start(struct daemon *d, const struct event *intent)
{
    struct fencing *f;
    int r;

    if (node_watch_fences(d->nodes, intent->job, intent->intended.nodes[0])) {
        act_report(d, intent, OUTCOME_DONE, "its agent says that nothing is left there");
        return;
    }
    if (d->config->fence.n == 0) {
        act_report(d, intent, OUTCOME_FAILED,
                   "there is no fence command; the job waits until the node answers, or somebody "
                   "approves its restart");
        return;
    }
    f = xnew(struct fencing);
    f->d = d;
    f->intent = *intent;
    r = site_ask(d, &d->config->fence, "the fence command", intent->intended.nodes[0], on_answer,
                 f);
    if (r >= 0)
        return;
    act_report(d, intent, OUTCOME_FAILED, strerror(-r));
    free(f);
}
