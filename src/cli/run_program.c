/* SPDX-License-Identifier: Apache-2.0 */

/* One descriptor says when the child has ended (a pidfd), one brings what it prints. The input is
 * written at once: it is shorter than what a pipe holds. */

#include "cli/run_program.h"

#include "base/cleanup.h"
#include "base/sig.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#define NO_SUCH_PROGRAM 127

struct run {
    pid_t pid;
    int pidfd, output; /* output: -1 = it prints nothing */
    usec_t deadline;
    struct strbuf *text;
};

/* Whether there may be more. */
static bool take_output(struct run *r)
{
    char block[4096];
    ssize_t n = read(r->output, block, sizeof(block));

    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    if (r->text->len < PROGRAM_OUTPUT_MAX)
        strbuf_add(r->text, block, (size_t)n);
    return true;
}

/* A grandchild may keep the output open: the end of the child itself is what counts. */
static int await(struct run *r)
{
    struct pollfd fds[] = {{r->pidfd, POLLIN, 0}, {r->output, POLLIN, 0}};

    for (;;) {
        int n = poll(fds, 2, poll_timeout(r->deadline));

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -ETIMEDOUT;
        if (n > 0 && fds[1].revents && !take_output(r))
            fds[1].fd = -1;
        if (n > 0 && fds[0].revents && (fds[1].fd < 0 || !fds[1].revents))
            return 0;
    }
}

/* Its status as of a shell, or why not; it is gone then. */
static int finish(struct run *r)
{
    int e = await(r), status = 0;

    if (e < 0)
        kill(r->pid, SIGKILL);
    /* one in uninterruptible sleep dies later, without us */
    if (waitpid(r->pid, &status, e < 0 ? WNOHANG : 0) < 0 && e == 0)
        e = -errno;
    closep(&r->pidfd);
    if (e < 0)
        return e;
    return WIFSIGNALED(status) ? sig_status(0, WTERMSIG(status)) : WEXITSTATUS(status);
}

__attribute__((noreturn)) static void become(const char *const argv[], int in, int out)
{
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    _exit(errno == ENOENT ? NO_SUCH_PROGRAM : 126);
}

static int start(const char *const argv[], int in, int out, struct run *r)
{
    r->pid = fork();
    if (r->pid == 0)
        become(argv, in, out);
    if (r->pid < 0)
        return -errno;
    r->pidfd = pidfd_open(r->pid, 0);
    return r->pidfd < 0 ? -errno : 0;
}

static int make_input(const char *input, int *ret)
{
    int pipe_fds[2];

    if (!input) {
        *ret = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return *ret < 0 ? -errno : 0;
    }
    assert(strlen(input) <= PIPE_BUF);
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    if (write(pipe_fds[1], input, strlen(input)) < 0) {
        int e = -errno;

        close(pipe_fds[0]);
        close(pipe_fds[1]);
        return e;
    }
    close(pipe_fds[1]);
    *ret = pipe_fds[0];
    return 0;
}

int run_program(const char *const argv[], const char *input, usec_t timeout,
                struct program_result *ret)
{
    _cleanup_(closep) int in = -1, out = -1, from = -1;
    struct run run = {.deadline = mono_us() + timeout, .text = &ret->output};
    int pipe_fds[2], r = make_input(input, &in);

    if (r < 0)
        return r;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    from = pipe_fds[0];
    out = pipe_fds[1];
    fcntl(from, F_SETFL, O_NONBLOCK);
    run.output = from;
    r = start(argv, in, out, &run);
    if (r < 0)
        return r;
    closep(&out);
    out = -1;
    r = finish(&run);
    if (r == NO_SUCH_PROGRAM && ret->output.len == 0)
        return -ENOENT;
    if (r < 0)
        return r;
    ret->status = r;
    return 0;
}

int run_apart(int (*fn)(const void *arg), const void *arg, usec_t timeout)
{
    struct run run = {.deadline = mono_us() + timeout, .output = -1};

    run.pid = fork();
    if (run.pid == 0)
        _exit(fn(arg));
    if (run.pid < 0)
        return -errno;
    run.pidfd = pidfd_open(run.pid, 0);
    return run.pidfd < 0 ? -errno : finish(&run);
}
