/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/held.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"

#include <stdlib.h>

#define AGAIN (200 * USEC_PER_MSEC)

struct held_message {
    struct node_message m;
    struct agent_receipt receipt;
    usec_t came; /* monotonic */
};

struct held {
    struct held_handlers handlers;
    void *ctx;
    sd_event_source *timer;
    VEC(struct held_message) list; /* oldest first */
};

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct held *h = userdata;
    size_t kept = 0;

    for (size_t i = 0; i < h->list.n; i++) {
        struct held_message *x = &h->list.v[i];

        if (!h->handlers.again(h->ctx, &x->m, &x->receipt, x->came))
            h->list.v[kept++] = *x;
    }
    h->list.n = kept;
    if (kept > 0)
        timer_arm(h->timer, mono_us() + AGAIN);
    return 0;
}

struct held *held_new(sd_event *event, const struct held_handlers *handlers, void *ctx)
{
    struct held *h = xnew(struct held);

    h->handlers = *handlers;
    h->ctx = ctx;
    return timer_new(event, on_timer, h, &h->timer) < 0 ? held_free(h) : h;
}

struct held *held_free(struct held *h)
{
    if (!h)
        return NULL;
    sd_event_source_disable_unref(h->timer);
    VEC_DONE(&h->list);
    free(h);
    return NULL;
}

enum agent_taken held_add(struct held *h, const struct node_message *m,
                          const struct agent_receipt *r)
{
    bool spooled = m->kind == NODE_MESSAGE_EXIT || m->kind == NODE_MESSAGE_GONE;

    if (!spooled && m->kind != NODE_MESSAGE_LOGS)
        return AGENT_TAKEN;
    if (h->list.n >= (spooled ? HELD_MAX : HELD_LOGS))
        return AGENT_NO_ROOM;
    *VEC_PUSH(&h->list) = (struct held_message){.m = *m, .receipt = *r, .came = mono_us()};
    if (!timer_is_armed(h->timer))
        timer_arm(h->timer, mono_us() + AGAIN);
    return AGENT_TAKEN_OPEN;
}

bool held_is_before(const struct held *h, const struct node_message *m)
{
    VEC_FOREACH (&h->list, x)
        if (x->m.job == m->job && streq(x->m.node, m->node))
            return true;
    return false;
}

void held_hear(struct held *h, const struct node_message *m)
{
    for (size_t i = h->list.n; m->kind != NODE_MESSAGE_GONE && i-- > 0;) {
        const struct held_message *x = &h->list.v[i];

        if (x->m.kind != NODE_MESSAGE_GONE || x->m.job != m->job || x->m.uid != m->uid ||
            !streq(x->m.node, m->node))
            continue;
        h->handlers.forgotten(h->ctx, &x->receipt);
        VEC_REMOVE(&h->list, i);
    }
}
