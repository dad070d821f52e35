/* SPDX-License-Identifier: Apache-2.0 */

/* The records of the last list, in an open hash table of their ids that is never more than half
 * full, and never smaller than it was. Each round marks what it sees; what is not marked at the end
 * is gone. */

#include "slurm/diff.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "slurm/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct told {
    char *id, *text; /* id NULL = a free place */
    bool seen;
};

struct diff {
    struct told *v;
    size_t size, n; /* size is a power of two, or 0 */
    bool told, full, changed;
};

/* While a list is written: whether a comma is due is seen from what stands before. */
static void comma(struct strbuf *out)
{
    if (out->s[out->len - 1] != '[')
        strbuf_addc(out, ',');
}

struct diff *diff_new(void)
{
    return xnew(struct diff);
}

void diff_forget(struct diff *d)
{
    for (size_t i = 0; i < d->size; i++) {
        free(d->v[i].id);
        free(d->v[i].text);
    }
    free(d->v);
    *d = (struct diff){0};
}

struct diff *diff_free(struct diff *d)
{
    if (d) {
        diff_forget(d);
        free(d);
    }
    return NULL;
}

static struct told *place_of(struct told *v, size_t size, const char *id)
{
    size_t i = hash_bytes(HASH_INIT, id, strlen(id)) & (size - 1);

    while (v[i].id && !streq(v[i].id, id))
        i = (i + 1) & (size - 1);
    return &v[i];
}

/* Moves all that stay into a table of that size; what is gone is freed. */
static void rebuild(struct diff *d, size_t size, bool seen_only)
{
    struct told *v = xcalloc(size, sizeof(*v));

    d->n = 0;
    for (size_t i = 0; i < d->size; i++) {
        if (!d->v[i].id)
            continue;
        if (seen_only && !d->v[i].seen) {
            free(d->v[i].id);
            free(d->v[i].text);
            continue;
        }
        *place_of(v, size, d->v[i].id) = d->v[i];
        d->n++;
    }
    free(d->v);
    d->v = v;
    d->size = size;
}

void diff_begin(struct diff *d, const char *list, struct strbuf *out)
{
    bool full = !d || !d->told;

    if (d) {
        d->told = true;
        d->full = full;
        d->changed = full;
        for (size_t i = 0; i < d->size; i++)
            d->v[i].seen = false;
    }
    strbuf_addf(out, "\"full\":%s,\"%s\":[", full ? "true" : "false", list);
}

void diff_add(struct diff *d, const char *id, const json_t *record, struct strbuf *out)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    struct told *t;

    json_add(&text, record);
    if (d) {
        if (2 * (d->n + 1) > d->size)
            rebuild(d, d->size ? 2 * d->size : 64, false);
        t = place_of(d->v, d->size, id);
        if (t->id) {
            t->seen = true;
            if (streq(t->text, text.s))
                return;
            free(t->text);
        } else {
            t->id = xstrdup(id);
            t->seen = true;
            d->n++;
        }
        t->text = xstrdup(text.s);
        d->changed = true;
    }
    comma(out);
    strbuf_add(out, text.s, text.len);
}

bool diff_end(struct diff *d, struct strbuf *out)
{
    size_t gone = 0;

    strbuf_addc(out, ']');
    if (!d)
        return true;
    if (d->full)
        return true;
    strbuf_adds(out, ",\"gone\":[");
    for (size_t i = 0; i < d->size; i++) {
        if (!d->v[i].id || d->v[i].seen)
            continue;
        json_t *id = text_json(d->v[i].id, TEXT_MAX);

        comma(out);
        json_add(out, id);
        json_decref(id);
        gone++;
    }
    strbuf_addc(out, ']');
    if (gone > 0)
        rebuild(d, d->size, true);
    return d->changed || gone > 0;
}
