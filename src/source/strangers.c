/* SPDX-License-Identifier: Apache-2.0 */
#include "source/strangers.h"

#include "base/str.h"

static struct stranger *find(const strangers *s, const void *who)
{
    VEC_FOREACH (s, x)
        if (x->who == who)
            return x;
    return NULL;
}

void strangers_add(strangers *s, void *who, const char *peer, bool by_root)
{
    struct stranger *x = VEC_PUSH(s);

    *x = (struct stranger){.who = who, .by_root = by_root};
    STR_COPY(x->peer, peer);
}

void strangers_greeted(strangers *s, const void *who)
{
    struct stranger *x = find(s, who);

    if (x)
        x->greeted = true;
}

void strangers_remove(strangers *s, const void *who)
{
    const struct stranger *x = find(s, who);

    if (x)
        VEC_REMOVE(s, (size_t)(x - s->v));
}

/* peer: from there, and of the same kind; NULL = from anywhere. */
static void *oldest(const strangers *s, const char *peer, bool by_root, size_t *ret_count)
{
    const struct stranger *first = NULL;

    *ret_count = 0;
    VEC_FOREACH (s, x) {
        if (peer && (x->by_root != by_root || !streq(x->peer, peer)))
            continue;
        (*ret_count)++;
        if (!first || (first->greeted && !x->greeted))
            first = x;
    }
    return first ? first->who : NULL;
}

void *strangers_crowd(const strangers *s, const char *peer, bool by_root, size_t max)
{
    size_t n;
    void *who = oldest(s, peer, by_root, &n);

    return n >= max ? who : NULL;
}

void *strangers_first(const strangers *s)
{
    size_t n;

    return oldest(s, NULL, false, &n);
}

void strangers_done(strangers *s)
{
    VEC_DONE(s);
}
