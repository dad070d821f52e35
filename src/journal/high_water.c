/* SPDX-License-Identifier: Apache-2.0 */

/* One number of a fixed width, so that it is overwritten in place: that needs no room on a disk,
 * and a reader sees the one or the other. */

#include "journal/high_water.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define DIGITS   18 /* of them, one fits any int64_t */
#define TEXT_LEN (DIGITS + 1)

int high_water_create(const char *journal)
{
    _cleanup_(freep) char *path = xasprintf("%s-last", journal);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);

    return fd < 0 ? -errno : fd;
}

void high_water_note(int fd, uint64_t seq)
{
    char text[DIGITS + 16];
    int n = snprintf(text, sizeof(text), "%0*" PRIu64 "\n", DIGITS, seq);

    if (fd >= 0 && n == TEXT_LEN && pwrite(fd, text, (size_t)n, 0) < n)
        return; /* a full disk: the number before it stays */
}

uint64_t high_water_read(const char *journal)
{
    _cleanup_(freep) char *path = xasprintf("%s-last", journal);
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[TEXT_LEN + 1] = "";
    long long seq;

    if (fd < 0 || pread(fd, text, TEXT_LEN, 0) != TEXT_LEN || text[DIGITS] != '\n')
        return 0;
    text[DIGITS] = '\0';
    return str_to_i64(text, &seq) == 0 && seq > 0 ? (uint64_t)seq : 0;
}
