/* SPDX-License-Identifier: Apache-2.0 */
#include "config/keys.h"

#include "base/cleanup.h"
#include "base/time.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int source_complain(const struct source *s, const char *path, const char *format, ...)
{
    char text[320];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return err_set(s->err, -EINVAL, "%s:%u: %s: %s", s->yaml.name, form_line_of(&s->yaml, path),
                   path, text);
}

static int read_time(const struct source *s, const char *path, const char *value, usec_t *ret)
{
    int r = duration_parse(value, ret);

    if (r == -ERANGE)
        return source_complain(s, path, "'%s' is too long", value);
    if (r < 0)
        return source_complain(s, path,
                               "'%s' is no duration: write a number with its unit, as 90s, 5m, "
                               "1h 30m",
                               value);
    return 0;
}

static int read_count(const struct source *s, const char *path, const char *value, uint32_t *ret)
{
    long long number;

    if (str_to_i64(value, &number) < 0 || !isdigit((unsigned char)value[0]))
        return source_complain(s, path, "'%s' is no whole number", value);
    if (number > UINT32_MAX)
        return source_complain(s, path, "%s is too large", value);
    *ret = (uint32_t)number;
    return 0;
}

static int read_flag(const struct source *s, const char *path, const char *value, bool *ret)
{
    if (!streq(value, "true") && !streq(value, "false"))
        return source_complain(s, path, "'%s' is neither true nor false", value);
    *ret = streq(value, "true");
    return 0;
}

static int read_maybe(const struct source *s, const char *path, const char *value, int *ret)
{
    bool flag = false;
    int r = read_flag(s, path, value, &flag);

    if (r == 0)
        *ret = flag;
    return r;
}

int text_read(const struct source *s, const char *path, const char *value, char *ret, size_t size)
{
    if (strlen(value) >= size)
        return source_complain(s, path, "longer than %zu bytes", size - 1);
    str_sanitize(ret, size, value, strlen(value));
    if (!streq(ret, value))
        return source_complain(s, path, "holds a character that cannot be shown");
    return 0;
}

static const char *key_word(const void *ctx, size_t i)
{
    return ((const struct key *)ctx)->word((int)i);
}

static int read_word(const struct source *s, const char *path, const struct key *key,
                     const char *value, int *ret)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    const char *word, *like;

    for (int i = 0; (word = key->word(i)); i++) {
        if (streq(word, value)) {
            *ret = i;
            return 0;
        }
        strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", word);
    }
    like = nearest_word(value, key_word, key);
    if (like)
        return source_complain(s, path, "'%s' is none of %s; did you mean '%s'?", value,
                               strbuf_str(&b), like);
    return source_complain(s, path, "'%s' is none of %s", value, strbuf_str(&b));
}

static int read_value(const struct source *s, const char *path, const struct key *key,
                      const char *value, void *object)
{
    void *at = (char *)object + key->offset;

    switch (key->type) {
    case KEY_TIME:
        return read_time(s, path, value, at);
    case KEY_COUNT:
        return read_count(s, path, value, at);
    case KEY_FLAG:
        return read_flag(s, path, value, at);
    case KEY_MAYBE:
        return read_maybe(s, path, value, at);
    case KEY_TEXT:
    case KEY_SECRET:
        return text_read(s, path, value, at, key->size);
    case KEY_WORD:
        return read_word(s, path, key, value, at);
    }
    return -EINVAL;
}

int keys_read(const struct source *s, const char *prefix, const struct key *keys, size_t n,
              char *const *values, void *object)
{
    char path[192];

    for (size_t i = 0; i < n; i++) {
        int r;

        if (!values[i])
            continue;
        STR_PRINTF(path, "%s%s", prefix, keys[i].name);
        r = read_value(s, path, &keys[i], values[i], object);
        if (r < 0)
            return r;
    }
    return 0;
}

/* In the largest unit that says it without a rest. */
static void write_time(struct strbuf *out, usec_t us)
{
    static const struct {
        const char *name;
        usec_t us;
    } units[] = {
        {"d", USEC_PER_DAY}, {"h", USEC_PER_HOUR},  {"m", USEC_PER_MIN},
        {"s", USEC_PER_SEC}, {"ms", USEC_PER_MSEC}, {"us", 1},
    };

    if (us == 0) {
        strbuf_adds(out, "0s");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (us % units[i].us == 0) {
            strbuf_addf(out, "%lld%s", (long long)(us / units[i].us), units[i].name);
            return;
        }
}

void quoted_write(struct strbuf *out, const char *s)
{
    strbuf_addc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            strbuf_addc(out, '\'');
        strbuf_addc(out, *s);
    }
    strbuf_addc(out, '\'');
}

bool key_is_said(const struct key *key, const void *object)
{
    const void *at = (const char *)object + key->offset;

    switch (key->type) {
    case KEY_MAYBE:
    case KEY_WORD:
        return *(const int *)at >= 0;
    case KEY_TEXT:
    case KEY_SECRET:
        return *(const char *)at != '\0';
    default:
        return true;
    }
}

void key_write(struct strbuf *out, const struct key *key, const void *object)
{
    const void *at = (const char *)object + key->offset;

    strbuf_addf(out, "%s: ", key->name);
    switch (key->type) {
    case KEY_TIME:
        write_time(out, *(const usec_t *)at);
        break;
    case KEY_COUNT:
        strbuf_addf(out, "%u", *(const uint32_t *)at);
        break;
    case KEY_FLAG:
        strbuf_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case KEY_MAYBE:
        strbuf_adds(out, *(const int *)at > 0 ? "true" : "false");
        break;
    case KEY_TEXT:
        quoted_write(out, at);
        break;
    case KEY_SECRET:
        strbuf_adds(out, *(const char *)at ? "'' # there is one; it is not shown" : "''");
        break;
    case KEY_WORD:
        strbuf_adds(out, key->word(*(const int *)at));
        break;
    }
}

const char *nearest_word(const char *given, const char *(*word)(const void *ctx, size_t i),
                         const void *ctx)
{
    size_t least = str_tolerance(given) + 1;
    const char *best = NULL, *w;

    for (size_t i = 0; (w = word(ctx, i)); i++) {
        size_t d = str_distance(given, w);

        if (d < least) {
            least = d;
            best = w;
        }
    }
    return best;
}
