/* SPDX-License-Identifier: Apache-2.0 */

/* A remembered line is kept as the values that each of its bytes may have: from `low` on, `more` of
 * them. That is one value, or ten where a digit stands. So a byte fits if byte - low <= more, which
 * needs no branch and is asked of many bytes at once. LF stands only at the end of a line: where
 * all bytes fit, the other line ends there, too, and its end need not be sought before.
 *
 * Most lines are like the one before. Where they are not, the length tells which few they may be
 * like. */

#include "extract/alike.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Bytes compared at once, as many as every processor can. Lines are filled up to a multiple, with
 * what fits all bytes. */
typedef unsigned char lane __attribute__((vector_size(16)));
typedef signed char flags __attribute__((vector_size(16))); /* -1 = true */

struct form {
    size_t len;        /* with LF */
    uint64_t used;     /* when it was last, in lines that were found to be alike */
    struct form *next; /* of the same length */
    unsigned char low[ALIKE_BYTES_MAX], more[ALIKE_BYTES_MAX];
};

struct word {
    char *s;
    size_t len;
};

struct alike {
    size_t n;
    struct form *forms[ALIKE_LINES_MAX];
    struct form *by_length[ALIKE_BYTES_MAX + 1];
    struct form *last; /* used */
    uint64_t uses;
    VEC(struct word) refused;
};

struct alike *alike_new(void)
{
    return xnew(struct alike);
}

struct alike *alike_free(struct alike *a)
{
    if (!a)
        return NULL;
    for (size_t i = 0; i < a->n; i++)
        free(a->forms[i]);
    VEC_FOREACH (&a->refused, w)
        free(w->s);
    VEC_DONE(&a->refused);
    free(a);
    return NULL;
}

/* Small letters, and one digit for all. */
static void fold(char *dst, const char *src, size_t len)
{
    for (size_t i = 0; i < len; i++)
        dst[i] = isdigit((unsigned char)src[i]) ? '0' : (char)tolower((unsigned char)src[i]);
}

void alike_refuse(struct alike *a, const char *word, size_t len)
{
    struct word w = {xmalloc(len), len};

    fold(w.s, word, len);
    if (memchr(w.s, '0', len))
        *VEC_PUSH(&a->refused) = w;
    else
        free(w.s);
}

static bool is_refused(const struct alike *a, const char *line, size_t len)
{
    char folded[ALIKE_BYTES_MAX];

    fold(folded, line, len);
    VEC_FOREACH (&a->refused, w)
        if (memmem(folded, len, w->s, w->len))
            return true;
    return false;
}

/* Takes the form that was not used for longest out of its place. */
static struct form *forget_one(struct alike *a)
{
    struct form *oldest = a->forms[0], **link;

    for (size_t i = 1; i < a->n; i++)
        if (a->forms[i]->used < oldest->used)
            oldest = a->forms[i];
    for (link = &a->by_length[oldest->len]; *link != oldest; link = &(*link)->next)
        ;
    *link = oldest->next;
    if (a->last == oldest)
        a->last = NULL;
    return oldest;
}

static void use(struct alike *a, struct form *form)
{
    form->used = ++a->uses;
    a->last = form;
}

bool alike_remember(struct alike *a, const char *line, size_t len)
{
    struct form *form;

    assert(len > 0 && memchr(line, '\n', len) == line + len - 1);
    if (len > ALIKE_BYTES_MAX || is_refused(a, line, len))
        return false;
    form = a->n < ALIKE_LINES_MAX ? (a->forms[a->n++] = xnew(struct form)) : forget_one(a);
    memset(form->low, 0, sizeof(form->low));
    memset(form->more, UINT8_MAX, sizeof(form->more));
    for (size_t i = 0; i < len; i++) {
        bool is_digit = isdigit((unsigned char)line[i]);

        form->low[i] = is_digit ? '0' : (unsigned char)line[i];
        form->more[i] = is_digit ? 9 : 0;
    }
    form->len = len;
    form->next = a->by_length[len];
    a->by_length[len] = form;
    use(a, form);
    return true;
}

static lane load(const void *p)
{
    lane v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Whether the bytes at data are such a line. */
static bool fits(const struct form *form, const char *data, size_t len)
{
    if (form->len + sizeof(lane) > len)
        return false;
    for (size_t at = 0; at < form->len; at += sizeof(lane)) {
        flags within = load(data + at) - load(form->low + at) <= load(form->more + at);
        uint64_t all[2];

        memcpy(all, &within, sizeof(all));
        if ((all[0] & all[1]) != UINT64_MAX)
            return false;
    }
    return true;
}

/* What the line at data is like, NULL = nothing. */
static struct form *find(const struct alike *a, const char *data, size_t len)
{
    const char *lf;
    struct form *form;

    if (a->last && fits(a->last, data, len))
        return a->last;
    lf = memchr(data, '\n', len < ALIKE_BYTES_MAX ? len : ALIKE_BYTES_MAX);
    form = lf ? a->by_length[lf + 1 - data] : NULL;
    while (form && !fits(form, data, len))
        form = form->next;
    return form;
}

size_t alike_skip(struct alike *a, const char *data, size_t len, uint64_t *lines)
{
    struct form *form;
    size_t at = 0;

    while ((form = find(a, data + at, len - at))) {
        use(a, form);
        at += form->len;
        ++*lines;
    }
    return at;
}
