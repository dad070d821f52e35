/* SPDX-License-Identifier: Apache-2.0 */

/* A node that does not answer may still run what it ran. Whether it is off, or cut off from all
 * that matters, only the site can say: by a program of its own, of which status 0 means that
 * nothing runs there any more. It is run without a shell; where its arguments say {node}, that is
 * the node. It may power the node off first. Where the node's own agent is still heard, and says
 * that nothing of the job is left, nobody needs to be asked. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/sig.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE (60 * USEC_PER_SEC)
#define NODE     "{node}"

struct fencing {
    struct daemon *d;
    struct event intent;
    pid_t pid;
    sd_event_source *child, *timer;
    bool late;
};

static struct fencing *fencing_free(struct fencing *f)
{
    sd_event_source_disable_unref(f->child);
    sd_event_source_disable_unref(f->timer);
    free(f);
    return NULL;
}

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

static int on_child_exit(sd_event_source *s, const siginfo_t *si, void *ctx)
{
    struct fencing *f = ctx;
    bool fenced = !f->late && si->si_code == CLD_EXITED && si->si_status == 0;
    char why[96], name[SIG_NAME_LEN];

    if (fenced)
        tell_fenced(f);
    if (f->late)
        STR_PRINTF(why, "the fence command did not end in time");
    else if (si->si_code == CLD_EXITED)
        STR_PRINTF(why, "the fence command ended with status %d", si->si_status);
    else
        STR_PRINTF(why, "the fence command was killed by %s", sig_name(si->si_status, name));
    act_report(f->d, &f->intent, fenced ? OUTCOME_DONE : OUTCOME_FAILED, why);
    fencing_free(f);
    return 0;
}

static int on_late(sd_event_source *s, uint64_t t, void *ctx)
{
    struct fencing *f = ctx;

    f->late = true;
    spawn_kill(f->pid); /* and the ipmitool that it waits for */
    return 0;
}

static char *with_node(const char *arg, const char *node)
{
    const char *at = strstr(arg, NODE);

    return at ? xasprintf("%.*s%s%s", (int)(at - arg), arg, node, at + strlen(NODE)) : xstrdup(arg);
}

static int start(struct fencing *f)
{
    const struct command *c = &f->d->config->fence;
    char *argv[COMMAND_ARGS_MAX + 1] = {NULL};
    int r;

    for (unsigned i = 0; i < c->n; i++)
        argv[i] = with_node(c->argv[i], f->intent.intended.nodes[0]);
    r = spawn_program(argv, -1, &f->pid);
    for (unsigned i = 0; i < c->n; i++)
        free(argv[i]);
    return r;
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
    r = start(f);
    if (r >= 0)
        r = sd_event_add_child(d->event, &f->child, f->pid, WEXITED, on_child_exit, f);
    if (r >= 0)
        r = timer_new(d->event, on_late, f, &f->timer);
    if (r >= 0) {
        timer_arm(f->timer, mono_us() + PATIENCE);
        return;
    }
    act_report(d, intent, OUTCOME_FAILED, strerror(-r));
    fencing_free(f);
}
