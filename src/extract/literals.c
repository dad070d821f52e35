/* SPDX-License-Identifier: Apache-2.0 */

/* A recursive descent over the pattern. Each part of it yields a `struct part`: either exactly the
 * few strings that it can match (`exact`), or a set of which it needs one member (`need`, empty =
 * nothing known). In a sequence, exact parts that touch multiply into longer strings (the `run`);
 * where the run breaks, it is weighed against the best set so far. The invariant throughout: a set
 * that is kept is one of which every match contains a member. When in doubt the parser gives up on
 * a part (not exact, no need), which is always right.
 *
 * The pattern has been compiled by PCRE2 before, so its brackets balance. */

#include "extract/literals.h"

#include "base/alloc.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 24
#define CLASS_MAX 6 /* a class of more characters says nothing */

struct part {
    bool exact;
    struct literal_set set; /* exact: all strings; else: one is needed, n = 0 unknown */
};

struct parser {
    const char *s;
    literal_score_fn score;
    void *ctx;
    bool caseless;
    unsigned depth;
};

static void parse_alternatives(struct parser *p, struct part *ret);

static void set_to_empty_string(struct part *part)
{
    part->exact = true;
    part->set.n = 1;
    part->set.v[0].len = 0;
}

static void set_to_unknown(struct part *part)
{
    part->exact = false;
    part->set.n = 0;
}

static void set_to_char(struct part *part, char c)
{
    part->exact = true;
    part->set.n = 1;
    part->set.v[0].len = 1;
    part->set.v[0].s[0] = c;
}

static unsigned set_score(const struct parser *p, const struct literal_set *set)
{
    unsigned worst = UINT32_MAX;

    for (unsigned i = 0; i < set->n; i++) {
        const struct literal *l = &set->v[i];
        unsigned score = l->len < LITERAL_BYTES_MIN  ? 0
                         : l->len < LITERAL_BYTES_OK ? 1
                                                     : p->score(p->ctx, l->s, l->len);

        if (score < worst)
            worst = score;
    }
    return set->n == 0 ? 0 : worst;
}

/* Keeps the better of the two in best. */
static void weigh(const struct parser *p, struct literal_set *best, const struct literal_set *set)
{
    if (set_score(p, set) > set_score(p, best))
        *best = *set;
}

/* Adds l to the end of each. */
static bool append_literal(struct literal_set *run, const struct literal *l)
{
    for (unsigned i = 0; i < run->n; i++)
        if (run->v[i].len + l->len > LITERAL_BYTES_MAX)
            return false;
    for (unsigned i = 0; i < run->n; i++) {
        memcpy(run->v[i].s + run->v[i].len, l->s, l->len);
        run->v[i].len = (unsigned char)(run->v[i].len + l->len);
    }
    return true;
}

/* run x part, if it stays small enough. */
static bool multiply(struct literal_set *run, const struct literal_set *set)
{
    struct literal_set product;

    if (run->n * set->n > LITERALS_MAX)
        return false;
    if (set->n == 1)
        return append_literal(run, &set->v[0]);
    product.n = 0;
    product.caseless = false;
    for (unsigned i = 0; i < run->n; i++)
        for (unsigned j = 0; j < set->n; j++) {
            struct literal *l = &product.v[product.n++];

            if (run->v[i].len + set->v[j].len > LITERAL_BYTES_MAX)
                return false;
            *l = run->v[i];
            memcpy(l->s + l->len, set->v[j].s, set->v[j].len);
            l->len = (unsigned char)(l->len + set->v[j].len);
        }
    *run = product;
    return true;
}

static bool add_all(struct literal_set *set, const struct literal_set *more)
{
    if (set->n + more->n > LITERALS_MAX)
        return false;
    memcpy(set->v + set->n, more->v, more->n * sizeof(more->v[0]));
    set->n += more->n;
    return true;
}

/* Behind "[": a class of a few plain characters is their set, others are unknown. */
static void parse_class(struct parser *p, struct part *ret)
{
    bool plain = *p->s != '^';

    set_to_unknown(ret);
    if (!plain)
        p->s++;
    for (bool first = true; *p->s && (first || *p->s != ']'); first = false) {
        char c = *p->s++;

        if (c == '[' && *p->s == ':') {
            const char *end = strstr(p->s, ":]");

            plain = false;
            p->s = end ? end + 2 : p->s;
            continue;
        }
        if (c == '\\' && *p->s) {
            c = *p->s++;
            plain = plain && ispunct((unsigned char)c);
        }
        if (*p->s == '-' && p->s[1] != ']')
            plain = false;
        if (plain && ret->set.n < CLASS_MAX)
            ret->set.v[ret->set.n++] = (struct literal){.len = 1, .s = {c}};
        else
            plain = false;
    }
    if (*p->s == ']')
        p->s++;
    if (plain)
        ret->exact = true;
    else
        set_to_unknown(ret);
}

/* Behind "(?": moves past what opens the group; false = it matches no text of its own or what it
 * matches is not understood: its content does not count. */
static bool parse_group_opening(struct parser *p)
{
    bool counts = true;

    if (*p->s == ':' || *p->s == '|') {
        p->s++;
    } else if (*p->s == 'P' || *p->s == '\'' ||
               (*p->s == '<' && p->s[1] != '=' && p->s[1] != '!')) {
        char end = *p->s == '\'' ? '\'' : '>';

        p->s += *p->s == 'P' ? 2 : 1;
        while (*p->s && *p->s != end)
            p->s++;
        p->s += *p->s != '\0';
    } else if (isalpha((unsigned char)*p->s) || *p->s == '-' || *p->s == '^') {
        for (bool on = true; *p->s && *p->s != ':' && *p->s != ')'; p->s++) {
            on = on && *p->s != '-';
            if (*p->s == 'i' && on)
                p->caseless = true;
            if (*p->s == 'x')
                counts = false;
        }
        p->s += *p->s == ':';
    } else {
        counts = false;
    }
    return counts;
}

/* Behind "(". */
static void parse_group(struct parser *p, struct part *ret)
{
    bool counts = p->depth < DEPTH_MAX, empty = false;

    if (*p->s == '?') {
        p->s++;
        empty =
            *p->s == '=' || *p->s == '!' || (*p->s == '<' && (p->s[1] == '=' || p->s[1] == '!'));
        counts = parse_group_opening(p) && counts;
    } else if (*p->s == '*') {
        counts = false;
    }
    p->depth++;
    parse_alternatives(p, ret);
    p->depth--;
    p->s += *p->s == ')';
    if (empty)
        set_to_empty_string(ret);
    else if (!counts)
        set_to_unknown(ret);
}

/* Behind "\\". */
static void parse_escape(struct parser *p, struct part *ret)
{
    char c = *p->s ? *p->s++ : '\\';

    set_to_unknown(ret);
    if (strchr("bBAzZG", c)) {
        set_to_empty_string(ret);
    } else if (c == 'x' && isxdigit((unsigned char)*p->s)) {
        char hex[3] = {*p->s++, 0, 0};

        if (isxdigit((unsigned char)*p->s))
            hex[1] = *p->s++;
        set_to_char(ret, (char)strtoul(hex, NULL, 16));
    } else if (c == 't') {
        set_to_char(ret, '\t');
    } else if (c == 'Q') {
        /* A quoted stretch: rare, and nothing is lost but speed. */
        const char *end = strstr(p->s, "\\E");

        p->s = end ? end + 2 : p->s + strlen(p->s);
    } else if (!isalnum((unsigned char)c)) {
        set_to_char(ret, c);
    }
}

static void parse_atom(struct parser *p, struct part *ret)
{
    char c = *p->s++;

    switch (c) {
    case '(':
        parse_group(p, ret);
        break;
    case '[':
        parse_class(p, ret);
        break;
    case '\\':
        parse_escape(p, ret);
        break;
    case '.':
        set_to_unknown(ret);
        break;
    case '^':
    case '$':
        set_to_empty_string(ret);
        break;
    default:
        set_to_char(ret, c);
    }
}

struct repeat {
    bool any;
    unsigned least;
    bool once; /* at most once */
};

/* "{2}", "{2,}", "{2,5}" at p->s; a brace that is not of this form stands for itself. */
static bool parse_braces(struct parser *p, struct repeat *ret)
{
    char *end;
    unsigned long least, most;

    if (*p->s != '{' || !isdigit((unsigned char)p->s[1]))
        return false;
    least = most = strtoul(p->s + 1, &end, 10);
    if (*end == ',') {
        end++;
        most = isdigit((unsigned char)*end) ? strtoul(end, &end, 10) : ULONG_MAX;
    }
    if (*end != '}')
        return false;
    p->s = end + 1;
    *ret = (struct repeat){true, least > 0, most <= 1};
    return true;
}

static struct repeat parse_repeat(struct parser *p)
{
    struct repeat r = {.least = 1, .once = true};

    if (*p->s == '*' || *p->s == '+' || *p->s == '?') {
        r = (struct repeat){true, *p->s == '+', *p->s == '?'};
        p->s++;
    } else if (!parse_braces(p, &r)) {
        return r;
    }
    if (*p->s == '?' || *p->s == '+')
        p->s++;
    return r;
}

/* A sequence that is being read. */
struct sequence {
    bool broken;             /* the run does not reach back to the beginning */
    struct literal_set run;  /* exact strings of the parts read last */
    struct literal_set best; /* best set so far */
};

static void break_run(const struct parser *p, struct sequence *q)
{
    weigh(p, &q->best, &q->run);
    q->broken = true;
    q->run.n = 1;
    q->run.v[0].len = 0;
}

static void append(const struct parser *p, struct sequence *q, const struct part *part)
{
    if (!part->exact) {
        break_run(p, q);
        weigh(p, &q->best, &part->set);
    } else if (!multiply(&q->run, &part->set)) {
        break_run(p, q);
        q->run = part->set;
    }
}

/* x* says nothing; x? may be absent; x+ is an x, then anything, then an x. */
static void append_repeated(const struct parser *p, struct sequence *q, struct part *part,
                            struct repeat r)
{
    if (r.least == 0) {
        if (r.once && part->exact && part->set.n < LITERALS_MAX)
            part->set.v[part->set.n++].len = 0;
        else
            set_to_unknown(part);
        append(p, q, part);
        return;
    }
    append(p, q, part);
    if (r.once)
        return;
    break_run(p, q);
    if (part->exact)
        q->run = part->set;
}

static void parse_sequence(struct parser *p, struct part *ret)
{
    struct sequence *q = xnew(struct sequence);

    q->run.n = 1;
    while (*p->s && *p->s != '|' && *p->s != ')') {
        struct repeat r;

        parse_atom(p, ret);
        r = parse_repeat(p);
        if (r.any)
            append_repeated(p, q, ret, r);
        else
            append(p, q, ret);
    }
    ret->exact = !q->broken;
    if (q->broken)
        weigh(p, &q->best, &q->run);
    ret->set = q->broken ? q->best : q->run;
    free(q);
}

static void parse_alternatives(struct parser *p, struct part *ret)
{
    struct part *next;

    parse_sequence(p, ret);
    if (*p->s != '|')
        return;
    next = xnew(struct part);
    while (*p->s == '|') {
        bool known = ret->set.n > 0;

        p->s++;
        parse_sequence(p, next);
        ret->exact = ret->exact && next->exact;
        if (!known || next->set.n == 0 || !add_all(&ret->set, &next->set))
            set_to_unknown(ret);
    }
    free(next);
}

bool literals_required(const char *pattern, literal_score_fn score, void *ctx,
                       struct literal_set *ret)
{
    struct parser p = {.s = pattern, .score = score, .ctx = ctx};
    struct part *part = xnew(struct part);
    bool found;

    parse_alternatives(&p, part);
    found = *p.s == '\0' && set_score(&p, &part->set) > 0;
    if (found) {
        *ret = part->set;
        ret->caseless = p.caseless;
    }
    free(part);
    return found;
}
