/* SPDX-License-Identifier: Apache-2.0 */

/* What only the site can say of a node, a program of its own says: whether it is off, or well. It
 * is run without a shell; where its arguments say {node}, that is the node. Its status is the
 * answer; one that takes too long, or is killed, gives none. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/sig.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/timer.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define PATIENCE (60 * USEC_PER_SEC)
#define NODE     "{node}"

struct asked {
    const char *name; /* of the command, in words */
    site_answer_fn *fn;
    void *ctx;
    pid_t pid;
    sd_event_source *child, *timer;
    bool late;
};

static struct asked *asked_free(struct asked *a)
{
    sd_event_source_disable_unref(a->child);
    sd_event_source_disable_unref(a->timer);
    free(a);
    return NULL;
}

static int on_child_exit(sd_event_source *s, const siginfo_t *si, void *ctx)
{
    struct asked *a = ctx;
    bool ended = !a->late && si->si_code == CLD_EXITED;
    char how[96], name[SIG_NAME_LEN];

    if (a->late)
        STR_PRINTF(how, "%s did not end in time", a->name);
    else if (ended)
        STR_PRINTF(how, "%s ended with status %d", a->name, si->si_status);
    else
        STR_PRINTF(how, "%s was killed by %s", a->name, sig_name(si->si_status, name));
    a->fn(a->ctx, ended ? si->si_status : -1, how);
    asked_free(a);
    return 0;
}

static int on_late(sd_event_source *s, uint64_t t, void *ctx)
{
    struct asked *a = ctx;

    a->late = true;
    spawn_kill(a->pid); /* and the ipmitool that it waits for */
    return 0;
}

/* Wherever it says so; what a node's name says is not looked at again. */
static char *with_node(const char *arg, const char *node)
{
    char *ret = xstrdup(arg);

    for (const char *at = ret; (at = strstr(at, NODE));) {
        size_t before = (size_t)(at - ret);
        char *longer = xasprintf("%.*s%s%s", (int)before, ret, node, at + strlen(NODE));

        free(ret);
        ret = longer;
        at = ret + before + strlen(node);
    }
    return ret;
}

static int start(struct asked *a, const struct command *c, const char *node)
{
    char *argv[COMMAND_ARGS_MAX + 1] = {NULL};
    int r;

    for (unsigned i = 0; i < c->n; i++)
        argv[i] = with_node(c->argv[i], node);
    r = spawn_program(argv, -1, &a->pid);
    for (unsigned i = 0; i < c->n; i++)
        free(argv[i]);
    return r;
}

int site_ask(struct daemon *d, const struct command *c, const char *name, const char *node,
             site_answer_fn *fn, void *ctx)
{
    struct asked *a = xnew(struct asked);
    int r;

    a->name = name;
    a->fn = fn;
    a->ctx = ctx;
    r = start(a, c, node);
    if (r >= 0)
        r = sd_event_add_child(d->event, &a->child, a->pid, WEXITED, on_child_exit, a);
    if (r >= 0)
        r = timer_new(d->event, on_late, a, &a->timer);
    if (r < 0) {
        if (a->pid > 0) { /* nobody would hear how it ends */
            spawn_kill(a->pid);
            waitpid(a->pid, NULL, 0);
        }
        asked_free(a);
        return r;
    }
    timer_arm(a->timer, mono_us() + PATIENCE);
    return 0;
}
