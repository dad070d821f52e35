/* SPDX-License-Identifier: Apache-2.0 */

/* The flow: relay -> (log, scanner of the stream) -> coalesce -> signals; and activity -> signals.
 *
 * Activity is sampled only while progress is overdue: after one and a half times the usual time
 * between two steps, first often, then ever less, so that by any sensible timeout most of the
 * silence has been sampled. While our own reader blocks the job there are no samples: a job that
 * waits for us must not look hung. */

#include "cli/watch.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/timer.h"
#include "extract/scanner.h"
#include "source/activity.h"
#include "source/attempt_log.h"
#include "source/coalesce.h"
#include "source/relay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_MIN   (500 * USEC_PER_MSEC)
#define SAMPLE_MAX   (10 * USEC_PER_SEC)
#define SAMPLE_SLOW  (30 * USEC_PER_SEC) /* after ten minutes of silence */
#define SAMPLE_PART  5                   /* a sample lasts a fifth of the silence so far */
#define SAMPLE_COST  50 /* thousands of processes: a sample takes at most 1/50 of the time */
#define GAP_WEIGHT   8
#define SAME_MOMENT  (10 * USEC_PER_MSEC)
#define INSPECTS_MAX 100

struct watch {
    struct watch_handlers handlers;
    void *ctx;
    struct relay *relay;
    struct attempt_log *log;
    char *log_path;
    struct scanner *scanners[RELAY_STREAMS_MAX];
    bool beside_stderr[RELAY_STREAMS_MAX];
    unsigned n;
    struct coalesce *coalesce;
    struct activity *activity;
    sd_event_source *held, *sample;
    pid_t root;
    char node[NODE_NAME_LEN];
    usec_t progress_at; /* monotonic */
    usec_t usual_gap;   /* moving average between two signs of progress, 0 = not known */
    usec_t sample_age;  /* the next sample's length, planned */
    unsigned inspects;
    bool drained, log_trouble;
};

/* Of every step that is read, before most are left out. Several at once (ranks, a block that was
 * scanned together) are one. */
static void note_progress(struct watch *w, const struct signal *s, usec_t now)
{
    usec_t gap = now - w->progress_at;

    if (s->kind != SIGNAL_STEP && s->kind != SIGNAL_CHECKPOINT)
        return;
    w->progress_at = now;
    if (gap < SAME_MOMENT)
        return;
    w->usual_gap = w->usual_gap == 0 ? gap : w->usual_gap + (gap - w->usual_gap) / GAP_WEIGHT;
}

static void on_signal(void *ctx, const struct signal *s)
{
    struct watch *w = ctx;

    if (s->kind == SIGNAL_STEP) /* it comes up to a second late, maybe after a sample */
        activity_forget(w->activity);
    w->handlers.signal(w->ctx, s);
}

static void on_scanned(void *ctx, const struct signal *s)
{
    struct watch *w = ctx;
    usec_t now = mono_us();

    if (s->kind == SIGNAL_HIT && s->role == ROLE_NOISE)
        return;
    note_progress(w, s, now);
    coalesce_signal(w->coalesce, s, now);
}

static void flush_held(struct watch *w, bool all)
{
    usec_t due = coalesce_flush(w->coalesce, mono_us(), all);

    if (due != USEC_NEVER)
        timer_arm(w->held, due);
}

static int on_held(sd_event_source *source, uint64_t usec, void *userdata)
{
    flush_held(userdata, false);
    return 0;
}

static void report_mid_line(struct watch *w)
{
    bool mid_line = false;

    for (unsigned i = 0; i < w->n; i++)
        mid_line |= w->beside_stderr[i] && !relay_at_line_start(w->relay, i);
    w->handlers.mid_line(w->ctx, mid_line);
}

static void on_data(void *ctx, unsigned stream, const char *data, size_t len)
{
    struct watch *w = ctx;

    attempt_log_write(w->log, data, len);
    scanner_feed(w->scanners[stream], data, len);
    report_mid_line(w);
}

static void check_log(struct watch *w)
{
    if (w->log_trouble || attempt_log_error(w->log) == 0)
        return;
    w->log_trouble = true;
    w->handlers.log_trouble(w->ctx, attempt_log_error(w->log));
}

static void on_flush(void *ctx)
{
    struct watch *w = ctx;

    attempt_log_flush(w->log);
    check_log(w);
    for (unsigned i = 0; i < w->n; i++)
        scanner_flush(w->scanners[i]);
    flush_held(w, false);
}

static void on_reader_gone(void *ctx)
{
    struct watch *w = ctx;

    w->handlers.reader_gone(w->ctx);
}

static void on_refused(void *ctx, int target, int error)
{
    struct watch *w = ctx;

    w->handlers.refused(w->ctx, target, error);
}

static void on_delivered(void *ctx)
{
    struct watch *w = ctx;

    w->handlers.delivered(w->ctx);
}

static void on_ended(void *ctx)
{
    struct watch *w = ctx;

    for (unsigned i = 0; i < w->n; i++)
        scanner_finish(w->scanners[i]);
    flush_held(w, true);
    attempt_log_flush(w->log);
    w->drained = true;
    w->handlers.drained(w->ctx);
}

static usec_t next_sample(const struct watch *w, usec_t silence)
{
    usec_t age = silence / SAMPLE_PART, most = SAMPLE_MAX;

    if (silence > 10 * USEC_PER_MIN)
        most = SAMPLE_SLOW;
    return age < SAMPLE_MIN ? SAMPLE_MIN : age > most ? most : age;
}

static usec_t no_sooner(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

static int on_sample(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct watch *w = userdata;
    usec_t now = mono_us(), silence = now - w->progress_at;
    usec_t patience = w->usual_gap + w->usual_gap / 2, last = w->sample_age, next;

    if (patience < SAMPLE_MIN)
        patience = SAMPLE_MIN;
    next = patience - silence; /* progress came meanwhile: look again when that is overdue */
    if (silence >= patience) {
        next = w->sample_age = next_sample(w, silence);
        if (w->root > 0 && !relay_is_blocked(w->relay)) {
            activity_sample(w->activity, w->root, now, 2 * last + USEC_PER_SEC);
            next = w->sample_age = no_sooner(next, SAMPLE_COST * (mono_us() - now));
        }
    }
    timer_arm(source, mono_us() + next);
    return 0;
}

/* Whether `out` leads to where our standard error leads. */
static bool is_beside_stderr(int out)
{
    struct stat a, b;

    if (out == STDERR_FILENO || (isatty(out) && isatty(STDERR_FILENO)))
        return true;
    return fstat(out, &a) == 0 && fstat(STDERR_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int watch_add_stream(struct watch *w, int in, int out)
{
    int r = relay_add(w->relay, in, out);

    if (r < 0)
        return r;
    w->beside_stderr[w->n] = is_beside_stderr(out);
    w->n++;
    return 0;
}

void watch_set_matcher(struct watch *w, struct matcher *m)
{
    for (unsigned i = 0; i < w->n; i++) {
        struct entity here = {.rank = RANK_NONE, .local_rank = RANK_NONE};
        struct scanner_options o = {
            .file = i, .provenance = PROVENANCE_JOB_TEXT, .who = &here, .now_us = now_us()};

        STR_COPY(here.node, w->node);
        assert(!w->scanners[i]);
        w->scanners[i] = scanner_new(m, &o, on_scanned, w);
    }
}

void watch_set_root(struct watch *w, pid_t root)
{
    w->root = root;
}

void watch_first_exited(struct watch *w)
{
    relay_read_ahead(w->relay);
}

void watch_processes_gone(struct watch *w)
{
    w->root = 0;
    w->sample = sd_event_source_disable_unref(w->sample);
    relay_finish(w->relay);
}

uint64_t watch_log_lost(const struct watch *w)
{
    return attempt_log_lost(w->log);
}

uint64_t watch_refused(const struct watch *w)
{
    return relay_refused(w->relay);
}

bool watch_is_delivered(const struct watch *w)
{
    return w->drained && relay_owed(w->relay) == 0;
}

size_t watch_undelivered(const struct watch *w)
{
    return relay_owed(w->relay) + (size_t)relay_dropped(w->relay);
}

void watch_inherit(struct watch *w, struct watch *old)
{
    relay_inherit(w->relay, old->relay);
}

int watch_inspect(struct watch *w, char *ret_path, size_t size)
{
    _cleanup_(fclosep) FILE *f = NULL;
    char stamp[TIMESTAMP_TEXT_MAX];
    int fd;

    if (w->root <= 0)
        return -ESRCH;
    if (w->inspects == INSPECTS_MAX)
        return -E2BIG;
    snprintf(ret_path, size, "%s.inspect-%u", w->log_path, ++w->inspects);
    fd = open(ret_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    f = fdopen(fd, "w");
    if (!f)
        return -errno;
    fprintf(f, "The processes of the attempt at %s\n\n", timestamp_format(now_us(), stamp));
    return activity_report(w->activity, w->root, f);
}

static int watch_init(struct watch *w, const struct watch_options *o, struct err *e)
{
    static const struct relay_handlers relay_handlers = {.data = on_data,
                                                         .flush = on_flush,
                                                         .reader_gone = on_reader_gone,
                                                         .refused = on_refused,
                                                         .ended = on_ended,
                                                         .delivered = on_delivered};
    int r = attempt_log_open(o->log_path, o->log_limit, o->terminal, &w->log, e);

    if (r < 0 && !o->log_may_fail)
        return r;
    if (r < 0)
        w->log = attempt_log_open_later(o->log_path, o->log_limit, o->terminal);
    w->relay = relay_new(o->event, &relay_handlers, w);
    if (!w->relay)
        return err_set(e, -ENOMEM, "cannot set up the relay");
    w->coalesce = coalesce_new(on_signal, w);
    w->activity = activity_new(on_signal, w);
    r = timer_new(o->event, on_held, w, &w->held);
    if (r >= 0)
        r = timer_new(o->event, on_sample, w, &w->sample);
    if (r < 0)
        return err_set(e, r, "event loop: %s", strerror(-r));
    timer_arm(w->sample, mono_us() + SAMPLE_MIN);
    return 0;
}

int watch_new(const struct watch_options *o, const struct watch_handlers *handlers, void *ctx,
              struct watch **ret, struct err *e)
{
    _cleanup_(watch_freep) struct watch *w = xnew(struct watch);
    int r;

    w->handlers = *handlers;
    w->ctx = ctx;
    w->log_path = xstrdup(o->log_path);
    w->progress_at = mono_us();
    w->sample_age = SAMPLE_MIN;
    if (gethostname(w->node, sizeof(w->node) - 1) < 0)
        w->node[0] = '\0';
    r = watch_init(w, o, e);
    if (r < 0)
        return r;
    *ret = TAKE(w);
    return 0;
}

struct watch *watch_free(struct watch *w)
{
    if (!w)
        return NULL;
    sd_event_source_disable_unref(w->sample);
    sd_event_source_disable_unref(w->held);
    activity_free(w->activity);
    coalesce_free(w->coalesce);
    for (unsigned i = 0; i < w->n; i++)
        scanner_free(w->scanners[i]);
    attempt_log_free(w->log);
    relay_free(w->relay);
    free(w->log_path);
    free(w);
    return NULL;
}
