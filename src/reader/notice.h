/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_NOTICE_H
#define REKNIT_READER_NOTICE_H

/* inotify, slowed down: whatever happens to the files, at most ten times a second it is told. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#define NOTICE_NONE (-1)

struct notice;

/* changed(): what was watched under that number has changed; NOTICE_NONE: anything may have.
 * settled(): it follows all of a moment's changes. */
struct notice_handlers {
    void (*changed)(void *ctx, int number);
    void (*settled)(void *ctx);
};

struct notice *notice_new(sd_event *event, const struct notice_handlers *handlers, void *ctx);
struct notice *notice_free(struct notice *n);

/* A number, the same for the same file; NOTICE_NONE: it cannot be watched, so ask it now and then.
 * n may be NULL. */
int notice_file(struct notice *n, int fd);             /* its text */
int notice_folder(struct notice *n, const char *path); /* names in it */
void notice_drop(struct notice *n, int number);

#endif
