/* SPDX-License-Identifier: Apache-2.0 */

/* Comments are hostile text that other tools and people write too. So nothing here fails: what is
 * not for Reknit is passed over in silence, and what is, but is not understood, is noted. As it may
 * have been meant as a limit, it then counts as one: such a job is only observed. */

#include "config/comment.h"

#include "base/str.h"

#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MOST_RESTARTS 1000000

__attribute__((format(printf, 2, 3))) static void note(struct comment *c, const char *format, ...)
{
    char raw[256], text[256];
    size_t at = strlen(c->notes);
    va_list ap;

    va_start(ap, format);
    vsnprintf(raw, sizeof(raw), format, ap);
    va_end(ap);
    str_sanitize(text, sizeof(text), raw, strlen(raw));
    str_printf(c->notes + at, sizeof(c->notes) - at, "%s%s", at > 0 ? "; " : "", text);
}

__attribute__((format(printf, 2, 3))) static void not_understood(struct comment *c,
                                                                 const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    note(c, "%s", text);
    c->misunderstood = true;
    if (c->mode < 0 || c->mode > MODE_OBSERVE)
        c->mode = MODE_OBSERVE;
}

/* ---- values ---- */

static bool is_policy_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return n > 0 && n < sizeof(((struct comment *)0)->policy);
}

static void set_mode(struct comment *c, enum mode mode)
{
    if (c->mode < 0 || mode < c->mode)
        c->mode = mode;
}

/* The word behind "reknit:": a mode, or the name of a policy. */
static void read_word(struct comment *c, const char *s, size_t n)
{
    char word[sizeof(c->policy)];
    enum mode mode;

    c->opts_in = true;
    if (!is_policy_name(s, n)) {
        not_understood(c, "'%.*s' is no name of a policy", (int)(n < 64 ? n : 64), s);
        return;
    }
    str_copy_n(word, sizeof(word), s, n);
    mode = mode_from_name(word);
    if (mode >= 0)
        set_mode(c, mode);
    else
        STR_COPY(c->policy, word);
}

/* Users quote numbers. */
static void read_restarts(struct comment *c, const char *key, const json_t *v)
{
    long long n = -1;

    if (json_is_integer(v))
        n = json_integer_value(v);
    else if (json_is_string(v) && str_to_i64(json_string_value(v), &n) < 0)
        n = -1;
    if (n < 0 || n > MOST_RESTARTS)
        not_understood(c, "%s is no number from 0 to %d", key, MOST_RESTARTS);
    else
        c->max_restarts = (uint32_t)n;
}

static void read_log(struct comment *c, const json_t *v)
{
    const char *path = json_string_value(v);

    if (!path || !*path || strlen(path) >= COMMENT_LOG_LEN)
        not_understood(c, "logs: one is no path of 1 to %d bytes", COMMENT_LOG_LEN - 1);
    else if (c->n_logs == COMMENT_LOGS_MAX)
        note(c, "logs: only the first %d are read", COMMENT_LOGS_MAX);
    else
        STR_COPY(c->logs[c->n_logs++], path);
}

static void read_logs(struct comment *c, const json_t *v)
{
    size_t n = json_array_size(v);

    if (json_is_string(v))
        read_log(c, v);
    else if (!json_is_array(v))
        not_understood(c, "logs is no list of paths");
    for (size_t i = 0; i < n && i <= COMMENT_LOGS_MAX; i++)
        read_log(c, json_array_get(v, i));
}

static void read_policy(struct comment *c, const json_t *v)
{
    if (json_is_string(v))
        read_word(c, json_string_value(v), json_string_length(v));
    else
        not_understood(c, "policy is no name");
}

static void read_mode(struct comment *c, const json_t *v)
{
    const char *word = json_string_value(v);
    enum mode mode = word ? mode_from_name(word) : MODE_INVALID;

    if (mode < 0)
        not_understood(c, "mode is none of off, observe, propose, act");
    else
        set_mode(c, mode);
}

static void read_time_limit(struct comment *c, const json_t *v)
{
    if (json_is_boolean(v))
        c->continue_after_time_limit = json_is_true(v);
    else
        not_understood(c, "continue_after_time_limit is neither true nor false");
}

/* ---- JSON ---- */

static void read_member(struct comment *c, const char *key, const json_t *v)
{
    if (streq(key, "policy"))
        read_policy(c, v);
    else if (streq(key, "mode"))
        read_mode(c, v);
    else if (streq(key, "max_restarts"))
        read_restarts(c, key, v);
    else if (streq(key, "logs"))
        read_logs(c, v);
    else if (streq(key, "continue_after_time_limit"))
        read_time_limit(c, v);
    else
        not_understood(c, "'%.40s' means nothing here", key);
}

static void read_reknit(struct comment *c, json_t *v)
{
    const char *key;
    json_t *member;

    if (json_is_object(v)) {
        c->opts_in = true;
        json_object_foreach (v, key, member)
            read_member(c, key, member);
    } else if (json_is_string(v)) {
        read_word(c, json_string_value(v), json_string_length(v));
    } else if (json_is_true(v)) {
        c->opts_in = true;
    } else if (json_is_false(v)) {
        set_mode(c, MODE_OFF);
    } else {
        not_understood(c, "\"reknit\" wants true, false, a policy or {...}");
    }
}

static void read_aps(struct comment *c, json_t *v)
{
    const char *mode = json_string_value(json_object_get(v, "auto_resume_mode"));
    json_t *times = json_object_get(v, "max_requeue_times");

    c->is_aps = true;
    c->opts_in = mode && streq(mode, "requeue");
    if (!c->opts_in)
        note(c, "APS: auto_resume_mode is not \"requeue\"");
    if (times)
        read_restarts(c, "max_requeue_times", times);
}

static bool mentions_us(const char *text)
{
    return strcasestr(text, "reknit") != NULL;
}

static void read_json(struct comment *c, const char *text)
{
    json_error_t e;
    json_t *root = json_loads(text, 0, &e), *ours = json_object_get(root, "reknit");
    json_t *aps = json_object_get(root, "APS");

    if (!root && mentions_us(text))
        not_understood(c, "it begins like JSON and is none: at character %d: %.120s", e.position,
                       e.text);
    else if (ours)
        read_reknit(c, ours);
    else if (aps)
        read_aps(c, aps);
    else if (root && mentions_us(text))
        not_understood(c, "it mentions Reknit, but has no member \"reknit\"");
    json_decref(root);
}

/* ---- words ---- */

static void read_part(struct comment *c, const char *s, size_t n)
{
    static const char us[] = "reknit";
    size_t len = sizeof(us) - 1;

    if (n < len || strncasecmp(s, us, len) != 0)
        return;
    if (n == len) {
        c->opts_in = true;
        return;
    }
    if (s[len] != ':')
        return;
    for (len++; len < n && s[len] == ' '; len++)
        ;
    read_word(c, s + len, n - len);
}

static void read_words(struct comment *c, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, ",;\r\n"), from = strspn(text, " \t"), to = n;

        while (to > from && strchr(" \t", text[to - 1]))
            to--;
        if (from < to)
            read_part(c, text + from, to - from);
        text += n + (text[n] != '\0');
    }
}

void comment_read(const char *text, struct comment *ret)
{
    struct comment c = {
        .mode = MODE_INVALID,
        .max_restarts = RESTARTS_NOT_SAID,
        .continue_after_time_limit = -1,
    };

    text += text ? strspn(text, " \t\r\n") : 0;
    if (text && strnlen(text, COMMENT_MAX + 1) > COMMENT_MAX)
        not_understood(&c, "longer than %d KiB, it is not read", COMMENT_MAX / 1024);
    else if (text && *text == '{')
        read_json(&c, text);
    else if (text)
        read_words(&c, text);
    if (text && c.mode < 0 && !c.opts_in && !c.is_aps && *text != '{' && mentions_us(text))
        not_understood(&c, "it mentions Reknit, but not as 'reknit' or 'reknit:POLICY' alone or "
                           "between commas");
    if (c.mode == MODE_OFF)
        c.opts_in = false;
    *ret = c;
}
