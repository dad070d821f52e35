/* SPDX-License-Identifier: Apache-2.0 */

/* A dump lists the frames of a thread, the innermost first:
 *
 *   --- rank 5 pid 4505 ---
 *   Process 4505: python train.py
 *   Thread 4505 (idle): "MainThread"
 *       get (queue.py:113)
 *       epoch (train.py:204)
 *       <module> (train.py:311)
 *
 * Ranks that wait for each other wait in different corners of the libraries. What can be compared
 * is where the program itself stands: the innermost frame in the file that the outermost one is of,
 * and whether that went into the library in which ranks wait.
 * The rank is told by the prefix of the lines, or by a line that stands above them. */

#include "extract/stacks.h"

#include "base/alloc.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX  64 /* of a thread; of a deeper one the last place is used again */
#define HEADER_LIFE 6  /* lines from one that names the rank to the thread */
#define LIBRARY     "torch/"
#define INSIDE      " in torch"
#define LEAD_MAX    64

struct frame {
    uint64_t line, offset;
    char text[EXCERPT_LEN]; /* "epoch (train.py:204)" */
};

struct stacks {
    int32_t rank; /* that was named last */
    unsigned life;
    bool in_main;
    size_t lead; /* bytes in front of the thread's line, and so of its frames */
    size_t n;
    struct frame frames[FRAMES_MAX];
};

struct stacks *stacks_new(void)
{
    struct stacks *s = xnew(struct stacks);

    s->rank = RANK_NONE;
    return s;
}

struct stacks *stacks_free(struct stacks *s)
{
    free(s);
    return NULL;
}

/* "    epoch (train.py:204)" */
static bool is_frame(const struct line *l, size_t lead)
{
    const char *text = l->text + lead, *end = l->text + l->len, *digit = end - 2;

    if (l->len < lead + 8 || memcmp(text, "    ", 4) != 0 || end[-1] != ')')
        return false;
    while (digit > text && isdigit((unsigned char)*digit))
        digit--;
    return digit < end - 2 && *digit == ':' && memchr(text, '(', (size_t)(end - text));
}

static void add_frame(struct stacks *s, const struct line *l, uint64_t line, uint64_t offset)
{
    struct frame *f = &s->frames[s->n < FRAMES_MAX ? s->n++ : FRAMES_MAX - 1];

    f->line = line;
    f->offset = offset;
    str_sanitize(f->text, sizeof(f->text), l->text + s->lead + 4, l->len - s->lead - 4);
}

/* "train.py" of "epoch (train.py:204)" */
static const char *file_of(const struct frame *f, size_t *ret_len)
{
    const char *open = strrchr(f->text, '('), *colon = strrchr(f->text, ':');

    *ret_len = open && colon > open ? (size_t)(colon - open - 1) : 0;
    return open ? open + 1 : f->text;
}

static const struct frame *innermost_of_script(const struct stacks *s)
{
    const struct frame *outermost = &s->frames[s->n - 1];
    size_t n, len;
    const char *script = file_of(outermost, &n);

    for (size_t i = 0; i < s->n; i++) {
        const char *file = file_of(&s->frames[i], &len);

        if (len == n && memcmp(file, script, n) == 0)
            return &s->frames[i];
    }
    return outermost;
}

/* The end of it, where the number of the line is. */
static void copy_place(const struct frame *f, char *dst, size_t size)
{
    size_t len;
    const char *file = file_of(f, &len), *slash = memrchr(file, '/', len);
    const char *from = slash ? slash + 1 : file;
    size_t n = strcspn(from, ")");

    if (n >= size) {
        from += n - (size - 1);
        n = size - 1;
    }
    str_copy_n(dst, size, from, n);
}

static bool is_in_library(const struct stacks *s)
{
    size_t len, n = strlen(LIBRARY);

    for (size_t i = 0; i < s->n; i++) {
        const char *file = file_of(&s->frames[i], &len);
        const char *at = memmem(file, len, LIBRARY, n);

        if (at && (at == file || at[-1] == '/'))
            return true;
    }
    return false;
}

/* Who waits for the others does so within the library; of who does not, the innermost frame tells
 * what else it does. */
static void tell_place(const struct stacks *s, struct stand *ret)
{
    bool inside = is_in_library(s);
    const struct frame *script = innermost_of_script(s), *f = inside ? script : &s->frames[0];

    *ret = (struct stand){.rank = s->rank, .line = f->line, .offset = f->offset};
    STR_COPY(ret->frame, f->text);
    copy_place(script, ret->at, sizeof(ret->at) - (inside ? strlen(INSIDE) : 0));
    if (inside)
        memcpy(ret->at + strlen(ret->at), INSIDE, sizeof(INSIDE));
}

static bool end_thread(struct stacks *s, struct stand *ret)
{
    bool told = s->in_main && s->n > 1 && s->rank != RANK_NONE;

    s->in_main = false;
    if (told)
        tell_place(s, ret);
    s->n = 0;
    return told;
}

/* "--- rank 5 pid 4505 ---", but not "--lora_rank 8" */
static int32_t rank_in(const struct line *l)
{
    const char *end = l->text + l->len, *at = l->text;
    int32_t rank = 0;
    int n = 0;

    do {
        at = memmem(at, (size_t)(end - at), "ank", 3);
        if (!at)
            return RANK_NONE;
        at += 3;
    } while (at - l->text < 4 || tolower((unsigned char)at[-4]) != 'r' ||
             (at - l->text > 4 && (isalnum((unsigned char)at[-5]) || at[-5] == '_')));
    while (at < end && strchr(" =:#", *at))
        at++;
    for (; at < end && n < 7 && isdigit((unsigned char)*at); at++, n++)
        rank = rank * 10 + (*at - '0');
    return n > 0 ? rank : RANK_NONE;
}

/* Where the word begins the message: whoever collected the dumps may stand in front of it, in a
 * column or with a colon or bracket. */
static const char *find_begin(const struct line *l, const char *word)
{
    const char *at = memmem(l->text, l->len < LEAD_MAX ? l->len : LEAD_MAX, word, strlen(word));

    return at && (at == l->text || (at - l->text > 1 && at[-1] == ' ' && strchr("|:]>", at[-2])))
               ? at
               : NULL;
}

static void read_header(struct stacks *s, const struct line *l)
{
    const char *thread = find_begin(l, "Thread ");
    bool command = find_begin(l, "Process ");
    int32_t rank = l->rank != RANK_NONE ? l->rank : command ? RANK_NONE : rank_in(l);

    if (rank != RANK_NONE) {
        s->rank = rank;
        s->life = HEADER_LIFE;
    } else if (s->life == 0 || --s->life == 0) {
        s->rank = RANK_NONE;
    }
    s->in_main = thread && memmem(l->text, l->len, "\"MainThread\"", 12);
    s->lead = thread ? (size_t)(thread - l->text) : 0;
}

bool stacks_feed(struct stacks *s, const struct line *l, uint64_t line, uint64_t offset,
                 struct stand *ret)
{
    bool told = false;

    if (l && l->len == 0)
        return false;
    if (l && s->in_main && is_frame(l, s->lead)) {
        add_frame(s, l, line, offset);
        return false;
    }
    if (s->in_main)
        told = end_thread(s, ret);
    if (l)
        read_header(s, l);
    return told;
}
