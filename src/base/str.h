/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_STR_H
#define REKNIT_BASE_STR_H

/* Strings: bounded copies into fixed fields, a growing buffer, and the one place where hostile
 * text becomes text that may be shown. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline bool streq(const char *a, const char *b)
{
    return __builtin_strcmp(a, b) == 0;
}
bool str_startswith(const char *s, const char *prefix);
bool str_endswith(const char *s, const char *suffix);

/* Whether two lists, "a,b", have an element in common. */
bool str_lists_overlap(const char *a, const char *b);

/* How often c stands in s[0..len), at the speed of memory. */
size_t str_count(const char *s, size_t len, char c);

/* Whether that number stands in s, with no digit beside it. */
bool str_has_number(const char *s, uint64_t number);

/* Copies at most size - 1 bytes of src and terminates; never cuts a UTF-8 sequence in two.
 * Returns whether all of it fitted. */
bool str_copy(char *dst, size_t size, const char *src);
bool str_copy_n(char *dst, size_t size, const char *src, size_t len);
#define STR_COPY(array, src) str_copy((array), sizeof(array), (src))

/* snprintf into a fixed field, where cutting a long text short is wanted, but not inside of a
 * UTF-8 sequence. */
void str_printf(char *dst, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define STR_PRINTF(array, ...) str_printf((array), sizeof(array), __VA_ARGS__)

/* Whole-string numbers, base 10: 0, -EINVAL (not a number, or text behind it), -ERANGE. */
int str_to_i64(const char *s, long long *ret);

/* Makes len bytes of anything printable into dst: valid UTF-8 stays; control codes, invalid bytes,
 * what shows nothing and what turns the direction of others become U+FFFD or a blank (tab, CR, LF).
 * Each byte becomes at most three. Terminates; returns the length. Use for every text of a log, job
 * or user that is stored or shown. */
size_t str_sanitize(char *dst, size_t size, const char *src, size_t len);

/* How many bytes of the text fill so many columns of a terminal, cut at a blank where there is one.
 */
size_t str_fit(const char *text, size_t columns);

/* How many bytes of a word must be put in, left out, replaced or swapped with their neighbour to
 * make the other of it; of their first 63 bytes. */
size_t str_distance(const char *a, const char *b);
/* More than so much from any known word is no misspelling of it. */
size_t str_tolerance(const char *word);

struct strbuf {
    char *s; /* always terminated once anything was added; NULL before */
    size_t len, cap;
};

void strbuf_done(struct strbuf *b);
void strbuf_reset(struct strbuf *b); /* empties, keeps the memory */
void strbuf_add(struct strbuf *b, const char *s, size_t len);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_addf(struct strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *strbuf_str(const struct strbuf *b); /* never NULL */
/* A word for a shell, whatever is in it; in quotes only where it needs them. */
void strbuf_add_shell_word(struct strbuf *b, const char *word);

#define _cleanup_strbuf_ __attribute__((cleanup(strbuf_done)))

#endif
