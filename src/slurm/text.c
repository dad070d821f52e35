/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/text.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hostlist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

json_t *text_json(const char *s, size_t max)
{
    size_t len = s ? strnlen(s, max + 1) : 0, size;
    _cleanup_(freep) char *cut = NULL;
    _cleanup_(freep) char *clean = NULL;
    json_t *j;

    if (len == 0)
        return json_string("");
    if (len > max) {
        cut = xmalloc(max + 1);
        str_copy_n(cut, max + 1, s, len);
        s = cut;
        len = strlen(s);
    }
    j = json_stringn(s, len);
    if (j)
        return j;
    size = 3 * len + 1; /* a replacement character has three bytes */
    clean = xmalloc(size);
    str_sanitize(clean, size, s, len);
    j = json_string(clean);
    assert(j);
    return j;
}

json_t *text_hosts_json(const char *list)
{
    _cleanup_(freep) char *fits = NULL;

    if (!list || strnlen(list, TEXT_LIST_MAX + 1) <= TEXT_LIST_MAX)
        return text_json(list, TEXT_LIST_MAX);
    fits = xmalloc(TEXT_LIST_MAX + 1);
    hostlist_copy(fits, TEXT_LIST_MAX + 1, list);
    return text_json(fits, TEXT_LIST_MAX);
}

json_t *text_words_json(const char *s)
{
    json_t *words = json_array();

    while (s && *s && json_array_size(words) < TEXT_HOSTS_MAX) {
        size_t len = strcspn(s, ",");
        _cleanup_(freep) char *word = strndup(s, len);

        if (len > 0)
            json_array_append_new(words, text_json(word, TEXT_MAX));
        s += len + (s[len] == ',');
    }
    return words;
}

/* The number that a word ends with, after the last `mark`; 1 where there is none. */
static long count_behind(const char *word, size_t len, char mark)
{
    const char *at = memrchr(word, mark, len);
    char digits[16], *end;
    long n;

    if (!at)
        return 1;
    str_copy_n(digits, sizeof(digits), at + 1, len - (size_t)(at + 1 - word));
    n = strtol(digits, &end, 10);
    return end == digits ? 1 : n < 0 ? 0 : n;
}

long text_tres_gpus(const char *tres)
{
    long all = 0, typed = 0;

    while (tres && *tres) {
        size_t len = strcspn(tres, ",");

        /* "gres/gpu" is the sum of "gres/gpu:a100" and its like, but a site need not count it. */
        if (strncmp(tres, "gres/gpu=", 9) == 0)
            all += count_behind(tres, len, '=');
        else if (strncmp(tres, "gres/gpu:", 9) == 0)
            typed += count_behind(tres, len, '=');
        tres += len + (tres[len] == ',');
    }
    return all ? all : typed;
}

/* Length of one element of a gres list: commas in brackets, "(S:0,2)", are part of it. */
static size_t gres_len(const char *s)
{
    size_t n = 0;
    int depth = 0;

    for (; s[n] && (depth > 0 || s[n] != ','); n++)
        depth += s[n] == '(' ? 1 : s[n] == ')' && depth > 0 ? -1 : 0;
    return n;
}

long text_gres_gpus(const char *gres)
{
    long n = 0;

    while (gres && *gres) {
        size_t len = gres_len(gres), word = strcspn(gres, "(,");

        if (word > len)
            word = len;
        if (strncmp(gres, "gpu", 3) == 0 && (word == 3 || gres[3] == ':'))
            n += count_behind(gres, word, ':');
        gres += len + (gres[len] == ',');
    }
    return n;
}

static int add_piece(const char *piece, size_t size, void *out)
{
    strbuf_add(out, piece, size);
    return 0;
}

void json_add(struct strbuf *out, const json_t *j)
{
    int r = json_dump_callback(j, add_piece, out, JSON_COMPACT | JSON_ENCODE_ANY);

    assert(r == 0);
    (void)r;
}

void json_add_members(struct strbuf *out, const json_t *object)
{
    _cleanup_strbuf_ struct strbuf whole = {0};

    json_add(&whole, object);
    assert(whole.len >= 2);
    strbuf_add(out, whole.s + 1, whole.len - 2);
}
