/* SPDX-License-Identifier: Apache-2.0 */

/* Which files of a job cannot be read, as its readers say it now, for people. Of all it is known
 * how many there are, of the first few which, and why. */

#include "source/reading.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <string.h>

#define SHOWN_MAX 16 /* of an attempt at one place */

void reading_forget_unread(struct reading *j, struct reader_seen *s)
{
    j->n_unread -= s->unread;
    s->unread = false;
    if (!s->why)
        return;
    j->n_shown--;
    free(s->why);
    s->why = NULL;
}

void reading_note_file(struct reading *j, struct reader_seen *s, const struct reader_file *f)
{
    _cleanup_(freep) char *path = NULL;

    reading_forget_unread(j, s);
    if (!*f->trouble)
        return;
    s->unread = true;
    j->n_unread++;
    if (j->n_shown >= SHOWN_MAX)
        return;
    j->n_shown++;
    s->why = xnew(struct unread_log);
    path = reading_shorten(f->path);
    STR_COPY(s->why->path, path);
    STR_COPY(s->why->why, f->trouble);
}

uint32_t readers_unread(const struct readers *r, const char *job, unread_log_fn *fn, void *ctx)
{
    uint32_t n = 0;

    for (size_t i = reading_place(r, job); i < r->jobs.n && streq(r->jobs.v[i]->key, job); i++) {
        const struct reading *j = r->jobs.v[i];

        n += j->n_unread;
        if (j->n_shown == 0)
            continue;
        VEC_FOREACH (&j->seen, s)
            if (s->why)
                fn(ctx, s->why);
    }
    return n;
}
