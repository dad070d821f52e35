/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_WATCH_H
#define REKNIT_CLI_WATCH_H

/* Everything that is seen of one attempt: its output is passed on, kept in the log and scanned; its
 * processes are sampled when it makes no progress. Out come signals. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/signal.h"
#include "extract/matcher.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

struct watch_handlers {
    void (*signal)(void *ctx, const struct signal *s);
    void (*mid_line)(void *ctx, bool mid_line); /* of what shares the place with our stderr */
    void (*log_trouble)(void *ctx, int error);  /* the log cannot be written; said once */
    void (*reader_gone)(void *ctx);             /* nobody reads our output any more */
    void (*refused)(void *ctx, int target, int error); /* a file takes no output; said once */
    void (*drained)(void *ctx);   /* the output was read and scanned to its end, signals are out */
    void (*delivered)(void *ctx); /* later, if the reader paused: it took all of it */
};

struct watch_options {
    sd_event *event;
    const char *log_path;
    uint64_t log_limit; /* bytes */
    bool log_may_fail;  /* without one it goes on: that is log_trouble */
    bool terminal;      /* the output comes from a pseudo-terminal */
};

struct watch;

int watch_new(const struct watch_options *o, const struct watch_handlers *handlers, void *ctx,
              struct watch **ret, struct err *e);
struct watch *watch_free(struct watch *w);
DEFINE_CLEANUP(struct watch *, watch_free);

/* `in` is the watch's from now on; 0 or negative errno. At most two. */
int watch_add_stream(struct watch *w, int in, int out);

/* Scanning begins; borrowed. Before, nothing may come: call it ere the loop runs. */
void watch_set_matcher(struct watch *w, struct matcher *m);

void watch_set_root(struct watch *w, pid_t root); /* the processes below it are the attempt's */
void watch_first_exited(struct watch *w);         /* the end is near: no waiting for the reader */
void watch_processes_gone(struct watch *w);       /* what is in the streams is all there will be */

uint64_t watch_log_lost(const struct watch *w); /* bytes of the output that are not in the log */
uint64_t watch_refused(const struct watch *w);  /* bytes that could not be passed on to a file */

/* The output was read to its end, and the reader of our output has taken everything. */
bool watch_is_delivered(const struct watch *w);
size_t watch_undelivered(const struct watch *w); /* bytes it has not, or never will */

/* What the last attempt's reader has not taken goes out before the output of this one. */
void watch_inherit(struct watch *w, struct watch *old);

/* Writes a page about every process beside the log. 0 and the path, or negative errno. */
int watch_inspect(struct watch *w, char *ret_path, size_t size);

#endif
