/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked waits in a queue, in the order of the answers. There is one deadline, that of the
 * oldest; when it passes, or the process ends, everything that waits is answered with nothing, and
 * the next to ask starts another process, but not more often than once a second. A process that was
 * killed is waited for without waiting: while it is not gone, there is no other. */

#include "source/sealer.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "wire/lines.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ANSWER_PATIENCE (30 * USEC_PER_SEC) /* munged's library gives up after ten */
#define RESTART_PAUSE   USEC_PER_SEC
#define ARGV_MAX        8
#define LINE_MAX_BYTES  65536

extern char **environ;

struct asked {
    sealer_answer_fn fn;
    void *ctx;
    usec_t deadline;
};

struct sealer {
    sd_event *event;
    char *argv[ARGV_MAX + 1];
    struct lines *lines; /* NULL = no process */
    pid_t pid;           /* 0 = none, or reaped */
    usec_t started;
    VEC(struct asked) asked; /* oldest first */
    sd_event_source *deadline, *failed;
};

/* Whether there is none any more. */
static bool reap(struct sealer *s)
{
    if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == 0)
        return false;
    s->pid = 0;
    return true;
}

static void end_process(struct sealer *s)
{
    s->lines = lines_free(s->lines);
    if (s->pid > 0)
        kill(s->pid, SIGKILL);
    reap(s);
}

static void set_deadline(struct sealer *s)
{
    sd_event_source_set_time(s->deadline, s->asked.n > 0 ? (uint64_t)s->asked.v[0].deadline : 0);
    sd_event_source_set_enabled(s->deadline, s->asked.n > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* Who asks again from within waits for another process. */
static void answer_nobody(struct sealer *s)
{
    size_t n = s->asked.n;

    for (size_t i = 0; i < n; i++) {
        struct asked a = s->asked.v[i];

        a.fn(a.ctx, NULL);
    }
    memmove(s->asked.v, s->asked.v + n, (s->asked.n - n) * sizeof(*s->asked.v));
    s->asked.n -= n;
    set_deadline(s);
}

static void on_answer(void *ctx, const json_t *j)
{
    struct sealer *s = ctx;
    struct asked a;

    if (s->asked.n == 0)
        return;
    a = s->asked.v[0];
    VEC_REMOVE(&s->asked, 0);
    set_deadline(s);
    a.fn(a.ctx, j);
}

static void on_closed(void *ctx)
{
    struct sealer *s = ctx;

    end_process(s);
    answer_nobody(s);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
    on_closed(userdata);
    return 0;
}

static int on_failed(sd_event_source *source, void *userdata)
{
    on_closed(userdata);
    return 0;
}

static int spawn(struct sealer *s, int theirs)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none); /* ours may be blocked for the loop */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    r = posix_spawn(&s->pid, s->argv[0], &actions, &attributes, s->argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        s->pid = 0;
    return -r;
}

static int start(struct sealer *s)
{
    static const struct lines_options options = {.line_max = LINE_MAX_BYTES,
                                                 .owed_max = 16 * 1024 * 1024};
    static const struct lines_handlers handlers = {.object = on_answer, .closed = on_closed};
    _cleanup_(closep) int ours = -1, theirs = -1;
    int pair[2], r;

    if (s->started + RESTART_PAUSE > mono_us() || !reap(s))
        return -EAGAIN;
    s->started = mono_us();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    ours = pair[0];
    theirs = pair[1];
    r = spawn(s, theirs);
    if (r < 0)
        return r;
    s->lines = lines_new(s->event, ours, ours, &options, &handlers, s);
    take_fd(&ours);
    if (s->lines)
        return 0;
    end_process(s);
    return -ENOMEM;
}

int sealer_ask(struct sealer *s, const char *op, const char *text, sealer_answer_fn fn, void *ctx)
{
    int r = 0;

    if (s->asked.n >= SEALER_ASKED_MAX)
        return -ENOBUFS;
    if (!s->lines)
        r = start(s);
    if (r == 0)
        r = lines_send(s->lines, json_pack("{s:s}", op, text));
    if (r < 0) /* the answer comes from the loop, whatever it is */
        sd_event_source_set_enabled(s->failed, SD_EVENT_ONESHOT);
    *VEC_PUSH(&s->asked) =
        (struct asked){.fn = fn, .ctx = ctx, .deadline = mono_us() + ANSWER_PATIENCE};
    set_deadline(s);
    return 0;
}

struct sealer *sealer_new(sd_event *event, const char *const *argv)
{
    struct sealer *s = xnew(struct sealer);

    s->event = event;
    s->started = -RESTART_PAUSE;
    for (size_t i = 0; argv[i]; i++) {
        assert(i < ARGV_MAX);
        s->argv[i] = xstrdup(argv[i]);
    }
    if (sd_event_add_time(event, &s->deadline, CLOCK_MONOTONIC, 0, 0, on_deadline, s) < 0 ||
        sd_event_source_set_enabled(s->deadline, SD_EVENT_OFF) < 0 ||
        sd_event_add_defer(event, &s->failed, on_failed, s) < 0 ||
        sd_event_source_set_enabled(s->failed, SD_EVENT_OFF) < 0)
        return sealer_free(s);
    return s;
}

struct sealer *sealer_free(struct sealer *s)
{
    if (!s)
        return NULL;
    end_process(s);
    answer_nobody(s);
    sd_event_source_disable_unref(s->deadline);
    sd_event_source_disable_unref(s->failed);
    for (size_t i = 0; i < ARGV_MAX; i++)
        free(s->argv[i]);
    VEC_DONE(&s->asked);
    free(s);
    return NULL;
}
