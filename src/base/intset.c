/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intset.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void intset_done(struct intset *s)
{
    free(s->v);
    memset(s, 0, sizeof(*s));
}

void intset_clear(struct intset *s)
{
    s->n = 0;
    s->refused = 0;
}

/* Index of the first member that is not below value. */
static size_t lower_bound(const struct intset *s, int32_t value)
{
    if (s->n > 0 && s->v[s->n - 1] < value)
        return s->n; /* the common case: ranks arrive in order */
    return VEC_BISECT(s, member, *member < value);
}

bool intset_has(const struct intset *s, int32_t value)
{
    size_t i = lower_bound(s, value);

    return i < s->n && s->v[i] == value;
}

bool intset_add(struct intset *s, int32_t value)
{
    size_t i = lower_bound(s, value);

    if (value < 0 || (i < s->n && s->v[i] == value))
        return false;
    if (s->n >= INTSET_LIMIT) {
        s->refused++;
        return false;
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 8;
        s->v = xreallocarray(s->v, s->cap, sizeof(s->v[0]));
    }
    memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(s->v[0]));
    s->v[i] = value;
    s->n++;
    return true;
}

void intset_union(struct intset *s, const struct intset *other)
{
    for (size_t i = 0; i < other->n; i++)
        intset_add(s, other->v[i]);
}

void intset_format(const struct intset *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->n;) {
        size_t last = i;

        while (last + 1 < s->n && s->v[last + 1] == s->v[last] + 1)
            last++;
        strbuf_addf(out, "%s%" PRId32, i ? "," : "", s->v[i]);
        if (last > i)
            strbuf_addf(out, "%c%" PRId32, last > i + 1 ? '-' : ',', s->v[last]);
        i = last + 1;
    }
}

static int parse_number(const char **text, int32_t *ret)
{
    char *end;
    long v;

    if (**text < '0' || **text > '9')
        return -EINVAL;
    errno = 0;
    v = strtol(*text, &end, 10);
    if (errno == ERANGE || v > INT32_MAX)
        return -ERANGE;
    *text = end;
    *ret = (int32_t)v;
    return 0;
}

int intset_parse(struct intset *s, const char *text)
{
    while (*text) {
        int32_t first, last;
        int r = parse_number(&text, &first);

        if (r < 0)
            return r;
        last = first;
        if (*text == '-') {
            text++;
            r = parse_number(&text, &last);
            if (r < 0)
                return r;
        }
        if (last < first || last - first >= INTSET_LIMIT)
            return -ERANGE;
        for (int32_t v = first; v <= last; v++)
            intset_add(s, v);
        if (*text && *text != ',')
            return -EINVAL;
        text += *text == ',';
        text += strspn(text, " ");
    }
    return 0;
}
