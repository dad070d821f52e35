/* SPDX-License-Identifier: Apache-2.0 */

/* The journal is thinned out a little at a time, so that nobody waits for it: much of it only while
 * there is a backlog. A disk that cannot be written is no trouble of its own: the pump says so. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/timer.h"
#include "journal/thin.h"

#include <stdlib.h>

#define FIRST  (30 * USEC_PER_SEC)
#define EVERY  (60 * USEC_PER_SEC)
#define AGAIN  (200 * USEC_PER_MSEC)
#define EVENTS 500

struct keeping {
    struct daemon *d;
    sd_event_source *timer;
    bool failing; /* said so */
};

static int on_timer(sd_event_source *s, uint64_t usec, void *ctx)
{
    struct keeping *k = ctx;
    const struct daemon_config *c = k->d->config;
    struct journal_keep keep = {.now = pump_now(k->d->pump),
                                .detail = c->journal.detail,
                                .newest = c->journal.newest,
                                .ended = c->journal.keep};
    struct err e = {0};
    int r = pump_is_tilted(k->d->pump) ? 0 : journal_thin(k->d->journal, &keep, EVENTS, &e);

    if (r < 0 && !k->failing)
        log_warning("the journal cannot be thinned out: %s", e.text);
    k->failing = r < 0;
    timer_arm(k->timer, mono_us() + (r > 0 ? AGAIN : EVERY));
    return 0;
}

struct keeping *keeping_new(struct daemon *d)
{
    struct keeping *k = xnew(struct keeping);

    k->d = d;
    if (timer_new(d->event, on_timer, k, &k->timer) < 0)
        return keeping_free(k);
    timer_arm(k->timer, mono_us() + FIRST);
    return k;
}

struct keeping *keeping_free(struct keeping *k)
{
    if (!k)
        return NULL;
    sd_event_source_disable_unref(k->timer);
    free(k);
    return NULL;
}
