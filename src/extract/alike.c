/* SPDX-License-Identifier: Apache-2.0 */

/* A remembered line is kept as the values that each of its bytes may have: from `low` on, `more` of
 * them. That is one value, or ten where a digit stands. So a byte fits if byte - low <= more, which
 * needs no branch and is asked of many bytes at once. LF stands only at the end of a line: where
 * all bytes fit, the other line ends there, too, and its end need not be sought before.
 *
 * Lines are kept in the order of their last use: most lines are like the one before. */

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
    unsigned char low[ALIKE_BYTES_MAX], more[ALIKE_BYTES_MAX];
};

struct word {
    char *s;
    size_t len;
};

struct alike {
    size_t n;
    struct {
        size_t len; /* with LF */
        struct form *form;
    } lines[ALIKE_LINES_MAX];
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
        free(a->lines[i].form);
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

/* Puts the line at i first. */
static void use(struct alike *a, size_t i)
{
    typeof(a->lines[0]) used = a->lines[i];

    memmove(&a->lines[1], &a->lines[0], i * sizeof(used));
    a->lines[0] = used;
}

bool alike_remember(struct alike *a, const char *line, size_t len)
{
    struct form *form;

    assert(len > 0 && memchr(line, '\n', len) == line + len - 1);
    if (len > ALIKE_BYTES_MAX || is_refused(a, line, len))
        return false;
    if (a->n < ALIKE_LINES_MAX)
        a->lines[a->n++].form = xnew(struct form);
    use(a, a->n - 1);
    a->lines[0].len = len;
    form = a->lines[0].form;
    memset(form->low, 0, sizeof(form->low));
    memset(form->more, UINT8_MAX, sizeof(form->more));
    for (size_t i = 0; i < len; i++) {
        bool is_digit = isdigit((unsigned char)line[i]);

        form->low[i] = is_digit ? '0' : (unsigned char)line[i];
        form->more[i] = is_digit ? 9 : 0;
    }
    return true;
}

static lane load(const void *p)
{
    lane v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Whether the bytes at data are such a line. */
static bool fits(const struct form *form, size_t len, const char *data)
{
    for (size_t at = 0; at < len; at += sizeof(lane)) {
        flags within = load(data + at) - load(form->low + at) <= load(form->more + at);
        uint64_t all[2];

        memcpy(all, &within, sizeof(all));
        if ((all[0] & all[1]) != UINT64_MAX)
            return false;
    }
    return true;
}

/* The length of the line at data if it is like the first one remembered, or else like any; 0 = it
 * is not. */
static size_t match_line(struct alike *a, const char *data, size_t len)
{
    const char *end;
    size_t n = a->n > 0 ? a->lines[0].len : 0;

    if (n + sizeof(lane) <= len && n > 0 && fits(a->lines[0].form, n, data))
        return n;
    end = memchr(data, '\n', len < ALIKE_BYTES_MAX ? len : ALIKE_BYTES_MAX);
    n = end ? (size_t)(end - data) + 1 : 0;
    for (size_t i = 1; i < a->n && n > 0 && n + sizeof(lane) <= len; i++)
        if (a->lines[i].len == n && fits(a->lines[i].form, n, data)) {
            use(a, i);
            return n;
        }
    return 0;
}

size_t alike_skip(struct alike *a, const char *data, size_t len, uint64_t *lines)
{
    size_t at = 0, n;

    while ((n = match_line(a, data + at, len - at)) > 0) {
        at += n;
        ++*lines;
    }
    return at;
}
