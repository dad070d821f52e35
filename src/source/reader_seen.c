/* SPDX-License-Identifier: Apache-2.0 */
#include "source/reader_seen.h"

void reader_seen_expect(struct reader_seen *s)
{
    s->skip_to = s->offset;
    s->skip_at = s->at;
}

bool reader_seen_is_repeated(struct reader_seen *s, uint64_t offset)
{
    if (s->skip_at == 0)
        return false;
    if (offset < s->skip_to)
        return true;
    if (offset > s->skip_to) {
        s->skip_at = 0;
        return false;
    }
    s->skip_at--;
    return true;
}

void reader_seen_note(struct reader_seen *s, uint64_t offset)
{
    if (offset > s->offset || s->at == 0) {
        s->offset = offset;
        s->at = 0;
    }
    s->at += offset == s->offset;
}

void reader_seen_forget(struct reader_seen *s)
{
    *s = (struct reader_seen){.path = s->path,
                              .number = s->number,
                              .untold = s->untold,
                              .in_trouble = s->in_trouble,
                              .unread = s->unread,
                              .why = s->why};
}
