/* SPDX-License-Identifier: Apache-2.0 */

/* When the last slurmstepd of an attempt is gone, every process of the machine is looked at for
 * whether it is of that job (agent/kin.h); once there is none, it is gone. That somebody else's
 * process is taken for one of the job does little harm, the other way would: so one that was seen
 * below slurmstepd counts until it ends, one that cannot be read counts for the jobs of its user,
 * and a look that was not whole counts for nothing. What is below a slurmstepd that lives is of
 * that one's attempt, and keeps no earlier attempt of the job alive. */

#include "agent/attempts.h"

#include "agent/kin.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD       "reknit-attempts 1\n"
#define GUESTS_MAX 1024
#define GUEST_FOR  (15 * USEC_PER_MIN) /* logs of what has ended are read to their ends */

struct attempt {
    struct attempt_id id;
    struct proc_list seen; /* below its slurmstepds, when these were last looked at */
    bool lives;            /* by the present look */
    bool active;           /* ... and not by somebody who may be of it and exits */
    uint64_t left;         /* as struct proc has it: who exits and began later is not of it; 0 */
};

/* Of an attempt that is gone. */
struct guest {
    uid_t user;
    usec_t left; /* monotonic */
};

struct attempts {
    char *node;
    char *path; /* NULL = they are not kept */
    struct attempts_asks asks;
    void *ctx;
    VEC(struct attempt) list;
    VEC(struct guest) guests; /* oldest first */
};

static struct attempt *find(const struct attempts *l, const struct attempt_id *id)
{
    VEC_FOREACH (&l->list, a) {
        if (attempt_id_is(&a->id, id))
            return a;
    }
    return NULL;
}

/* The file */

/* Where that fails, the file keeps the attempts of before. */
static void keep(const struct attempts *l)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    if (!l->path)
        return;
    strbuf_adds(&text, HEAD);
    VEC_FOREACH (&l->list, a)
        strbuf_addf(&text, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", a->id.job, a->id.restart,
                    (uint32_t)a->id.user);
    file_replace(AT_FDCWD, l->path, text.s, text.len);
}

/* Whether it is in the list now. */
static bool add(struct attempts *l, const struct attempt_id *id)
{
    if (find(l, id))
        return true;
    if (l->list.n >= ATTEMPTS_MAX)
        return false;
    *VEC_PUSH(&l->list) = (struct attempt){.id = *id};
    return true;
}

void attempts_recall(struct attempts *l)
{
    _cleanup_(fclosep) FILE *f = l->path ? fopen(l->path, "re") : NULL;
    char line[64];
    uint32_t job, restart, user;

    if (!f || !fgets(line, sizeof(line), f) || !streq(line, HEAD))
        return;
    while (fgets(line, sizeof(line), f) &&
           sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32, &job, &restart, &user) == 3 && job > 0)
        add(l, &(struct attempt_id){job, restart, (uid_t)user});
}

bool attempts_add(struct attempts *l, const struct attempt_id *id)
{
    size_t before = l->list.n;
    bool there = add(l, id);

    if (l->list.n > before)
        keep(l);
    return there;
}

size_t attempts_count(const struct attempts *l)
{
    return l->list.n;
}

bool attempts_find_last(const struct attempts *l, struct attempt_id *id)
{
    bool found = false;

    VEC_FOREACH (&l->list, a) {
        if (a->id.job == id->job && a->id.user == id->user &&
            (!found || a->id.restart > id->restart)) {
            id->restart = a->id.restart;
            found = true;
        }
    }
    return found;
}

/* Their users */

static void note_guest(struct attempts *l, uid_t user)
{
    for (size_t i = 0; i < l->guests.n; i++)
        if (l->guests.v[i].user == user) {
            VEC_REMOVE(&l->guests, i);
            break;
        }
    if (l->guests.n >= GUESTS_MAX)
        VEC_REMOVE(&l->guests, 0);
    *VEC_PUSH(&l->guests) = (struct guest){.user = user, .left = mono_us()};
}

bool attempts_has_user(const struct attempts *l, uid_t user)
{
    VEC_FOREACH (&l->list, a)
        if (a->id.user == user)
            return true;
    VEC_FOREACH (&l->guests, g)
        if (g->user == user && mono_us() < g->left + GUEST_FOR)
            return true;
    return false;
}

/* What is left of those without a step */

static bool is_seen(const struct attempt *a, const struct proc *p)
{
    VEC_FOREACH (&a->seen.procs, s)
        if (s->pid == p->pid && s->start == p->start)
            return true;
    return false;
}

void attempts_add_seen(struct attempts *l, const struct attempt_id *id,
                       const struct proc_list *list)
{
    struct attempt *a = find(l, id);

    VEC_FOREACH (&list->procs, p) {
        if (a && !is_seen(a, p))
            *VEC_PUSH(&a->seen.procs) = *p;
    }
}

static bool may_be_of_user(uid_t user, const struct proc *p)
{
    uid_t owner;
    int r = kin_user(p->pid, &owner);

    return r < 0 ? !proc_is_absence(r) : owner == user;
}

/* Somebody always exits, so of those only such count as began before the last process that was of
 * the attempt beyond doubt was gone: who began later was begun by none of it. */
static bool may_be_of(const struct attempt *a, const struct proc *p, const struct kin_fact *f)
{
    switch (f->kin) {
    case KIN_JOB:
        return f->job == a->id.job;
    case KIN_EXITING:
        return p->start <= a->left && may_be_of_user(a->id.user, p);
    case KIN_UNKNOWN:
        return may_be_of_user(a->id.user, p);
    case KIN_NONE:
        break;
    }
    return false;
}

static void on_kin(void *ctx, const struct proc *p, const struct kin_fact *f)
{
    struct attempts *l = ctx;

    VEC_FOREACH (&l->list, a) {
        if (a->active || !may_be_of(a, p, f))
            continue;
        a->lives = true;
        a->active = f->kin != KIN_EXITING;
    }
}

/* Those that are left of what was seen of it. */
static bool sift_seen(struct attempt *a)
{
    size_t kept = 0;

    VEC_FOREACH (&a->seen.procs, p)
        if (proc_lives(p) != 0)
            a->seen.procs.v[kept++] = *p;
    a->seen.procs.n = kept;
    return kept > 0;
}

/* -EAGAIN: all have steps, or such. */
static int mark_living(struct attempts *l)
{
    bool any = false;

    VEC_FOREACH (&l->list, a) {
        if (a->active || a->left == 0)
            a->left = proc_clock();
        a->active = l->asks.has_step(l->ctx, &a->id);
        a->active = sift_seen(a) || a->active;
        a->lives = a->active;
        any |= !a->lives;
    }
    return any ? 0 : -EAGAIN;
}

static int look_for_kin(struct attempts *l)
{
    _cleanup_proc_list_ struct proc_list all = {0}, others = {0};
    int r = proc_list_all(&all);

    if (r < 0)
        return r;
    if (all.hidden > 0)
        return -EPERM;
    VEC_FOREACH (&all.procs, p) {
        if (!l->asks.is_of_step(l->ctx, &all, p))
            *VEC_PUSH(&others.procs) = *p;
    }
    kin_look(&others, l->node, false, on_kin, l);
    return 0;
}

static void forget(struct attempts *l, size_t i)
{
    note_guest(l, l->list.v[i].id.user);
    proc_list_done(&l->list.v[i].seen);
    VEC_REMOVE(&l->list, i);
}

void attempts_look(struct attempts *l, attempts_gone_fn gone)
{
    size_t before = l->list.n;

    if (mark_living(l) < 0)
        return;
    if (look_for_kin(l) < 0) {
        VEC_FOREACH (&l->list, a)
            a->active = true; /* for all we know */
        return;
    }
    for (size_t i = l->list.n; i-- > 0;) {
        struct attempt_id id = l->list.v[i].id;

        if (l->list.v[i].lives)
            continue;
        forget(l, i);
        gone(l->ctx, &id);
    }
    if (l->list.n < before)
        keep(l);
}

struct attempts *attempts_new(const char *node, const char *path, const struct attempts_asks *asks,
                              void *ctx)
{
    struct attempts *l = xnew(struct attempts);

    l->node = xstrdup(node);
    l->path = path ? xstrdup(path) : NULL;
    l->asks = *asks;
    l->ctx = ctx;
    return l;
}

struct attempts *attempts_free(struct attempts *l)
{
    if (!l)
        return NULL;
    VEC_FOREACH (&l->list, a)
        proc_list_done(&a->seen);
    VEC_DONE(&l->list);
    VEC_DONE(&l->guests);
    free(l->node);
    free(l->path);
    free(l);
    return NULL;
}
