/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/drain.h"

#include "base/cleanup.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/time.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PATIENCE   (10 * USEC_PER_SEC) /* for slurmctld, which may be away */
#define OUTPUT_MAX 16384

/* Until it says nothing more. Whether that was in time. */
static bool take_output(int fd, usec_t deadline, struct strbuf *out)
{
    char block[4096];
    ssize_t n;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, poll_timeout(deadline));

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        n = read(fd, block, sizeof(block));
        if (n <= 0)
            return true;
        if (out->len < OUTPUT_MAX)
            strbuf_add(out, block, (size_t)n);
    }
}

/* Its status as wait(2) gives it, or -ETIMEDOUT: it was killed, and may be there still. */
static int await_end(pid_t pid, bool in_time, usec_t deadline)
{
    _cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int status;

    while (in_time && fd >= 0 && poll(&p, 1, poll_timeout(deadline)) < 0 && errno == EINTR)
        ;
    if (waitpid(pid, &status, WNOHANG) == pid)
        return status;
    spawn_kill(pid);
    waitpid(pid, &status, WNOHANG);
    return -ETIMEDOUT;
}

static int run(const char *const argv[], struct strbuf *out, struct err *e)
{
    _cleanup_(closep) int ours = -1;
    usec_t deadline = mono_us() + PATIENCE;
    int pair[2], r;
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_set(e, -errno, "no pipe: %s", strerror(errno));
    ours = pair[0];
    r = spawn_program((char *const *)argv, pair[1], &pid);
    close(pair[1]);
    if (r < 0)
        return err_set(e, r, "%s: %s", argv[0], strerror(-r));
    r = await_end(pid, take_output(ours, deadline, out), deadline);
    if (r < 0)
        return err_set(e, r, "%s did not end in time", argv[0]);
    return r == 0 ? 0 : err_set(e, -EIO, "%s %s failed", argv[0], argv[1]);
}

/* "... State=IDLE+DRAIN ThreadsPerCore=1 ..." */
static bool takes_no_job(const char *said)
{
    static const char *const words[] = {"DRAIN", "DOWN", "FAIL", "FUTURE", "POWERED_DOWN"};
    const char *at = strstr(said, " State=");
    char state[256];

    if (!at)
        return false;
    at += strlen(" State=");
    str_copy_n(state, sizeof(state), at, strcspn(at, " \n"));
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(state, words[i]))
            return true;
    return false;
}

/* One argument each, so nothing in them can be another. */
static bool is_name(const char *node)
{
    for (const char *c = node; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
            return false;
    return node[0] != '\0';
}

int drain_node(const char *scontrol, const char *node, const char *reason, struct err *e)
{
    _cleanup_strbuf_ struct strbuf said = {0};
    char name[160], why[256];
    const char *const show[] = {scontrol, "show", "node", node, "--oneliner", NULL};
    const char *const update[] = {scontrol, "update", name, "State=DRAIN", why, NULL};
    int r;

    if (!is_name(node))
        return err_set(e, -EINVAL, "'%s' is no name of a node", node);
    r = run(show, &said, e);
    if (r < 0 || takes_no_job(strbuf_str(&said)))
        return r;
    STR_PRINTF(name, "NodeName=%s", node);
    STR_PRINTF(why, "Reason=" DRAIN_REASON "%s", reason);
    return run(update, &said, e);
}
