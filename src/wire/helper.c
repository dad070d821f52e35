/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked waits in a queue, in the order of the answers. There is one deadline, that of the
 * oldest; when it passes, or the process ends, everything that waits is answered with nothing, and
 * the next to ask starts another process, but not more often than once a second. A process that was
 * killed is waited for without waiting: while it is not gone, there is no other. That there is no
 * such program is said in its place: nobody is to be blamed who was never asked. */

#include "wire/helper.h"

#include "base/alloc.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "wire/lines.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RESTART_PAUSE  USEC_PER_SEC
#define ARGV_MAX       8
#define LINE_MAX_BYTES 65536

struct asked {
    helper_answer_fn fn;
    void *ctx;
    usec_t deadline;
};

struct helper {
    sd_event *event;
    char *argv[ARGV_MAX + 1];
    struct lines *lines; /* NULL = no process */
    pid_t pid;           /* 0 = none, or reaped */
    usec_t started;
    int error;               /* why it could not be started then; 0 = it was */
    VEC(struct asked) asked; /* oldest first */
    sd_event_source *deadline, *failed;
    usec_t patience;
};

/* Whether there is none any more. */
static bool reap(struct helper *h)
{
    if (h->pid > 0 && waitpid(h->pid, NULL, WNOHANG) == 0)
        return false;
    h->pid = 0;
    return true;
}

static void end_process(struct helper *h)
{
    h->lines = lines_free(h->lines);
    if (h->pid > 0)
        spawn_kill(h->pid);
    reap(h);
}

static void set_deadline(struct helper *h)
{
    sd_event_source_set_time(h->deadline, h->asked.n > 0 ? (uint64_t)h->asked.v[0].deadline : 0);
    sd_event_source_set_enabled(h->deadline, h->asked.n > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static json_t *failure_of(const struct helper *h)
{
    const char *slash = strrchr(h->argv[0], '/');
    char text[200];

    if (h->error == 0)
        return NULL;
    STR_PRINTF(text, "%s cannot be started: %s", slash ? slash + 1 : h->argv[0],
               strerror(-h->error));
    return json_pack("{s:s}", "error", text);
}

/* Who asks again from within waits for another process. */
static void answer_nobody(struct helper *h)
{
    json_t *failure = failure_of(h);
    size_t n = h->asked.n;

    for (size_t i = 0; i < n; i++) {
        struct asked a = h->asked.v[i];

        a.fn(a.ctx, failure);
    }
    json_decref(failure);
    if (n > 0)
        memmove(h->asked.v, h->asked.v + n, (h->asked.n - n) * sizeof(*h->asked.v));
    h->asked.n -= n;
    set_deadline(h);
}

static void on_answer(void *ctx, const json_t *j)
{
    struct helper *h = ctx;
    struct asked a;

    if (h->asked.n == 0)
        return;
    a = h->asked.v[0];
    VEC_REMOVE(&h->asked, 0);
    set_deadline(h);
    a.fn(a.ctx, j);
}

static void on_closed(void *ctx)
{
    struct helper *h = ctx;

    end_process(h);
    answer_nobody(h);
}

/* An answer that was lost: those that follow would be taken for the answers to other questions. */
static void on_bad(void *ctx, const char *text)
{
    struct helper *h = ctx;

    lines_close(h->lines);
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

static int start(struct helper *h)
{
    static const struct lines_options options = {.line_max = LINE_MAX_BYTES,
                                                 .owed_max = 16 * 1024 * 1024};
    static const struct lines_handlers handlers = {
        .object = on_answer, .bad = on_bad, .closed = on_closed};
    _cleanup_(closep) int ours = -1, theirs = -1;
    int pair[2], r;

    if (h->started + RESTART_PAUSE > mono_us() || !reap(h))
        return -EAGAIN;
    h->started = mono_us();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    ours = pair[0];
    theirs = pair[1];
    h->error = r = spawn_program(h->argv, theirs, &h->pid);
    if (r < 0)
        return r;
    h->lines = lines_new(h->event, ours, ours, &options, &handlers, h);
    take_fd(&ours);
    if (h->lines)
        return 0;
    end_process(h);
    return -ENOMEM;
}

int helper_ask(struct helper *h, json_t *question, helper_answer_fn fn, void *ctx)
{
    int r = 0;

    if (h->asked.n >= HELPER_ASKED_MAX) {
        json_decref(question);
        return -ENOBUFS;
    }
    if (!h->lines)
        r = start(h);
    if (r == 0)
        r = lines_send(h->lines, question);
    else
        json_decref(question);
    if (r < 0) /* the answer comes from the loop, whatever it is */
        sd_event_source_set_enabled(h->failed, SD_EVENT_ONESHOT);
    *VEC_PUSH(&h->asked) =
        (struct asked){.fn = fn, .ctx = ctx, .deadline = mono_us() + h->patience};
    set_deadline(h);
    return 0;
}

struct helper *helper_new(sd_event *event, const char *const *argv, usec_t patience)
{
    struct helper *h = xnew(struct helper);

    h->event = event;
    h->patience = patience;
    h->started = -RESTART_PAUSE;
    for (size_t i = 0; argv[i]; i++) {
        assert(i < ARGV_MAX);
        h->argv[i] = xstrdup(argv[i]);
    }
    if (sd_event_add_time(event, &h->deadline, CLOCK_MONOTONIC, 0, 0, on_deadline, h) < 0 ||
        sd_event_source_set_enabled(h->deadline, SD_EVENT_OFF) < 0 ||
        sd_event_add_defer(event, &h->failed, on_failed, h) < 0 ||
        sd_event_source_set_enabled(h->failed, SD_EVENT_OFF) < 0)
        return helper_free(h);
    return h;
}

struct helper *helper_free(struct helper *h)
{
    if (!h)
        return NULL;
    end_process(h);
    answer_nobody(h);
    sd_event_source_disable_unref(h->deadline);
    sd_event_source_disable_unref(h->failed);
    for (size_t i = 0; i < ARGV_MAX; i++)
        free(h->argv[i]);
    VEC_DONE(&h->asked);
    free(h);
    return NULL;
}
