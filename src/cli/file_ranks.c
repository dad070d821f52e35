/* SPDX-License-Identifier: Apache-2.0 */

/* A word with a number tells by itself. A bare number may be anything (a part of a rotated log, a
 * job's id), so what it means is decided by all the names together: only the files of the processes
 * of one job are numbered from 0 without a gap. */

#include "cli/file_ranks.h"

#include "base/cleanup.h"
#include "base/intset.h"
#include "base/str.h"
#include "base/vec.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define RANK_DIGITS_MAX 6

/* A stretch of a path. */
struct part {
    const char *s;
    size_t len;
};

struct name {
    struct part base,
        folder;           /* last part of the path, and the one before it; folder may be empty */
    struct part shape;    /* of base: in front of its last number */
    int32_t last;         /* that number, RANK_NONE = none that could be a rank */
    struct part torchrun; /* the path in front of attempt_N, s NULL = torchrun did not name it */
    enum { NOT_ASKED, NO_FAMILY, FAMILY, FAMILY_SPREAD } family; /* what its like tell of `last` */
};

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

static bool ends_with(struct part p, const char *end)
{
    size_t n = strlen(end);

    return p.len > n && memcmp(p.s + p.len - n, end, n) == 0;
}

static struct part without(struct part p, const char *const *endings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ends_with(p, endings[i]))
            return (struct part){p.s, p.len - strlen(endings[i])};
    return p;
}

/* The last part of path[0..len), and what is in front of it. */
static struct part last_part(const char *path, size_t *len)
{
    size_t end = *len, from;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (from = end; from > 0 && path[from - 1] != '/';)
        from--;
    *len = from;
    return (struct part){path + from, end - from};
}

/* The number at s, which must end at a border; RANK_NONE = there is none. */
static int32_t number_at(const char *s, const char *end)
{
    const char *from = s;
    int32_t v = 0;

    for (; s < end && is_digit(*s) && s - from <= RANK_DIGITS_MAX; s++)
        v = v * 10 + (*s - '0');
    return s == from || s - from > RANK_DIGITS_MAX || (s < end && isalnum((unsigned char)*s))
               ? RANK_NONE
               : v;
}

/* "rank3", "rank_3", "RANK-3": the number behind the word. The word stands at the beginning, or
 * behind what is no letter; *ret_from = where. */
static int32_t number_behind(struct part p, const char *word, size_t *ret_from)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n < p.len; i++) {
        size_t at = i + n;
        int32_t v;

        if (strncasecmp(p.s + i, word, n) != 0 || (i > 0 && isalpha((unsigned char)p.s[i - 1])))
            continue;
        at += strchr("-_.=", p.s[at]) != NULL;
        v = number_at(p.s + at, p.s + p.len);
        if (v == RANK_NONE)
            continue;
        *ret_from = i;
        return v;
    }
    return RANK_NONE;
}

/* "local_rank3", "node-rank3": whether the word that begins at `at` belongs to this one. */
static bool is_qualified(struct part p, size_t at, const char *by)
{
    size_t n = strlen(by);

    return at > n && strncasecmp(p.s + at - n - 1, by, n) == 0 && strchr("-_.", p.s[at - 1]);
}

static const char *const rank_words[] = {"rank", "mpirank", "procid", "proc", "worker"};

/* The name of a folder is often a longer one, of an experiment: "bench_2nodes_proc0". */
static bool begins_with_word(struct part p)
{
    for (size_t i = 0; i < ARRAY_SIZE(rank_words); i++)
        if (p.len > strlen(rank_words[i]) &&
            strncasecmp(p.s, rank_words[i], strlen(rank_words[i])) == 0)
            return true;
    return false;
}

/* Whether a word says what the number behind it means, be it another than a rank. */
static bool tells_word(struct part p, bool workers, struct entity *ret)
{
    size_t at;

    ret->local_rank = number_behind(p, "localrank", &at);
    if (ret->local_rank != RANK_NONE)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(rank_words); i++) {
        int32_t v = number_behind(p, rank_words[i], &at);

        if (v == RANK_NONE)
            continue;
        if (is_qualified(p, at, "local"))
            ret->local_rank = v;
        else if (!is_qualified(p, at, "node") && (workers || !streq(rank_words[i], "worker")))
            ret->rank = v;
        return true;
    }
    return false;
}

/* attempt_0/3/stderr.log: what stands in front, and the rank within the node. */
static bool read_torchrun(const char *path, struct name *n, struct entity *ret)
{
    static const char attempt[] = "attempt_";
    size_t len = strlen(path);
    struct part file = last_part(path, &len), rank = last_part(path, &len),
                part = last_part(path, &len);

    if ((!ends_with(file, "out.log") && !ends_with(file, "err.log")) ||
        part.len <= sizeof(attempt) - 1 || memcmp(part.s, attempt, sizeof(attempt) - 1) != 0)
        return false;
    ret->local_rank = number_at(rank.s, rank.s + rank.len);
    n->torchrun = (struct part){path, len};
    return ret->local_rank != RANK_NONE;
}

/* Whether the word in front of a number says that it numbers something else than processes. */
static bool counts_others(struct part shape)
{
    static const char *const words[] = {"node", "host", "dmesg", "kern",  "attempt", "restart",
                                        "run",  "try",  "part",  "epoch", "step",    "stage"};
    size_t end = shape.len - 1, from = end;

    while (from > 0 && isalpha((unsigned char)shape.s[from - 1]))
        from--;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (end - from == strlen(words[i]) &&
            strncasecmp(shape.s + from, words[i], end - from) == 0)
            return true;
    return shape.s[end] == '_' && memmem(shape.s, shape.len, "slurm-", 6);
}

/* The last number of a name, where it is set off from what stands in front. */
static void read_last_number(struct name *n)
{
    static const char *const endings[] = {".log", ".out", ".err", ".txt", ".stdout", ".stderr"};
    struct part p = without(n->base, endings, ARRAY_SIZE(endings));
    size_t from = p.len;

    while (from > 0 && is_digit(p.s[from - 1]))
        from--;
    n->last = RANK_NONE;
    if (from == p.len || from < 2 || !strchr("-_.", p.s[from - 1]))
        return;
    n->shape = (struct part){p.s, from};
    if (!counts_others(n->shape))
        n->last = number_at(p.s + from, p.s + p.len);
}

/* Whether they are alike but for their numbers, endings included. */
static bool same_shape(const struct name *a, const struct name *b)
{
    const char *x = a->base.s, *y = b->base.s, *x_end = x + a->base.len, *y_end = y + b->base.len;

    for (;;) {
        while (x < x_end && is_digit(*x))
            x++;
        while (y < y_end && is_digit(*y))
            y++;
        if (x == x_end || y == y_end)
            return x == x_end && y == y_end;
        if (*x++ != *y++)
            return false;
    }
}

static bool same_part(struct part a, struct part b)
{
    return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

/* The host's name in front of the number: "out.n5." */
static void read_host(struct part shape, struct entity *ret)
{
    size_t end = shape.len - 1, from = end;

    while (from > 0 && (isalnum((unsigned char)shape.s[from - 1]) || shape.s[from - 1] == '-'))
        from--;
    if (from > 0 && end > from && islower((unsigned char)shape.s[from]) &&
        is_digit(shape.s[end - 1]))
        str_copy_n(ret->node, sizeof(ret->node), shape.s + from, end - from);
}

/* Whether the last numbers of all names of this shape go from 0 up, each once, in more than one
 * file; and whether something else in front of them differs, too. */
static void judge_family(struct name *v, size_t n, const struct name *of)
{
    struct intset numbers = {0};
    bool twice = false, spread = false, counts;

    for (size_t i = 0; i < n; i++) {
        if (v[i].last == RANK_NONE || !same_shape(&v[i], of))
            continue;
        twice |= !intset_add(&numbers, v[i].last);
        spread |= !same_part(v[i].shape, of->shape);
    }
    counts = !twice && numbers.n > 1 && (size_t)numbers.v[numbers.n - 1] + 1 == numbers.n;
    for (size_t i = 0; i < n; i++)
        if (v[i].last != RANK_NONE && same_shape(&v[i], of))
            v[i].family = !counts ? NO_FAMILY : spread ? FAMILY_SPREAD : FAMILY;
    intset_done(&numbers);
}

/* By the numbers of all names together. */
static void tells_number(struct name *v, size_t n, struct name *name, struct entity *ret)
{
    if (name->last == RANK_NONE)
        return;
    if (name->family == NOT_ASKED)
        judge_family(v, n, name);
    if (name->family == NO_FAMILY)
        return;
    ret->rank = name->last;
    if (name->family == FAMILY_SPREAD)
        read_host(name->shape, ret);
}

/* Whoever leads is rank 0 there, and the workers are numbered apart. */
static bool has_leader(const struct name *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memmem(v[i].base.s, v[i].base.len, "master", 6) ||
            memmem(v[i].base.s, v[i].base.len, "chief", 5))
            return true;
    return false;
}

/* Files of torchrun on one node: the rank within it is the rank. */
static bool is_one_node(const struct name *v, size_t n)
{
    const struct name *first = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!v[i].torchrun.s)
            continue;
        if (first && !same_part(first->torchrun, v[i].torchrun))
            return false;
        first = &v[i];
    }
    return true;
}

static struct name split_name(const char *path)
{
    static const char *const packings[] = {".gz", ".zst"};
    size_t len = strlen(path);
    struct name n = {.base = last_part(path, &len)};

    n.folder = last_part(path, &len);
    n.base = without(n.base, packings, ARRAY_SIZE(packings));
    read_last_number(&n);
    return n;
}

void file_ranks_read(const char *const *paths, size_t n, struct entity *ret)
{
    _cleanup_(freep) struct name *v = xcalloc(n + 1, sizeof(*v));
    bool workers, one_node;

    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct entity){.rank = RANK_NONE, .local_rank = RANK_NONE};
        v[i] = split_name(paths[i]);
        read_torchrun(paths[i], &v[i], &ret[i]);
    }
    workers = !has_leader(v, n);
    one_node = is_one_node(v, n);
    for (size_t i = 0; i < n; i++) {
        if (v[i].torchrun.s)
            ret[i].rank = one_node ? ret[i].local_rank : RANK_NONE;
        else if (!tells_word(v[i].base, workers, &ret[i]) &&
                 !(begins_with_word(v[i].folder) && tells_word(v[i].folder, workers, &ret[i])))
            tells_number(v, n, &v[i], &ret[i]);
    }
}
