/* SPDX-License-Identifier: Apache-2.0 */

/* Every line is reduced to its form: its text with the numbers taken out. For the forms seen most
 * often the numbers are watched. One that is whole, is called a step and has grown GROWTHS times in
 * a row, mostly by the same amount, counts the steps. Without such a name it must have grown
 * longer, and stand beside a number that goes up and down (a loss, a time), in what no system log
 * says: kernels and daemons number their messages, too. Numbers that only count
 * files, channels or stack frames start again, stop, stand alone, or grow within a moment. */

#include "extract/counter.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define FORMS_MAX        48 /* watched; the one unused for longest makes room */
#define FIELDS_MAX       12 /* numbers of a line */
#define TEXT_MAX         400
#define GROWTHS          6
#define GROWTHS_NAMELESS 40
#define SECONDS_MIN      2 /* that these take, where lines have a clock */

/* Words that a step counter has before it. */
static const char *const step_words[] = {"step",   "iter",      "iteration",  "it",      "update",
                                         "batch",  "epoch",     "steps",      "episode", "round",
                                         "global", "updates",   "iters",      "tick",    "cycle",
                                         "chunk",  "minibatch", "generation", "trial"};
static const char *const loss_words[] = {"loss", "nll", "xent", "ppl", "perplexity"};

struct number {
    bool whole;
    int64_t value; /* whole: itself; else in millionths */
    const char *begin, *end;
};

struct field {
    int64_t last, delta;
    unsigned grown;  /* times in a row */
    unsigned even;   /* of these, by the same amount as before */
    usec_t since;    /* time of the first of these */
    bool is_step;    /* by the word before it */
    bool fell, rose; /* at any time */
};

struct form {
    uint64_t hash, used;
    unsigned n;
    struct field fields[FIELDS_MAX];
};

struct counters {
    uint64_t lines;
    unsigned n;
    struct form forms[FORMS_MAX];
};

struct counters *counters_new(void)
{
    return xnew(struct counters);
}

struct counters *counters_free(struct counters *c)
{
    free(c);
    return NULL;
}

/* A number at s, which is a digit. */
static const char *read_number(const char *s, const char *end, struct number *ret)
{
    int64_t whole = 0, part = 0, scale = 1000000;

    *ret = (struct number){.whole = true, .begin = s};
    for (; s < end && isdigit((unsigned char)*s); s++)
        if (whole < INT64_MAX / 100000000)
            whole = whole * 10 + (*s - '0');
    if (end - s > 1 && *s == '.' && isdigit((unsigned char)s[1])) {
        ret->whole = false;
        for (s++; s < end && isdigit((unsigned char)*s); s++)
            part += (*s - '0') * (scale /= 10);
    }
    if (end - s > 2 && (*s == 'e' || *s == 'E') && (s[1] == '-' || s[1] == '+') &&
        isdigit((unsigned char)s[2])) {
        ret->whole = false;
        for (s += 2; s < end && isdigit((unsigned char)*s); s++)
            ;
    }
    ret->value = ret->whole ? whole : whole * 1000000 + part;
    ret->end = s;
    return s;
}

/* Takes the numbers out; returns how many, and the hash of the rest. A number that is part of a
 * word ("gpu3", "0x7f") or of an address belongs to the rest. */
static unsigned reduce(const struct line *l, struct number numbers[FIELDS_MAX], uint64_t *ret_hash)
{
    const char *s = l->text, *end = s + (l->len < TEXT_MAX ? l->len : TEXT_MAX);
    uint64_t h = HASH_INIT;
    struct number beyond; /* taken out as well, but not watched */
    unsigned n = 0;
    char last = ' ';

    while (s < end) {
        if (isdigit((unsigned char)*s) && !isalpha((unsigned char)last) && last != '_') {
            s = read_number(s, end, n < FIELDS_MAX ? &numbers[n++] : &beyond);
            last = '0';
            continue;
        }
        if (isdigit((unsigned char)*s) && (isalpha((unsigned char)last) || last == '_'))
            for (; s + 1 < end && isalnum((unsigned char)s[1]); s++)
                h = hash_bytes(h, s, 1);
        last = *s++;
        /* Padding depends on the number. */
        if (last != ' ' && last != '-' && last != '+')
            h = hash_bytes(h, &last, 1);
    }
    *ret_hash = hash_bytes(h, &n, sizeof(n));
    return n;
}

static bool is_word(const char *const *words, size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == len && strncasecmp(words[i], s, len) == 0)
            return true;
    return false;
}

/* Whether the last word before the number is one of these ("step: 12", "[iter 12/"). */
static bool has_word_before(const struct line *l, const struct number *x, const char *const *words,
                            size_t n)
{
    const char *end = x->begin, *from;

    while (end > l->text && x->begin - end < 8 && !isalpha((unsigned char)end[-1]) &&
           !isdigit((unsigned char)end[-1]))
        end--;
    for (from = end; from > l->text && isalpha((unsigned char)from[-1]);)
        from--;
    return is_word(words, n, from, (size_t)(end - from));
}

static struct form *find_form(struct counters *c, uint64_t hash, unsigned n)
{
    struct form *oldest = &c->forms[0];

    for (unsigned i = 0; i < c->n; i++) {
        if (c->forms[i].hash == hash)
            return &c->forms[i];
        if (c->forms[i].used < oldest->used)
            oldest = &c->forms[i];
    }
    if (c->n < FORMS_MAX)
        oldest = &c->forms[c->n++];
    *oldest = (struct form){.hash = hash, .n = n};
    return oldest;
}

static void watch_field(struct field *f, const struct number *x, bool first, usec_t now)
{
    int64_t delta = x->value - f->last;

    if (!first) {
        f->rose |= delta > 0;
        f->fell |= delta < 0;
        f->even = delta > 0 && x->whole ? f->even + (delta == f->delta) : 0;
        f->grown = delta > 0 && x->whole ? f->grown + 1 : 0;
        f->delta = delta;
    }
    if (f->grown == 0)
        f->since = now;
    f->last = x->value;
}

static bool is_steady(const struct field *f, bool wavers, usec_t now)
{
    if (f->grown < (f->is_step ? GROWTHS : GROWTHS_NAMELESS) || !(f->is_step || wavers))
        return false;
    /* By different amounts when only some lines of the log are looked at. */
    if (f->even * 4 < (f->grown - 1) * 3 && f->grown < GROWTHS_NAMELESS)
        return false;
    return now == USEC_UNKNOWN || f->since == USEC_UNKNOWN ||
           now - f->since >= SECONDS_MIN * USEC_PER_SEC;
}

/* The field that counts the steps, NULL = none does. */
static const struct field *step_field(const struct form *form, usec_t now)
{
    const struct field *best = NULL;
    bool wavers = false;

    for (unsigned i = 0; i < form->n; i++)
        wavers |= form->fields[i].rose && form->fields[i].fell;
    for (unsigned i = 0; i < form->n; i++) {
        const struct field *f = &form->fields[i];

        if (is_steady(f, wavers, now) && (!best || f->is_step > best->is_step ||
                                          (f->is_step == best->is_step && f->delta < best->delta)))
            best = f;
    }
    return best;
}

static void fill_step(const struct line *l, const struct number *numbers, unsigned n,
                      const struct form *form, const struct field *step, struct step_fact *ret)
{
    unsigned at = (unsigned)(step - form->fields);

    ret->step = step->last;
    if (at + 1 < n && numbers[at].end < numbers[at + 1].begin && *numbers[at].end == '/' &&
        numbers[at + 1].begin - numbers[at].end <= 3 && numbers[at + 1].whole)
        ret->total = numbers[at + 1].value;
    for (unsigned i = 0; i < n; i++)
        if (!numbers[i].whole &&
            has_word_before(l, &numbers[i], loss_words, ARRAY_SIZE(loss_words)) &&
            ret->loss == NUMBER_NONE)
            ret->loss = numbers[i].value;
}

bool counters_feed(struct counters *c, const struct line *line, struct step_fact *ret)
{
    struct number numbers[FIELDS_MAX];
    const struct field *step;
    struct form *form;
    uint64_t hash;
    unsigned n = reduce(line, numbers, &hash);
    bool first;

    c->lines++;
    if (n == 0 || (line->len > 5 && memcmp(line->text, "NCCL ", 5) == 0))
        return false;
    form = find_form(c, hash, n);
    first = form->used == 0;
    form->used = c->lines;
    for (unsigned i = 0; i < n; i++) {
        if (first)
            form->fields[i].is_step =
                has_word_before(line, &numbers[i], step_words, ARRAY_SIZE(step_words));
        watch_field(&form->fields[i], &numbers[i], first, line->time_us);
    }
    step = step_field(form, line->time_us);
    if (step && line->of_system && !step->is_step)
        return false;
    if (step)
        fill_step(line, numbers, n, form, step, ret);
    return step != NULL;
}
