/* SPDX-License-Identifier: Apache-2.0 */

/* What was told and is not over is in a file, so that a restart of the agent neither tells it again
 * nor forgets to tell that it is over. Of another boot nothing counts: reknitd has a node that was
 * booted anew looked at, and what is still wrong is told again. */

#include "agent/probing.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/timer.h"
#include "probe/judge.h"
#include "probe/look.h"
#include "wire/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ARGV_MAX 12
/* It gives up what hangs by itself; this is for when it hangs itself, on a dead disk. */
#define PATIENCE  (10 * USEC_PER_SEC)
#define FIRST     USEC_PER_SEC
#define BOOT_ID   "/proc/sys/kernel/random/boot_id"
#define STATE_MAX (4U << 20)
#define VERSION   1

struct probing {
    sd_event *event;
    struct probing_config config;
    probing_fn fact;
    void *ctx;
    struct judge *judge;
    struct lines *lines; /* NULL = no look is under way */
    pid_t pid;           /* 0 = none, or reaped */
    usec_t began;
    char deadline[32];
    sd_event_source *next, *late;
    bool failed; /* said */
    char boot[64];
    char *saved; /* what the file holds; NULL = not known */
};

/* Whether there is none any more. */
static bool reap(struct probing *p)
{
    if (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) == 0)
        return false;
    p->pid = 0;
    return true;
}

/* What is over accuses nobody. */
static struct node_fact fact_of(const struct probing *p, const struct change *c)
{
    struct node_fact f = {.isolation = c->isolation, .count = 1, .cleared = c->cleared};
    struct signal *s = &f.signal;

    *s = signal_make(SIGNAL_HIT, c->provenance);
    s->time_us = now_us();
    s->layer = LAYER_KERNEL;
    s->role = c->cleared ? ROLE_NOISE : c->role;
    s->cause = c->cause;
    s->blame = c->blame;
    s->confidence = c->confidence;
    s->straggler = c->straggler && !c->cleared;
    STR_COPY(s->signature, c->signature);
    STR_COPY(s->clears, c->cleared ? c->signature : "");
    STR_COPY(s->who.node, p->config.node);
    STR_COPY(s->who.device, c->device);
    if (c->area == AREA_MOUNTS)
        STR_COPY(s->who.peer, c->subject);
    STR_COPY(s->text, c->text);
    STR_COPY(f.node, p->config.node);
    return f;
}

static void on_change(void *ctx, const struct change *c)
{
    struct probing *p = ctx;
    struct node_message m = {.kind = NODE_MESSAGE_FACT, .time_us = now_us()};

    STR_COPY(m.node, p->config.node);
    m.fact = fact_of(p, c);
    p->fact(p->ctx, &m);
}

static void on_line(void *ctx, const json_t *j)
{
    struct probing *p = ctx;
    struct probe_line l;

    if (probe_line_from_json(j, &l) == 0)
        judge_take(p->judge, &l);
}

static void read_boot(struct probing *p)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    if (file_read(BOOT_ID, sizeof(p->boot) - 1, &text, NULL) == 0)
        STR_COPY(p->boot, strbuf_str(&text));
    p->boot[strcspn(p->boot, "\n")] = '\0';
}

static void recall(struct probing *p)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    const char *boot;
    json_t *j;

    if (file_read(p->config.state, STATE_MAX, &text, NULL) < 0)
        return;
    j = json_loadb(strbuf_str(&text), text.len, 0, NULL);
    boot = json_string_value(json_object_get(j, "boot"));
    if (json_integer_value(json_object_get(j, "v")) == VERSION && boot && streq(boot, p->boot))
        judge_from_json(p->judge, json_object_get(j, "things"));
    json_decref(j);
}

/* Written when there is news only. The facts are in the spool by now. */
static void save(struct probing *p)
{
    json_t *j = json_pack("{s:i, s:s, s:o}", "v", VERSION, "boot", p->boot, "things",
                          judge_to_json(p->judge));
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);
    int r;

    json_decref(j);
    if (p->saved && streq(p->saved, text))
        return;
    r = file_replace(AT_FDCWD, p->config.state, text, strlen(text));
    if (r < 0)
        log_warning("%s: %s", p->config.state, strerror(-r));
    free(p->saved);
    p->saved = TAKE(text); /* after a failure too: it is tried again when there is more to say */
}

/* What was seen counts, also if not all was. */
static void finish(struct probing *p)
{
    usec_t due = p->began + p->config.every, soon = mono_us() + PROBING_EVERY_MIN / 2;

    p->lines = lines_free(p->lines);
    timer_stop(p->late);
    if (p->pid > 0)
        spawn_kill(p->pid);
    reap(p);
    judge_end(p->judge, on_change, p);
    save(p);
    timer_arm(p->next, due > soon ? due : soon);
}

static void on_closed(void *ctx)
{
    finish(ctx);
}

static int on_late(sd_event_source *s, uint64_t usec, void *userdata)
{
    finish(userdata);
    return 0;
}

static void make_argv(const struct probing *p, const char *argv[ARGV_MAX])
{
    const struct probing_config *c = &p->config;
    size_t n = 0;

    argv[n++] = c->program;
    argv[n++] = "--locks";
    argv[n++] = c->locks;
    argv[n++] = "--deadline";
    argv[n++] = p->deadline;
    if (c->nvml) {
        argv[n++] = "--nvml";
        argv[n++] = c->nvml;
    }
    if (c->root) {
        argv[n++] = "--root";
        argv[n++] = c->root;
    }
    argv[n] = NULL;
}

static int start_program(struct probing *p)
{
    static const struct lines_handlers handlers = {.object = on_line, .closed = on_closed};
    static const struct lines_options options = {.line_max = PROBE_LINE_MAX, .owed_max = 1};
    const char *argv[ARGV_MAX];
    int pair[2], r;

    if (!reap(p))
        return -EBUSY;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    make_argv(p, argv);
    r = spawn_program((char *const *)argv, pair[1], &p->pid);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        return r;
    }
    p->lines = lines_new(p->event, pair[0], pair[0], &options, &handlers, p);
    return p->lines ? 0 : -ENOMEM;
}

static int on_next(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct probing *p = userdata;
    int r;

    p->began = mono_us();
    judge_begin(p->judge, p->began);
    r = start_program(p);
    if (r < 0 && !p->failed)
        log_warning("%s cannot be started: %s", p->config.program, strerror(-r));
    p->failed = r < 0;
    if (r < 0)
        finish(p);
    else
        timer_arm(p->late, p->began + p->config.deadline + PATIENCE);
    return 0;
}

struct probing *probing_new(sd_event *event, const struct probing_config *c, probing_fn fact,
                            void *ctx)
{
    struct probing *p = xnew(struct probing);

    *p = (struct probing){
        .event = event, .config = *c, .fact = fact, .ctx = ctx, .judge = judge_new()};
    STR_PRINTF(p->deadline, "%lldms", (long long)(c->deadline / USEC_PER_MSEC));
    if (timer_new(event, on_next, p, &p->next) < 0 || timer_new(event, on_late, p, &p->late) < 0)
        return probing_free(p);
    read_boot(p);
    recall(p);
    timer_arm(p->next, mono_us() + FIRST);
    return p;
}

struct probing *probing_free(struct probing *p)
{
    if (!p)
        return NULL;
    lines_free(p->lines);
    if (p->pid > 0)
        spawn_kill(p->pid);
    reap(p);
    sd_event_source_disable_unref(p->next);
    sd_event_source_disable_unref(p->late);
    judge_free(p->judge);
    free(p->saved);
    free(p);
    return NULL;
}

void probing_poke(struct probing *p)
{
    if (!p->lines)
        timer_arm(p->next, mono_us());
}
