/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_TESTS_LISTENS_H
#define REKNIT_TESTS_LISTENS_H

#include "base/cleanup.h"
#include "base/str.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Whether a spawner takes connections there: the name of a socket is there a moment before. */
static inline bool spawner_listens(const char *path)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    STR_COPY(a.sun_path, path);
    return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

#endif
