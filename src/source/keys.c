/* SPDX-License-Identifier: Apache-2.0 */

/* Read only while we are in the terminal's foreground: a read in the background stops the whole
 * process (SIGTTIN). What the job does not read waits in one buffer; meanwhile we do not read, and
 * the terminal holds what is typed. */

#include "source/keys.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/timer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RETRY_US 500000 /* while in the background, or while the job does not read */

struct keys {
    const struct terminal *terminal;
    int master;
    sd_event_source *readable, *retry;
    size_t len;
    char buffer[1024];
};

static void pause_reading(struct keys *k)
{
    sd_event_source_set_enabled(k->readable, SD_EVENT_OFF);
    timer_arm(k->retry, mono_us() + RETRY_US);
}

static void write_keys(struct keys *k)
{
    ssize_t n;

    if (k->len == 0)
        return;
    n = write(k->master, k->buffer, k->len);
    if (n > 0) {
        k->len -= (size_t)n;
        memmove(k->buffer, k->buffer + n, k->len);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        k->len = 0; /* the job has closed its terminal */
    }
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    struct keys *k = userdata;
    ssize_t n;

    if (!terminal_is_foreground(k->terminal) || k->len > 0) {
        write_keys(k);
        pause_reading(k);
        return 0;
    }
    n = read(fd, k->buffer, sizeof(k->buffer));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        sd_event_source_set_enabled(s, SD_EVENT_OFF); /* the terminal is gone */
        return 0;
    }
    k->len = n > 0 ? (size_t)n : 0;
    write_keys(k);
    return 0;
}

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct keys *k = userdata;

    sd_event_source_set_enabled(k->readable, SD_EVENT_ON);
    return 0;
}

struct keys *keys_new(sd_event *event, const struct terminal *t, int master)
{
    struct keys *k = xnew(struct keys);

    k->terminal = t;
    k->master = master;
    if (sd_event_add_io(event, &k->readable, STDIN_FILENO, EPOLLIN, on_readable, k) < 0 ||
        timer_new(event, on_retry, k, &k->retry) < 0)
        return keys_free(k);
    return k;
}

struct keys *keys_free(struct keys *k)
{
    if (!k)
        return NULL;
    sd_event_source_disable_unref(k->readable);
    sd_event_source_disable_unref(k->retry);
    free(k);
    return NULL;
}
