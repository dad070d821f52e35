/* SPDX-License-Identifier: Apache-2.0 */

/* A line that cannot be written now, because the job is in the middle of one of its own, waits for
 * the end of that line, but not for long: a progress bar never ends its line. Then ours begins on
 * a new one. Standard error is never waited for: if its reader does not read, lines are kept, and
 * beyond LINES_MAX the oldest are dropped. */

#include "cli/say.h"

#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PATIENCE_US  (300 * USEC_PER_MSEC)
#define LINES_MAX    256
#define LINE_MAX_LEN 1024
#define COLUMNS_MIN  40 /* narrower: lines are left to the terminal */
#define COLUMNS      80 /* where there is no terminal */
#define PREFIX       "reknit:"

struct say {
    sd_event_source *patience;
    bool quiet, terminal, color, raw, mid_line, alone;
    VEC(char *) waiting;
};

static bool can_write(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) > 0;
}

/* At most what a pipe that can be written to takes at once; so it does not wait for its reader. */
static void write_out(const struct strbuf *b)
{
    size_t done = 0;

    while (done < b->len) {
        size_t most = b->len - done < PIPE_BUF ? b->len - done : PIPE_BUF;
        ssize_t n = done > 0 && !can_write() ? -1 : write(STDERR_FILENO, b->s + done, most);

        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

/* Columns for the text of a line, behind PREFIX; 0 = no terminal, any length. */
static size_t columns(const struct say *s)
{
    struct winsize size;

    if (!s->terminal || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < COLUMNS_MIN)
        return 0;
    return size.ws_col - strlen(PREFIX) - 1;
}

size_t say_columns(const struct say *s)
{
    size_t width = columns(s);

    return width > 0 ? width : COLUMNS - strlen(PREFIX) - 1;
}

/* A long line goes on below its own text. */
static void add_line(const struct say *s, const char *text, struct strbuf *out)
{
    const char *end = s->raw ? "\r\n" : "\n";
    size_t width = columns(s), n;

    strbuf_addf(out, "%s%s%s ", s->color ? "\033[1;36m" : "", PREFIX, s->color ? "\033[0m" : "");
    for (;;) {
        n = width > 0 ? str_fit(text, width) : strlen(text);
        strbuf_add(out, text, n);
        while (out->s[out->len - 1] == ' ')
            out->len--;
        strbuf_adds(out, end);
        text += n + strspn(text + n, " ");
        if (*text == '\0')
            return;
        strbuf_addf(out, "%*s ", (int)strlen(PREFIX), "");
    }
}

static void write_waiting(struct say *s)
{
    size_t n = 0;

    while (n < s->waiting.n && can_write()) {
        _cleanup_strbuf_ struct strbuf b = {0};

        if (s->mid_line)
            strbuf_adds(&b, s->raw ? "\r\n" : "\n");
        s->mid_line = false;
        add_line(s, s->waiting.v[n], &b);
        write_out(&b);
        free(s->waiting.v[n++]);
    }
    if (n > 0)
        memmove(s->waiting.v, s->waiting.v + n, (s->waiting.n - n) * sizeof(s->waiting.v[0]));
    s->waiting.n -= n;
}

static void arm(struct say *s)
{
    timer_arm(s->patience, mono_us() + PATIENCE_US);
}

static int on_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct say *s = userdata;

    write_waiting(s);
    if (s->waiting.n > 0)
        arm(s);
    return 0;
}

void say_set_mid_line(struct say *s, bool mid_line)
{
    s->mid_line = mid_line;
    if (!mid_line)
        write_waiting(s);
}

void say_set_alone(struct say *s, bool alone)
{
    s->alone = alone;
    if (alone)
        write_waiting(s);
}

void say_set_raw(struct say *s, bool raw)
{
    s->raw = raw;
}

static __attribute__((format(printf, 2, 0))) void add(struct say *s, const char *format, va_list ap)
{
    char text[LINE_MAX_LEN];

    vsnprintf(text, sizeof(text), format, ap);
    if (s->waiting.n == LINES_MAX) {
        free(s->waiting.v[0]);
        VEC_REMOVE(&s->waiting, 0);
    }
    *VEC_PUSH(&s->waiting) = xstrdup(text);
    if (!s->mid_line || s->alone)
        write_waiting(s);
    if (s->waiting.n > 0)
        arm(s);
}

void say(struct say *s, const char *format, ...)
{
    va_list ap;

    if (s->quiet)
        return;
    va_start(ap, format);
    add(s, format, ap);
    va_end(ap);
}

void say_loud(struct say *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add(s, format, ap);
    va_end(ap);
}

struct say *say_new(sd_event *event, bool quiet)
{
    struct say *s = xnew(struct say);

    s->quiet = quiet;
    s->alone = true;
    s->terminal = isatty(STDERR_FILENO);
    s->color = s->terminal && !getenv("NO_COLOR");
    if (timer_new(event, on_patience, s, &s->patience) < 0)
        return say_free(s);
    return s;
}

struct say *say_free(struct say *s)
{
    if (!s)
        return NULL;
    write_waiting(s);
    VEC_FOREACH (&s->waiting, line)
        free(*line);
    VEC_DONE(&s->waiting);
    sd_event_source_disable_unref(s->patience);
    free(s);
    return NULL;
}
