/* SPDX-License-Identifier: Apache-2.0 */

/* bare_relay COMMAND...: the least a program can do that passes a command's output on: read what is
 * there, write it, until the end. What `reknit run` is measured against. */

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char buffer[65536];
    int p[2], status;
    ssize_t n;

    if (argc < 2 || pipe(p) < 0)
        return 2;
    if (fork() == 0) {
        dup2(p[1], STDOUT_FILENO);
        close(p[0]);
        close(p[1]);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    close(p[1]);
    while ((n = read(p[0], buffer, sizeof(buffer))) > 0)
        if (write(STDOUT_FILENO, buffer, (size_t)n) != n)
            return 1;
    if (wait(&status) < 0 || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}
