/* SPDX-License-Identifier: Apache-2.0 */

/* record (agent/kmsg.h) -> hits of the catalogue -> facts -> bursts (agent/troubles.h).
 *
 * A hit counts where its words are the kernel's own (extract/kernel_line.h), and only one that
 * counts keeps another silent: a process may call itself what it likes, and an Xid names it.
 *
 * Whose process a record is about, the kernel says of what it killed for lack of memory, by the
 * control group; of others the control group of the process does, if the record was written just
 * now: numbers of processes come again.
 *
 * The kernel's clock is not that of the node, and runs apart from it over weeks: what we waited for
 * has happened now. */

#include "agent/kernel_log.h"

#include "agent/kin.h"
#include "agent/kmsg.h"
#include "agent/troubles.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/proctree.h"
#include "base/str.h"
#include "base/timer.h"
#include "extract/facts.h"
#include "extract/kernel_line.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#define VICTIMS_MAX  16
#define CGROUP_BYTES 4096
#define SAY_EVERY    (60 * USEC_PER_SEC)
#define BOOT_ID      "/proc/sys/kernel/random/boot_id"

/* Whom the kernel is about to kill. */
struct victim {
    int64_t pid; /* 0 = it does not say */
    uint32_t job;
};

struct kernel_log {
    struct kernel_log_handlers handlers;
    void *ctx;
    char node[NODE_NAME_LEN];
    char *state;
    struct catalog *catalog;
    struct matcher *matcher;
    struct kmsg *kmsg;
    struct troubles *troubles;
    sd_event_source *timer;
    struct victim victims[VICTIMS_MAX];
    size_t next_victim;
    char why[sizeof(((struct node_heartbeat *)0)->kernel_trouble)]; /* it cannot be read */
    usec_t said_gap;                                                /* monotonic */
    bool unsaved;                                                   /* said */
    struct line_hit hits[LINE_HITS_MAX];
};

/* Whose process */

/* The value behind `key`, up to one of `ends`. */
static bool find_value(const char *text, const char *key, const char *ends, char *ret, size_t size)
{
    const char *at = strstr(text, key);

    if (!at)
        return false;
    at += strlen(key);
    return str_copy_n(ret, size, at, strcspn(at, ends));
}

static int64_t find_pid(const char *text, const char *key)
{
    char digits[24];
    long long pid;

    if (!find_value(text, key, ", )", digits, sizeof(digits)) || str_to_i64(digits, &pid) < 0)
        return 0;
    return pid > 0 ? pid : 0;
}

/* Of a group that Slurm made, and not a user below the own one: "/slurm/uid_7/job_42/step_0",
 * "/system.slice/slurmstepd.scope/job_42/step_0/user/task_0". */
static uint32_t job_of_group(const char *path)
{
    const char *slurm = strstr(path, "/slurm"), *stepd = strstr(path, "slurmstepd.scope/");
    uint32_t job;

    if (strstr(path, "/user.slice/") || (!slurm && !stepd))
        return 0;
    return kin_of_cgroup(stepd ? stepd : slurm, &job) ? job : 0;
}

/* The record before the one about the kill; with kernels before 5.0 without the process. */
static void note_victim(struct kernel_log *k, const char *text)
{
    struct victim v = {0};
    char path[CGROUP_BYTES];

    if (str_startswith(text, "oom-kill:constraint=") &&
        find_value(text, ",task_memcg=", ",", path, sizeof(path)))
        v = (struct victim){find_pid(text, ",pid="), job_of_group(path)};
    else if (str_startswith(text, "Task in ") &&
             find_value(text, "Task in ", " ", path, sizeof(path)))
        v = (struct victim){0, job_of_group(path)};
    if (v.job == 0)
        return;
    k->victims[k->next_victim] = v;
    k->next_victim = (k->next_victim + 1) % VICTIMS_MAX;
}

static uint32_t job_of_victim(struct kernel_log *k, int64_t pid)
{
    for (size_t i = 0; i < VICTIMS_MAX; i++) {
        struct victim *v = &k->victims[(k->next_victim + VICTIMS_MAX - 1 - i) % VICTIMS_MAX];

        if (v->job > 0 && v->pid == 0) /* it is of the kill that follows */
            v->pid = pid;
        if (v->job > 0 && v->pid == pid)
            return v->job;
    }
    return 0;
}

static uint32_t job_of_process(int64_t pid)
{
    char text[CGROUP_BYTES];
    uint32_t job;

    if (pid > INT32_MAX || proc_read_file((pid_t)pid, "cgroup", text, sizeof(text)) <= 0)
        return 0;
    return kin_of_cgroup(text, &job) ? job : 0;
}

static void find_job(struct kernel_log *k, struct node_fact *f, const char *text, bool now)
{
    struct entity *who = &f->signal.who;

    if (who->pid == 0)
        who->pid = find_pid(text, ", pid=");
    if (who->pid == 0)
        return;
    if (f->signal.cause == CAUSE_HOST_OOM)
        f->job = job_of_victim(k, who->pid);
    if (f->job == 0 && now)
        f->job = job_of_process(who->pid);
}

/* Facts */

static bool counts(const struct kmsg_record *r, const struct line_hit *hit)
{
    return kernel_line_vouches(r->text, hit->start, hit->end);
}

static bool is_silent(const struct kernel_log *k, const struct kmsg_record *r, size_t n,
                      const struct line_hit *hit)
{
    if (!hit->dropped_by)
        return hit_silence(hit, false) != SILENCE_NONE;
    for (size_t i = 0; i < n; i++)
        if (k->hits[i].entry == hit->dropped_by && counts(r, &k->hits[i]))
            return true;
    return false;
}

static usec_t time_of(const struct kmsg_record *r, bool now)
{
    usec_t wall = now_us();

    return now ? wall : usec_min(wall, wall - mono_us() + r->boot_us);
}

static void take_hit(struct kernel_log *k, const struct kmsg_record *r, bool now,
                     const struct line_hit *hit)
{
    struct line line = {.whole = r->text,
                        .whole_len = strlen(r->text),
                        .text = r->text,
                        .len = strlen(r->text),
                        .time_us = time_of(r, now),
                        .rank = RANK_NONE,
                        .local_rank = RANK_NONE,
                        .label = RANK_NONE,
                        .repeats = 1,
                        .of_system = true};
    struct node_fact f = {.count = 1};

    f.isolation = facts_isolation(k->catalog, hit, &f.code);
    f.signal = facts_from_hit(k->catalog, hit, &line, PROVENANCE_KERNEL);
    if (f.signal.kind != SIGNAL_HIT)
        return;
    STR_COPY(f.node, k->node);
    STR_COPY(f.signal.who.node, k->node);
    find_job(k, &f, r->text, now);
    if (f.isolation >= 0)
        troubles_add(k->troubles, &f, r->boot_us, mono_us());
    else if (f.signal.clears[0])
        troubles_over(k->troubles, &f, mono_us());
}

static void on_record(void *ctx, const struct kmsg_record *r, bool now)
{
    struct kernel_log *k = ctx;
    size_t n = matcher_line(k->matcher, r->text, strlen(r->text), k->hits);

    note_victim(k, r->text);
    for (size_t i = 0; i < n; i++)
        if (counts(r, &k->hits[i]) && !is_silent(k, r, n, &k->hits[i]))
            take_hit(k, r, now, &k->hits[i]);
}

static void on_gap(void *ctx, uint64_t lost)
{
    struct kernel_log *k = ctx;
    bool say = mono_us() >= k->said_gap + SAY_EVERY;
    char text[100];

    STR_PRINTF(text, "%llu records of the kernel's log were overwritten before they were read",
               (unsigned long long)lost);
    if (say)
        k->said_gap = mono_us();
    k->handlers.trouble(k->ctx, say ? text : NULL);
}

static void settle(struct kernel_log *k)
{
    usec_t due = troubles_settle(k->troubles, mono_us());
    int r = troubles_save(k->troubles, kmsg_last(k->kmsg), false);
    char text[sizeof(k->why) + 100];

    if (due != USEC_NEVER)
        timer_arm(k->timer, due);
    if (r < 0 && !k->unsaved) {
        STR_PRINTF(text, "%s: %s: after a restart things will be told twice", k->state,
                   strerror(-r));
        k->handlers.trouble(k->ctx, text);
    }
    k->unsaved = r < 0;
}

static void on_turn(void *ctx)
{
    struct kernel_log *k = ctx;
    int error = kmsg_counts(k->kmsg)->error;

    if (error != 0 && !k->why[0]) {
        STR_PRINTF(k->why, "the kernel's log can be read no more: %s", strerror(error));
        k->handlers.trouble(k->ctx, k->why);
    }
    settle(k);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    settle(userdata);
    return 0;
}

/* Small: of a catalogue of hundreds, some dozen entries are needed. */
static int load(struct kernel_log *k, struct err *e)
{
    int r = catalog_load(NULL, 0, &k->catalog, e);

    if (r < 0)
        return r;
    catalog_keep(k->catalog, LAYER_KERNEL);
    r = matcher_new(k->catalog, &k->matcher, e);
    malloc_trim(0);
    return r;
}

static void open_log(struct kernel_log *k, sd_event *event, const char *device)
{
    static const struct kmsg_handlers handlers = {
        .record = on_record, .gap = on_gap, .turn = on_turn};
    struct err e = {0};
    int64_t told = troubles_recall(k->troubles, mono_us());

    if (kmsg_open(event, device, told, &handlers, k, &k->kmsg, &e) < 0) {
        STR_PRINTF(k->why, "the kernel's log cannot be read: %s", e.text);
        k->handlers.trouble(k->ctx, k->why);
    }
}

int kernel_log_new(sd_event *event, const struct kernel_log_config *c,
                   const struct kernel_log_handlers *handlers, void *ctx, struct kernel_log **ret,
                   struct err *e)
{
    struct kernel_log *k = xnew(struct kernel_log);
    _cleanup_strbuf_ struct strbuf boot = {0};
    int r;

    k->handlers = *handlers;
    k->said_gap = -SAY_EVERY;
    k->ctx = ctx;
    k->state = c->state ? xstrdup(c->state) : NULL;
    STR_COPY(k->node, c->node);
    r = load(k, e);
    if (r == 0)
        r = file_read(BOOT_ID, 64, &boot, e);
    if (r == 0 && timer_new(event, on_timer, k, &k->timer) < 0)
        r = err_set(e, -ENOMEM, "the event loop refuses");
    if (r < 0) {
        kernel_log_free(k);
        return r;
    }
    boot.s[strcspn(boot.s, "\n")] = '\0';
    k->troubles = troubles_new(c->state, boot.s, handlers->fact, ctx);
    open_log(k, event, c->device);
    if (k->kmsg)
        settle(k);
    *ret = k;
    return 0;
}

struct kernel_log *kernel_log_free(struct kernel_log *k)
{
    if (!k)
        return NULL;
    if (k->kmsg)
        troubles_save(k->troubles, kmsg_last(k->kmsg), true);
    sd_event_source_disable_unref(k->timer);
    kmsg_free(k->kmsg);
    troubles_free(k->troubles);
    matcher_free(k->matcher);
    catalog_free(k->catalog);
    free(k->state);
    free(k);
    return NULL;
}

void kernel_log_beat(const struct kernel_log *k, struct node_heartbeat *ret)
{
    if (k->kmsg) {
        ret->kernel_records = (int64_t)kmsg_counts(k->kmsg)->records;
        ret->kernel_gaps = (int64_t)kmsg_counts(k->kmsg)->gaps;
        ret->kernel_lost = (int64_t)kmsg_counts(k->kmsg)->lost;
        ret->kernel_untold = (int64_t)troubles_untold(k->troubles);
    }
    STR_COPY(ret->kernel_trouble, k->why);
}
