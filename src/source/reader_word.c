/* SPDX-License-Identifier: Apache-2.0 */
#include "source/reader_word.h"

#include "base/str.h"
#include "wire/codec.h"

#include <string.h>

static bool is_of_text(const struct signal *s)
{
    return s->kind != SIGNAL_ACTIVITY && s->file < READER_FILES_MAX && s->confidence >= 0 &&
           s->confidence <= 100;
}

bool reader_word_signal(const json_t *t, struct event *ret)
{
    struct signal *s = &ret->signal;

    if (codec_json_event(t, ret, NULL) < 0 || ret->kind != EVENT_SIGNAL || !is_of_text(s))
        return false;
    codec_sanitize(ret);
    if (s->message > strlen(s->text))
        s->message = 0;
    s->provenance = PROVENANCE_JOB_TEXT;
    return true;
}

bool reader_word_number(const json_t *t, uint32_t *ret)
{
    json_int_t file = json_integer_value(json_object_get(t, "file"));

    if (file < 0 || file >= READER_FILES_MAX)
        return false;
    *ret = (uint32_t)file;
    return true;
}

void reader_word_text(const json_t *t, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(t, key));

    str_sanitize(ret, size, text ? text : "", text ? strlen(text) : 0);
}

bool reader_word_file(const json_t *t, struct reader_file *ret)
{
    if (!reader_word_number(t, &ret->file))
        return false;
    reader_word_text(t, "path", ret->path, sizeof(ret->path));
    reader_word_text(t, "trouble", ret->trouble, sizeof(ret->trouble));
    ret->local = json_is_true(json_object_get(t, "local"));
    return true;
}

unsigned reader_rate_count(struct reader_rate *r, usec_t now)
{
    if (now - r->since >= USEC_PER_SEC)
        *r = (struct reader_rate){.since = now};
    return ++r->n;
}
