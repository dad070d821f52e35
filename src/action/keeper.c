/* SPDX-License-Identifier: Apache-2.0 */

/* Why a process of its own. The job must die with reknit even when reknit dies by SIGKILL, and
 * the next attempt must not start while anything of the last one lives. The keeper is a child
 * subreaper: whatever daemonises below it (setsid, double fork) becomes its child when its parent
 * ends. Every descendant therefore has a living ancestor that is the keeper or the keeper's
 * descendant, and waitpid() == ECHILD is the proof that nothing is left. No list is kept.
 *
 * It is executed afresh from /proc/self/exe under another name, so that `pkill -9 reknit` and
 * `killall -9 reknit` leave it alive to do its work, and so that it is small. It blocks every
 * signal it can; only SIGKILL ends it early. Then the first process gets SIGKILL (PDEATHSIG) and
 * the rest falls to reknit, a subreaper as well.
 *
 * Life: start the job -> wait for orders, exits, or the end of the socket (reknit is gone, or
 * wants to be) -> kill -> say GONE -> end. GONE is said exactly once, and after it no process
 * of the job exists. */

#include "action/keeper.h"

#include "action/cgroup.h"
#include "base/proctree.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PASS_PAUSE_MS  10 /* between two passes of SIGKILL, doubling up to */
#define PASS_PAUSE_MAX 1000
#define STUCK_AFTER_US (10 * USEC_PER_SEC) /* SIGKILL took that long: say so, once */

enum stage {
    STAGE_RUNNING,
    STAGE_TERMINATING, /* a signal was sent; SIGKILL follows at the deadline */
    STAGE_KILLING,
};

struct keeper {
    enum stage stage;
    usec_t deadline; /* TERMINATING: when SIGKILL follows; KILLING: when it counts as stuck */
    pid_t first;     /* the job's first process; 0 once it has been reaped */
    pid_t group;     /* its process group, for good */
    int socket;
    int pause_ms; /* KILLING: until the next pass */
    bool alone;   /* reknit is gone: nobody listens */
    struct keeper_spec spec;
    char **argv;
};

static void report(struct keeper *k, const struct keeper_report *r)
{
    if (!k->alone)
        send(k->socket, r, sizeof(*r), MSG_NOSIGNAL);
}

static int read_spec(struct keeper *k, int fd)
{
    struct stat st;
    size_t len;
    char *text;

    if (fstat(fd, &st) < 0)
        return -errno;
    if ((size_t)st.st_size <= sizeof(k->spec) ||
        pread(fd, &k->spec, sizeof(k->spec), 0) != sizeof(k->spec))
        return -EBADMSG;
    len = (size_t)st.st_size - sizeof(k->spec);
    text = xmalloc(len + 1);
    if (pread(fd, text, len, sizeof(k->spec)) != (ssize_t)len)
        return -EBADMSG;
    text[len] = '\0';
    k->argv = xcalloc((size_t)k->spec.argc + 1, sizeof(char *));
    for (uint32_t i = 0; i < k->spec.argc; i++) {
        k->argv[i] = text;
        text += strlen(text) + 1;
    }
    close(fd);
    if (k->spec.restore >= 0)
        fcntl(k->spec.restore, F_SETFD, FD_CLOEXEC);
    return k->spec.argc > 0 ? 0 : -EBADMSG;
}

/* Joins the job's cgroup; without it the walk over /proc does the work alone. */
static void join_cgroup(const char *cgroup)
{
    char path[CGROUP_PATH_MAX + 16];
    int fd;

    if (cgroup[0] == '\0')
        return;
    snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "0", 1) < 0) {
        /* not ours to join: fine */
    }
    close(fd);
}

/* In the job's first process. Never returns: writes errno to `failed` when exec does not work. */
static void __attribute__((noreturn))
become_job(const struct keeper *k, pid_t keeper, int gate, int failed)
{
    int error;
    char c;

    if (read(gate, &c, 1) != 0)
        _exit(127);
    setsid();
    if (k->spec.terminal >= 0)
        ioctl(k->spec.terminal, TIOCSCTTY, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127);
    join_cgroup(k->spec.cgroup);
    sigprocmask(SIG_SETMASK, &k->spec.mask, NULL);
    execvp(k->argv[0], k->argv);
    error = errno;
    if (write(failed, &error, sizeof(error)) < 0)
        _exit(127);
    _exit(error == ENOENT ? 127 : 126);
}

/* So that the streams reach their end when the job is gone, not when the keeper is. */
static void drop_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

/* The child waits behind the gate until STARTED is on its way: reknit must not see output of an
 * attempt that it does not know of yet. */
static int start_job(struct keeper *k)
{
    struct keeper_report r = {.event = KEEPER_STARTED};
    pid_t keeper = getpid();
    int gate[2], failed[2], error = 0;

    if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
        return -errno;
    k->first = fork();
    if (k->first < 0)
        return -errno;
    if (k->first == 0) {
        close(gate[1]);
        become_job(k, keeper, gate[0], failed[1]);
    }
    k->group = k->first;
    close(gate[0]);
    close(failed[1]);
    drop_streams();
    r.pid = k->first;
    report(k, &r);
    close(gate[1]);
    if (read(failed[0], &error, sizeof(error)) == sizeof(error)) {
        r.event = KEEPER_START_FAILED;
        r.code = error;
        report(k, &r);
    }
    close(failed[0]);
    return 0;
}

size_t keeper_kill_pass(const char *cgroup, int32_t *ret_pid)
{
    _cleanup_proc_list_ struct proc_list tree = {0};
    size_t n;

    cgroup_kill(cgroup);
    if (proc_list_tree(getpid(), &tree) < 0)
        return 0;
    n = proc_list_signal(&tree, SIGKILL);
    if (n > 0)
        *ret_pid = tree.procs.v[0].pid;
    return n;
}

static void signal_all(int sig)
{
    _cleanup_proc_list_ struct proc_list tree = {0};

    if (proc_list_tree(getpid(), &tree) == 0)
        proc_list_signal(&tree, sig);
}

static void begin_killing(struct keeper *k)
{
    if (k->stage == STAGE_KILLING)
        return;
    k->stage = STAGE_KILLING;
    k->pause_ms = PASS_PAUSE_MS;
    k->deadline = mono_us() + STUCK_AFTER_US;
}

/* A later order may only hasten the end. */
static void begin_terminating(struct keeper *k, const struct keeper_command *c)
{
    usec_t deadline = mono_us() + c->grace;
    bool hurry = c->signal == SIGKILL || c->grace <= 0;

    if (k->stage == STAGE_KILLING)
        return;
    if (hurry) {
        begin_killing(k);
        return;
    }
    if (c->request == KEEPER_KILL_GROUP)
        kill(-k->group, c->signal);
    else
        signal_all(c->signal);
    signal_all(SIGCONT); /* what is stopped cannot answer */
    if (k->stage == STAGE_RUNNING || deadline < k->deadline)
        k->deadline = deadline;
    k->stage = STAGE_TERMINATING;
}

static void obey(struct keeper *k, const struct keeper_command *c)
{
    switch (c->request) {
    case KEEPER_SIGNAL_FIRST:
        if (k->first > 0)
            kill(k->first, c->signal);
        break;
    case KEEPER_SIGNAL_ALL:
        signal_all(c->signal);
        break;
    case KEEPER_KILL_GROUP:
    case KEEPER_KILL_ALL:
        begin_terminating(k, c);
        break;
    default:
        assert(!"unknown request");
    }
}

static void read_command(struct keeper *k)
{
    struct keeper_command c;
    ssize_t n = recv(k->socket, &c, sizeof(c), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == sizeof(c)) {
        obey(k, &c);
        return;
    }
    k->alone = true; /* end of the socket: reknit is gone */
    if (k->spec.restore >= 0)
        tcsetattr(k->spec.restore, TCSANOW, &k->spec.saved);
    begin_killing(k);
}

static void report_first(struct keeper *k, int status)
{
    struct keeper_report r = {.event = KEEPER_EXITED, .pid = k->first, .code = -1};

    if (WIFEXITED(status))
        r.code = WEXITSTATUS(status);
    else
        r.signal = WTERMSIG(status);
    k->first = 0;
    report(k, &r);
}

/* Returns whether no child is left. */
static bool reap(struct keeper *k)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid == 0)
            return false;
        if (pid < 0)
            return errno == ECHILD;
        if (pid == k->first)
            report_first(k, status);
    }
}

static void kill_more(struct keeper *k)
{
    struct keeper_report r = {.event = KEEPER_STUCK};

    r.count = (uint32_t)keeper_kill_pass(k->spec.cgroup, &r.pid);
    k->pause_ms = 2 * k->pause_ms < PASS_PAUSE_MAX ? 2 * k->pause_ms : PASS_PAUSE_MAX;
    if (r.count > 0 && mono_us() > k->deadline) {
        report(k, &r);
        k->deadline = USEC_NEVER;
    }
}

static int patience_ms(const struct keeper *k)
{
    if (k->stage == STAGE_RUNNING)
        return -1;
    return k->stage == STAGE_KILLING ? k->pause_ms : poll_timeout(k->deadline);
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info[8];

    while (read(fd, info, sizeof(info)) > 0)
        ;
}

static void run(struct keeper *k, int sigfd)
{
    while (!reap(k)) {
        struct pollfd fds[] = {{.fd = k->alone ? -1 : k->socket, .events = POLLIN},
                               {.fd = sigfd, .events = POLLIN}};

        if (k->stage == STAGE_TERMINATING && mono_us() >= k->deadline)
            begin_killing(k);
        if (k->stage == STAGE_KILLING)
            kill_more(k);
        if (poll(fds, 2, patience_ms(k)) < 0)
            continue;
        if (fds[1].revents)
            drain_signals(sigfd);
        if (fds[0].revents)
            read_command(k);
    }
}

/* All signals are blocked; returns a descriptor of SIGCHLD. */
static int take_signals(void)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A descriptor number among the arguments; not for the job. */
static int take_descriptor(const char *text)
{
    long long fd;

    if (str_to_i64(text, &fd) < 0 || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
        return -EBADF;
    return (int)fd;
}

int keeper_main(int argc, char **argv)
{
    struct keeper k = {0};
    int sigfd, spec;

    if (argc != 4)
        return EXIT_FAILURE;
    prctl(PR_SET_NAME, "job-keeper");
    k.socket = take_descriptor(argv[1]);
    spec = take_descriptor(argv[2]);
    if (k.socket < 0 || spec < 0 || take_descriptor(argv[3]) < 0)
        return EXIT_FAILURE;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return EXIT_FAILURE;
    sigfd = take_signals();
    if (sigfd < 0 || read_spec(&k, spec) < 0 || start_job(&k) < 0)
        return EXIT_FAILURE;
    run(&k, sigfd);
    report(&k, &(struct keeper_report){.event = KEEPER_GONE});
    if (k.alone)
        cgroup_remove(k.spec.cgroup); /* else reknit does it */
    return EXIT_SUCCESS;
}
