/* SPDX-License-Identifier: Apache-2.0 */

/* The text is read once from left to right. A copy is how much of the word one process has written;
 * a letter goes to the copy that waits for it and is furthest behind (the others can wait for the
 * next one), and a first letter begins a new copy. Letters that no copy waits for are other text:
 * where one process is ahead, its next words are mixed in. the density bounds how much. */

#include "extract/shuffle.h"

#include <ctype.h>
#include <string.h>

#define COPIES_MAX 16
#define SPAN_MAX   512 /* letters of a shuffle */
#define GAP_MAX    24  /* letters of others between two of one copy */
#define DENSITY    40  /* percent of the span that the copies make up */

/* "Error" of two processes within so few letters. */
#define SUSPECT_SPAN 24
#define SUSPECT_RS   6

/* Letters of ordinary words occur everywhere, and anything could be read out of them; capitals
 * within a name ("ValueError") are rare. */
#define CAPITALS_MIN 2

bool shuffle_suspect(const char *text, size_t len)
{
    unsigned n = 0;

    for (size_t i = 0; i < len; i++) {
        n += text[i] == 'r';
        if (i >= SUSPECT_SPAN)
            n -= text[i - SUSPECT_SPAN] == 'r';
        if (n >= SUSPECT_RS)
            return true;
    }
    return false;
}

void shuffle_count(const char *text, size_t len, struct shuffle_letters *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < len; i++)
        ret->n[(unsigned char)text[i]]++;
}

bool shuffle_possible(const struct shuffle_letters *letters, const char *word, size_t word_len)
{
    unsigned capitals = 0;

    for (size_t i = 0; i < word_len; i++)
        capitals += isupper((unsigned char)word[i]) != 0;
    if (word_len < SHUFFLE_WORD_MIN || capitals < CAPITALS_MIN)
        return false;
    for (size_t i = 0; i < word_len; i++) {
        unsigned need = 0;

        for (size_t j = 0; j < word_len; j++)
            need += 2u * (word[j] == word[i]);
        if (letters->n[(unsigned char)word[i]] < need)
            return false;
    }
    return true;
}

struct copies {
    unsigned n, done;
    struct {
        size_t letters; /* written so far */
        size_t last;    /* where the last one stands */
    } v[COPIES_MAX];
};

static void drop_stale(struct copies *c, size_t at)
{
    for (unsigned i = 0; i < c->n;)
        if (at - c->v[i].last > GAP_MAX)
            c->v[i] = c->v[--c->n];
        else
            i++;
}

/* Gives a letter to a copy; true: that completes it. */
static bool take_letter(struct copies *c, char letter, const char *word, size_t word_len, size_t at)
{
    unsigned behind = COPIES_MAX;

    for (unsigned i = 0; i < c->n; i++)
        if (word[c->v[i].letters] == letter &&
            (behind == COPIES_MAX || c->v[i].letters < c->v[behind].letters))
            behind = i;
    if (behind < COPIES_MAX) {
        c->v[behind].last = at;
        if (++c->v[behind].letters < word_len)
            return false;
        c->v[behind] = c->v[--c->n];
        c->done++;
        return true;
    }
    if (letter == word[0] && c->n < COPIES_MAX) {
        c->v[c->n].letters = 1;
        c->v[c->n++].last = at;
    }
    return false;
}

/* How many copies a shuffle has that begins at s[0]. */
static unsigned read_copies(const char *s, size_t len, const char *word, size_t word_len)
{
    struct copies c = {.n = 0};
    unsigned best = 0;

    for (size_t i = 0; i < len && (i == 0 || c.n > 0); i++) {
        drop_stale(&c, i);
        if (take_letter(&c, s[i], word, word_len, i) && c.done >= 2 &&
            c.done * word_len * 100 >= (i + 1) * DENSITY)
            best = c.done;
    }
    return best;
}

unsigned shuffle_find(const char *text, size_t len, const char *word, size_t word_len,
                      size_t *ret_at)
{
    for (size_t at = 0; at + 2 * word_len <= len; at++) {
        size_t span = len - at < SPAN_MAX ? len - at : SPAN_MAX;
        unsigned copies = text[at] == word[0] ? read_copies(text + at, span, word, word_len) : 0;

        if (copies > 0) {
            *ret_at = at;
            return copies;
        }
    }
    return 0;
}
