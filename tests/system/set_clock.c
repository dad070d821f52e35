/* SPDX-License-Identifier: Apache-2.0 */

/* LD_PRELOAD: the wall clock of one program, set by whoever writes microseconds (eight bytes) into
 * the file that REKNIT_TEST_CLOCK names. Its other clocks and timers are left alone. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define USEC 1000000

static const int64_t *offset;

static __attribute__((constructor)) void begin(void)
{
    const char *path = getenv("REKNIT_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    offset = p != MAP_FAILED ? p : NULL;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int r = (int)syscall(SYS_clock_gettime, id, ts);
    int64_t us = offset ? __atomic_load_n(offset, __ATOMIC_RELAXED) : 0;

    if (r == 0 && id == CLOCK_REALTIME)
        ts->tv_sec += us / USEC;
    return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;
    int r = clock_gettime(CLOCK_REALTIME, &ts);

    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return r;
}

time_t time(time_t *t)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (t)
        *t = ts.tv_sec;
    return ts.tv_sec;
}
