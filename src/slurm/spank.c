/* SPDX-License-Identifier: Apache-2.0 */

/* spank_reknit.so: tells the node's agent when a task of a job starts and how it ended.
 *
 * slurmstepd calls this as root in the middle of a step, one task after the other: whatever is slow
 * here delays the job. So each fact is one datagram, sent without ever waiting. Nobody listening, a
 * listener that hangs, a queue that is full: the datagram is lost, nobody is told, the job goes on.
 * Reknit works without it too, only later. Every function returns success for the same reason.
 *
 * What is sent comes from slurmstepd itself, but for the restart count: Slurm 22.05 answers 0 for
 * S_SLURM_RESTART_COUNT, so there the job's environment has to do, and that the user may change.
 * The node's name is the one that slurmd has put into slurmstepd's own environment, not into the
 * job's.
 *
 * Arguments in plugstack.conf:  socket=/run/reknit-agent/agent.sock   (%n in it: the node's name)
 * docs/AGENT.md has the form of a datagram. */

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/reknit-agent/agent.sock"
#define SOCKET_OPTION  "socket="
#define DATAGRAM_MAX   512
#define NO_TASK        UINT32_MAX

SPANK_PLUGIN(reknit, 1)

/* The node's name can stand in JSON and in a path as it is. */
static bool is_plain(const char *name)
{
    return name[0] && name[0] != '.' &&
           name[strspn(
               name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] == '\0';
}

static const char *node_name(void)
{
    const char *name = getenv("SLURMD_NODENAME");
    return name && is_plain(name) && strlen(name) < 128 ? name : "";
}

/* Puts the path together; false when it is too long for a socket's. */
static bool socket_path(int ac, char **av, struct sockaddr_un *ret)
{
    const char *path = DEFAULT_SOCKET;
    for (int i = 0; i < ac; i++) {
        if (strncmp(av[i], SOCKET_OPTION, strlen(SOCKET_OPTION)) == 0)
            path = av[i] + strlen(SOCKET_OPTION);
    }
    const char *mark = strstr(path, "%n");
    int before = mark ? (int)(mark - path) : (int)strlen(path);
    int len = snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s%s%s", before, path,
                       mark ? node_name() : "", mark ? mark + 2 : "");
    return len > 0 && (size_t)len < sizeof(ret->sun_path);
}

static void send_datagram(int ac, char **av, const char *text, size_t len)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!socket_path(ac, av, &to))
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to));
    close(fd);
}

static uint32_t item_u32(spank_t sp, spank_item_t item, uint32_t otherwise)
{
    uint32_t value = otherwise;
    return spank_get_item(sp, item, &value) == ESPANK_SUCCESS ? value : otherwise;
}

static uint32_t restart_count(spank_t sp)
{
    uint32_t count = item_u32(sp, S_SLURM_RESTART_COUNT, 0);
    char text[16];
    if (count == 0 && spank_getenv(sp, "SLURM_RESTART_COUNT", text, sizeof(text)) == ESPANK_SUCCESS)
        count = (uint32_t)strtoul(text, NULL, 10);
    return count;
}

static uint64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* The step of a batch script and the like, which have numbers that nobody knows by heart. */
static void step_name(uint32_t step, char *ret, size_t size)
{
    const char *name = step == SLURM_BATCH_SCRIPT       ? "batch"
                       : step == SLURM_EXTERN_CONT      ? "extern"
                       : step == SLURM_INTERACTIVE_STEP ? "interactive"
                                                        : NULL;
    if (name)
        snprintf(ret, size, "%s", name);
    else
        snprintf(ret, size, "%" PRIu32, step);
}

static void tell(spank_t sp, int ac, char **av, const char *what, const int *status)
{
    uid_t uid = (uid_t)-1;
    pid_t pid = 0;
    int local = -1;
    spank_get_item(sp, S_JOB_UID, &uid);
    spank_get_item(sp, S_TASK_PID, &pid);
    spank_get_item(sp, S_TASK_ID, &local);
    uint32_t job = item_u32(sp, S_JOB_ID, 0);
    uint32_t task = item_u32(sp, S_TASK_GLOBAL_ID, NO_TASK);
    if (job == 0 || task == NO_TASK)
        return;
    char step[16], end[32] = "";
    step_name(item_u32(sp, S_JOB_STEPID, 0), step, sizeof(step));
    if (status)
        snprintf(end, sizeof(end), ",\"status\":%d", *status);
    char text[DATAGRAM_MAX];
    int len = snprintf(
        text, sizeof(text),
        "{\"v\":1,\"kind\":\"%s\",\"job\":%" PRIu32 ",\"restart\":%" PRIu32
        ",\"step\":\"%s\",\"node\":\"%s\",\"rank\":%" PRIu32 ",\"local\":%d"
        ",\"tasks\":%" PRIu32 ",\"pid\":%lld,\"uid\":%" PRIu32 ",\"time\":%" PRIu64 "%s}",
        what, job, restart_count(sp), step, node_name(), task, local,
        item_u32(sp, S_JOB_TOTAL_TASK_COUNT, 0), (long long)pid, (uint32_t)uid, now_us(), end);
    if (len > 0 && (size_t)len < sizeof(text))
        send_datagram(ac, av, text, (size_t)len);
}

int slurm_spank_task_post_fork(spank_t sp, int ac, char **av)
{
    if (spank_remote(sp) == 1)
        tell(sp, ac, av, "start", NULL);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
    int status;
    if (spank_remote(sp) == 1 && spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS)
        tell(sp, ac, av, "exit", &status);
    return ESPANK_SUCCESS;
}
