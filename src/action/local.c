/* SPDX-License-Identifier: Apache-2.0 */

/* States: IDLE -> KEPT (a keeper runs) -> IDLE, when the keeper has said GONE.
 * If the keeper dies first (SIGKILL), KEPT -> ORPHANED: this process is a subreaper too, so the
 * job's processes are now its own children; it kills them itself until waitpid() says that none
 * is left, and only then reports `gone`. */

#include "action/local.h"

#include "action/keeper.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define KEEPER_NAME      "job-keeper" /* must not contain "reknit": pkill by name must miss it */
#define ORPHAN_PAUSE     (10 * USEC_PER_MSEC)
#define ORPHAN_PAUSE_MAX USEC_PER_SEC
#define ENV_ADDED_MAX    16
#define ENV_TOTAL_MAX    65536
#define FD_ABOVE_STDIO   10

/* What would end reknit where an error is enough: a reader that is gone, a limit on file sizes. */
static const int ignored[] = {SIGPIPE, SIGXFSZ};

enum local_state {
    STATE_IDLE,
    STATE_KEPT,
    STATE_ORPHANED,
};

struct local {
    enum local_state state;
    sd_event *event;
    struct local_handlers handlers;
    void *ctx;
    pid_t keeper;
    pid_t first;       /* 0 before it started */
    bool first_exited; /* and was reported */
    bool keeper_gone;  /* it said GONE */
    int socket;
    sd_event_source *io, *child, *pause;
    usec_t pause_us; /* ORPHANED: until the next pass of SIGKILL */
    char cgroup[CGROUP_PATH_MAX];
    struct sigaction before[ARRAY_SIZE(ignored)]; /* as reknit was started, for the job */
    sigset_t mask;
};

static void report_exit(struct local *l, int code, int sig, bool unkept)
{
    if (l->first_exited)
        return;
    l->first_exited = true;
    l->handlers.exited(l->ctx, l->first, code, sig, unkept);
}

/* The attempt has no process any more. */
static void finish(struct local *l)
{
    bool lost = l->state == STATE_ORPHANED;

    assert(l->state != STATE_IDLE);
    report_exit(l, -1, SIGKILL, true); /* ended by the loss of its keeper */
    l->io = sd_event_source_disable_unref(l->io);
    timer_stop(l->pause);
    close(take_fd(&l->socket));
    cgroup_remove(l->cgroup);
    l->cgroup[0] = '\0';
    l->state = STATE_IDLE;
    l->handlers.gone(l->ctx, lost);
}

/* It is our child only when its keeper is dead. */
static void reap_first(struct local *l, int status)
{
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    report_exit(l, WIFEXITED(status) ? WEXITSTATUS(status) : -1, sig, sig == SIGKILL);
}

/* Reaps what there is; in ORPHANED the end of all children is the end of the attempt. */
static void reap(struct local *l)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid == 0)
            return;
        if (pid < 0)
            break;
        if (pid == l->keeper)
            l->keeper = 0;
        else if (pid == l->first)
            reap_first(l, status);
    }
    if (l->state == STATE_ORPHANED)
        finish(l);
}

static int on_child(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
    reap(userdata);
    return 0;
}

static int on_pause(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct local *l = userdata;
    int32_t pid;

    keeper_kill_pass(l->cgroup, &pid);
    l->pause_us = 2 * l->pause_us < ORPHAN_PAUSE_MAX ? 2 * l->pause_us : ORPHAN_PAUSE_MAX;
    timer_arm(s, mono_us() + l->pause_us);
    reap(l);
    return 0;
}

static void keeper_lost(struct local *l)
{
    int32_t pid;

    l->state = STATE_ORPHANED;
    l->pause_us = ORPHAN_PAUSE;
    l->io = sd_event_source_disable_unref(l->io);
    if (l->keeper > 0)
        kill(l->keeper, SIGKILL); /* not yet reaped, so it is still the keeper */
    keeper_kill_pass(l->cgroup, &pid);
    timer_arm(l->pause, mono_us() + ORPHAN_PAUSE);
}

static void take_report(struct local *l, const struct keeper_report *r)
{
    switch (r->event) {
    case KEEPER_STARTED:
        l->first = r->pid;
        l->handlers.started(l->ctx, r->pid);
        break;
    case KEEPER_START_FAILED:
        l->handlers.start_failed(l->ctx, r->code);
        break;
    case KEEPER_EXITED:
        report_exit(l, r->code, r->signal, false);
        break;
    case KEEPER_STUCK:
        l->handlers.stuck(l->ctx, r->count, r->pid);
        break;
    case KEEPER_GONE:
        l->keeper_gone = true;
        break;
    default:
        assert(!"unknown report");
    }
}

static int on_report(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct local *l = userdata;
    struct keeper_report r;
    ssize_t n = recv(fd, &r, sizeof(r), MSG_DONTWAIT);

    if (n == sizeof(r))
        take_report(l, &r);
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        keeper_lost(l);
    if (l->keeper_gone)
        finish(l);
    return 0;
}

static int make_spec(const struct local *l, const struct local_spec *spec)
{
    struct keeper_spec head = {.terminal = spec->terminal,
                               .restore = spec->restore,
                               .saved = spec->saved,
                               .mask = l->mask};
    _cleanup_strbuf_ struct strbuf text = {0};
    _cleanup_(closep) int fd = memfd_create("spec", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    STR_COPY(head.cgroup, l->cgroup);
    for (; spec->argv[head.argc]; head.argc++)
        strbuf_add(&text, spec->argv[head.argc], strlen(spec->argv[head.argc]) + 1);
    if (pwrite(fd, &head, sizeof(head), 0) != sizeof(head) ||
        pwrite(fd, text.s, text.len, sizeof(head)) != (ssize_t)text.len)
        return errno ? -errno : -EIO;
    return take_fd(&fd);
}

static bool overrides(const char *added, const char *old)
{
    size_t n = strcspn(added, "=") + 1;

    return strncmp(added, old, n) == 0;
}

/* environ without what is overridden, then the additions; the strings stay where they are. */
static char **make_environment(char *const *added)
{
    VEC(char *) env = {0};

    for (char **old = environ; *old && env.n < ENV_TOTAL_MAX; old++) {
        bool keep = true;

        for (size_t i = 0; added[i]; i++)
            keep = keep && !overrides(added[i], *old);
        if (keep)
            *VEC_PUSH(&env) = *old;
    }
    for (size_t i = 0; added[i] && i < ENV_ADDED_MAX; i++)
        *VEC_PUSH(&env) = added[i];
    *VEC_PUSH(&env) = NULL;
    return env.v;
}

/* A copy above the standard streams that outlives exec. */
static int keep_fd(int fd)
{
    return fcntl(fd, F_DUPFD, FD_ABOVE_STDIO);
}

/* In the child. The keeper, and so the job, gets the signal dispositions that reknit was started
 * with. Signals of the terminal are for reknit, and nobody ends a keeper by one: from before the
 * exec on, when it could not say so yet. */
static void __attribute__((noreturn))
become_keeper(const struct local *l, const struct local_spec *spec, char **env, int sock,
              int spec_fd)
{
    char numbers[3][16];
    char *argv[] = {
        (char[]){KEEPER_NAME}, (char[]){KEEPER_VERB}, numbers[0], numbers[1], numbers[2], NULL};
    int in = keep_fd(spec->in), out = keep_fd(spec->out), err = keep_fd(spec->err);
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    fcntl(in, F_SETFD, FD_CLOEXEC);
    fcntl(out, F_SETFD, FD_CLOEXEC);
    fcntl(err, F_SETFD, FD_CLOEXEC);
    snprintf(numbers[0], sizeof(numbers[0]), "%d", keep_fd(sock));
    snprintf(numbers[1], sizeof(numbers[1]), "%d", keep_fd(spec_fd));
    snprintf(numbers[2], sizeof(numbers[2]), "%d", keep_fd(spec->lock));
    if (spec->restore >= 0)
        fcntl(spec->restore, F_SETFD, 0);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
        sigaction(ignored[i], &l->before[i], NULL);
    execve("/proc/self/exe", argv, env);
    _exit(126);
}

static int fork_keeper(struct local *l, const struct local_spec *spec, int spec_fd)
{
    _cleanup_(freep) char **env = make_environment(spec->env);
    _cleanup_(closep) int theirs = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    l->socket = pair[0];
    theirs = pair[1];
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        become_keeper(l, spec, env, theirs, spec_fd);
    l->keeper = pid;
    return 0;
}

int local_start(struct local *l, const struct local_spec *spec, struct err *e)
{
    _cleanup_(closep) int spec_fd = -1;
    int r;

    assert(spec->restore < 0 || spec->restore > STDERR_FILENO);
    if (l->state != STATE_IDLE)
        return err_set(e, -EBUSY, "the processes of the last attempt are not gone yet");
    l->first = 0;
    l->first_exited = l->keeper_gone = false;
    cgroup_create(spec->cgroup_name, l->cgroup);
    spec_fd = make_spec(l, spec);
    r = spec_fd < 0 ? spec_fd : fork_keeper(l, spec, spec_fd);
    if (r >= 0)
        r = sd_event_add_io(l->event, &l->io, l->socket, EPOLLIN, on_report, l);
    if (r >= 0) /* what the keeper says is older than what the job says */
        r = sd_event_source_set_priority(l->io, SD_EVENT_PRIORITY_IMPORTANT);
    if (r < 0) {
        if (l->socket >= 0)
            close(take_fd(&l->socket)); /* ends a keeper that was started */
        cgroup_remove(l->cgroup);
        return err_set(e, r, "cannot start the job's keeper: %s", strerror(-r));
    }
    l->state = STATE_KEPT;
    return 0;
}

bool local_is_idle(const struct local *l)
{
    return l->state == STATE_IDLE;
}

pid_t local_keeper(const struct local *l)
{
    return l->state == STATE_KEPT ? l->keeper : 0;
}

const char *local_cgroup(const struct local *l)
{
    return l->cgroup;
}

/* A send that fails means that the keeper is dying: the end of the socket reports that. */
static void command(struct local *l, uint32_t request, int sig, usec_t grace)
{
    struct keeper_command c = {.request = request, .signal = sig, .grace = grace};

    if (l->state == STATE_KEPT)
        send(l->socket, &c, sizeof(c), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void local_signal(struct local *l, enum local_whom whom, int sig)
{
    assert(whom != LOCAL_GROUP);
    command(l, whom == LOCAL_FIRST ? KEEPER_SIGNAL_FIRST : KEEPER_SIGNAL_ALL, sig, 0);
}

void local_kill(struct local *l, enum local_whom whom, int sig, usec_t grace)
{
    assert(whom != LOCAL_FIRST);
    command(l, whom == LOCAL_ALL ? KEEPER_KILL_ALL : KEEPER_KILL_GROUP, sig, grace);
}

struct local *local_new(sd_event *event, const struct local_handlers *handlers, void *ctx)
{
    struct local *l = xnew(struct local);
    int r;

    l->event = sd_event_ref(event);
    l->handlers = *handlers;
    l->ctx = ctx;
    l->socket = -1;
    sigprocmask(SIG_SETMASK, NULL, &l->mask);
    for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
        sigaction(ignored[i], NULL, &l->before[i]);
        signal(ignored[i], SIG_IGN);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* for the case that the keeper is killed */
    r = sd_event_add_signal(event, &l->child, SIGCHLD | SD_EVENT_SIGNAL_PROCMASK, on_child, l);
    if (r >= 0)
        r = timer_new(event, on_pause, l, &l->pause);
    return r < 0 ? local_free(l) : l;
}

struct local *local_free(struct local *l)
{
    if (!l)
        return NULL;
    sd_event_source_disable_unref(l->pause);
    sd_event_source_disable_unref(l->io);
    sd_event_source_disable_unref(l->child);
    if (l->socket >= 0)
        close(l->socket);
    /* It has said GONE and is ending; with it ends its hold on the lock. */
    if (l->state == STATE_IDLE && l->keeper > 0)
        waitpid(l->keeper, NULL, 0);
    sd_event_unref(l->event);
    free(l);
    return NULL;
}
