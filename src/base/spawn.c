/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

int spawn_program(char *const argv[], int standard, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    if (standard >= 0) {
        posix_spawn_file_actions_adddup2(&actions, standard, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, standard, STDOUT_FILENO);
    }
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    r = posix_spawnp(&pid, argv[0], &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        *ret = pid;
    return -r;
}

void spawn_kill(pid_t pid)
{
    kill(-pid, SIGKILL);
}
