/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that could hang or fail (the user database, the limits) happens in the child, before
 * it becomes the other user, and what it cannot become it does not run as: each step is
 * verified, then that there is no way back.
 *
 * A uid that this host does not know (a controller without the cluster's users) gets the gid that
 * the job has, no further groups, and only if neither belongs to the system.
 *
 * A reader reads what its user wrote, and may be taken over by it. So it can start no process, and
 * has no standard error that would end in our log: what it has to say, it says to reknitd. That
 * other processes of its user cannot reach into it, it has to ask for itself: execve() makes any
 * program that can be read dumpable again. */

#include "spawner/start.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* gcc and clang say it in different words. */
#if defined(__SANITIZE_ADDRESS__)
#define REKNIT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REKNIT_ADDRESS_SANITIZER
#endif
#endif

#define ID_MIN_DEFAULT 1000
#define NOGROUP        65534
#define DYNAMIC_FIRST  61184 /* systemd gives these to services, now to one, now to another */
#define DYNAMIC_LAST   65519
#define FILES_MAX      20000
#define MEMORY_MAX     ((rlim_t)1 << 30)
#define NICENESS       5

__attribute__((noreturn)) static void fail(const char *what, int e)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "{\"kind\":\"failed\",\"text\":\"%s: %s\"}\n", what,
                     strerror(e));

    if (write(STDOUT_FILENO, line, (size_t)n) < 0)
        _exit(126);
    _exit(127);
}

static void set_limit(int what, rlim_t max)
{
    struct rlimit l;

    if (getrlimit(what, &l) < 0)
        fail("a limit cannot be asked for", errno);
    if (l.rlim_max > max)
        l.rlim_max = max;
    l.rlim_cur = l.rlim_max;
    if (setrlimit(what, &l) < 0)
        fail("a limit cannot be set", errno);
}

/* What the other user's processes would count against, had it been set before. */
static void confine_further(void)
{
#ifndef REKNIT_ADDRESS_SANITIZER /* which looks for leaks in a process, and has much to say */
    int nowhere = open("/dev/null", O_WRONLY);

    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        fail("its standard error cannot be closed", errno);
    set_limit(RLIMIT_NPROC, 0);
#endif
}

static void confine(void)
{
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_NOFILE, FILES_MAX);
#ifndef REKNIT_ADDRESS_SANITIZER /* which maps terabytes */
    set_limit(RLIMIT_DATA, MEMORY_MAX);
#endif
    setpriority(PRIO_PROCESS, 0, NICENESS);
}

/* Group and further groups of the user. */
static gid_t join_groups(const struct start *s)
{
    struct passwd *pw;
    gid_t gid = s->gid;

    errno = 0;
    pw = getpwuid(s->uid);
    if (pw) {
        if (initgroups(pw->pw_name, pw->pw_gid) < 0)
            fail("its groups cannot be joined", errno);
        return pw->pw_gid;
    }
    if (errno != 0 && errno != ENOENT && errno != ESRCH)
        fail("the user cannot be looked up", errno);
    if (gid == (gid_t)-1 || !start_is_persons(gid, s->gid_min))
        gid = NOGROUP;
    if (setgroups(0, NULL) < 0)
        fail("groups cannot be left", errno);
    return gid;
}

static void become(const struct start *s)
{
    gid_t gid = join_groups(s), rgid, egid, sgid;
    uid_t ruid, euid, suid;

    if (setresgid(gid, gid, gid) < 0)
        fail("its group cannot be taken", errno);
    if (setresuid(s->uid, s->uid, s->uid) < 0)
        fail("the user cannot be taken", errno);
    if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0 ||
        ruid != s->uid || euid != s->uid || suid != s->uid || rgid != gid || egid != gid ||
        sgid != gid)
        fail("it is not who it should be", EPERM);
    if (s->uid != 0 && setuid(0) == 0)
        fail("it could go back", EPERM);
}

static void reset_signals(void)
{
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void run(const struct start *s, pid_t parent, int fd)
{
    char *argv[] = {(char *)s->program, NULL};

    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(126);
    reset_signals();
    umask(077);
    if (chdir("/") < 0)
        fail("/ cannot be entered", errno);
    set_limit(RLIMIT_CORE, 0);
    if (s->confined)
        confine();
    become(s);
    if (s->confined)
        confine_further();
    if (close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
        fail("descriptors cannot be closed", errno);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        fail("it cannot be confined", errno);
    if (getppid() != parent)
        _exit(126);
    execve(s->program, argv, (char *const *)s->environ);
    fail("its program cannot be run", errno);
}

int start_child(const struct start *s, pid_t *ret_pid, int *ret_fd)
{
    pid_t parent = getpid(), pid;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run(s, parent, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        int e = -errno;

        close(pair[0]);
        return e;
    }
    *ret_pid = pid;
    *ret_fd = pair[0];
    return 0;
}

uint32_t start_id_min(const char *login_defs, const char *key)
{
    _cleanup_(fclosep) FILE *f = fopen(login_defs, "re");
    unsigned min = ID_MIN_DEFAULT, n;
    char line[256], word[32];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, " %31s %u", word, &n) == 2 && streq(word, key))
            min = n;
    return min > 0 ? min : ID_MIN_DEFAULT;
}

bool start_is_persons(uint32_t id, uint32_t min)
{
    return id >= min && (id < DYNAMIC_FIRST || id > DYNAMIC_LAST);
}
