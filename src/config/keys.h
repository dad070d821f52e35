/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_KEYS_H
#define REKNIT_CONFIG_KEYS_H

/* Keys and their values, one table for reading and writing. libcyaml checks the form and hands over
 * every value as text; what the text means is decided here, so a bad value is reported like a bad
 * key: with the file, the line and the reason. */

#include "base/form.h"
#include "base/str.h"

enum key_type {
    KEY_TIME,   /* usec_t */
    KEY_COUNT,  /* uint32_t */
    KEY_FLAG,   /* bool */
    KEY_MAYBE,  /* int: a flag, or -1 = not said */
    KEY_TEXT,   /* char[] */
    KEY_WORD,   /* an enum; negative = not said */
    KEY_SECRET, /* char[], not written */
};

struct key {
    const char *name;
    enum key_type type;
    size_t offset, size;      /* in the object that the keys belong to */
    const char *(*word)(int); /* KEY_WORD: NULL behind the last */
};

/* A row: the key is named as the member. */
#define KEY(type, strct, member)                                                                   \
    {                                                                                              \
#member, type, offsetof(struct strct, member), sizeof(((struct strct *)0)->member), NULL   \
    }

struct source {
    struct form_text yaml;
    struct err *err;
};

/* "name:line: path: what"; -EINVAL. */
int source_complain(const struct source *s, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* values[i] is the text of keys[i], NULL = not given. */
int keys_read(const struct source *s, const char *prefix, const struct key *keys, size_t n,
              char *const *values, void *object);
/* One text of the file into a field: -EINVAL when it does not fit, or could not be shown. */
int text_read(const struct source *s, const char *path, const char *value, char *ret, size_t size);

/* "key: value". */
void key_write(struct strbuf *out, const struct key *key, const void *object);
/* Whether the object says anything of it. */
bool key_is_said(const struct key *key, const void *object);
void quoted_write(struct strbuf *out, const char *s);

/* ", or did you mean 'WORD'?" kind of help: of the words the one most like it, NULL = none is. */
const char *nearest_word(const char *given, const char *(*word)(const void *ctx, size_t i),
                         const void *ctx);

#endif
