/* SPDX-License-Identifier: Apache-2.0 */

/* Of each thing that was seen (a GPU, a port, a mount) it is remembered what was last seen of it,
 * and for each rule how often in a row it held, and whether that was told. A rule that holds in as
 * many looks in a row as it wants is told once, and told to be over when as many in a row say so. A
 * look that could not say breaks the row, so that what hangs or is refused now and then makes
 * nobody ill.
 *
 * What an area's ending says becomes an observation like others: that it hung, or answered. */

#include "probe/judge.h"

#include "probe/rules.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

struct row {
    uint8_t yes, no;
    bool told;
};

struct thing {
    struct observation seen, before;
    usec_t seen_us, before_us;
    bool is_seen; /* in this look */
    bool has_before;
    struct past past;
    struct row rows[RULES_MAX];
};

struct judge {
    VEC(struct thing *) things;
    usec_t now;
    bool done[AREA_MAX]; /* the area was seen to its end in this look */
};

struct judge *judge_new(void)
{
    return xnew(struct judge);
}

struct judge *judge_free(struct judge *j)
{
    if (!j)
        return NULL;
    VEC_FOREACH (&j->things, t)
        free(*t);
    VEC_DONE(&j->things);
    free(j);
    return NULL;
}

static struct thing *find(struct judge *j, enum area area, const char *subject)
{
    VEC_FOREACH (&j->things, t)
        if ((*t)->seen.area == area && streq((*t)->seen.subject, subject))
            return *t;
    return NULL;
}

/* NULL: there are too many things. */
static struct thing *find_or_add(struct judge *j, enum area area, const char *subject)
{
    struct thing *t = find(j, area, subject);

    if (t || j->things.n == PROBE_SUBJECTS_MAX)
        return t;
    t = xnew(struct thing);
    t->seen = observation_make(area, subject);
    /* Behind those of its area: the areas are seen side by side, and told in their order. */
    *VEC_INSERT(&j->things, VEC_BISECT(&j->things, x, (*x)->seen.area <= area)) = t;
    return t;
}

void judge_begin(struct judge *j, usec_t now)
{
    j->now = now;
    memset(j->done, 0, sizeof(j->done));
    VEC_FOREACH (&j->things, t)
        (*t)->is_seen = false;
}

/* The first word of a look about a thing makes what was seen last the past. */
static struct thing *open_thing(struct judge *j, enum area area, const char *subject)
{
    struct thing *t = find_or_add(j, area, subject);

    if (!t || t->is_seen)
        return t;
    if (t->seen_us > 0) {
        t->before = t->seen;
        t->before_us = t->seen_us;
        t->has_before = true;
    }
    t->seen = observation_make(area, subject);
    t->seen_us = j->now;
    t->is_seen = true;
    return t;
}

static void take_ending(struct judge *j, const struct ending *e)
{
    struct thing *t;

    if (e->how == ENDED_DONE && !e->subject[0])
        j->done[e->area] = true;
    if (e->how != ENDED_DONE && e->how != ENDED_HUNG)
        return;
    t = open_thing(j, e->area, e->subject);
    if (t)
        observation_set(&t->seen, ITEM_HUNG, e->how == ENDED_HUNG);
}

void judge_take(struct judge *j, const struct probe_line *l)
{
    const struct observation *o = &l->observation;
    struct thing *t;

    if (l->is_ending) {
        take_ending(j, &l->ending);
        return;
    }
    t = open_thing(j, o->area, o->subject);
    for (int i = 0; t && i < ITEM_MAX; i++)
        if (observation_has(o, (enum item)i))
            observation_set(&t->seen, (enum item)i, o->value[i]);
}

/* By how much a counter rose, at most TURNS_KEPT: more of them say nothing more. */
static int64_t rise(const struct thing *t, enum item i)
{
    int64_t now = t->seen.value[i], was = t->before.value[i], n;

    if (!t->has_before || !observation_has(&t->seen, i) || !observation_has(&t->before, i) ||
        now <= was)
        return 0;
    return __builtin_sub_overflow(now, was, &n) || n > TURNS_KEPT ? TURNS_KEPT : n;
}

static void note_turns(struct thing *t, int64_t n, usec_t now)
{
    for (; n > 0; n--) {
        memmove(&t->past.turns[1], &t->past.turns[0], sizeof(t->past.turns) - sizeof(usec_t));
        t->past.turns[0] = now;
        t->past.n_turns += t->past.n_turns < TURNS_KEPT;
    }
}

/* A card counts its turns. An adapter counts how often it went down, each time but the last up
 * again. One that counts nothing is seen to turn. */
static int64_t turns_of(const struct thing *t)
{
    const struct observation *o = &t->seen, *b = &t->before;
    bool both = t->has_before && observation_has(o, ITEM_UP) && observation_has(b, ITEM_UP);
    int64_t seen = both && o->value[ITEM_UP] != b->value[ITEM_UP], downs = rise(t, ITEM_DOWNS);

    if (rise(t, ITEM_TURNS) > 0)
        return rise(t, ITEM_TURNS);
    if (downs > 0 && observation_has(o, ITEM_UP))
        return 2 * downs - !o->value[ITEM_UP];
    return seen;
}

static void remember(struct thing *t)
{
    const struct observation *o = &t->seen;

    if (observation_has(o, ITEM_UP) && o->value[ITEM_UP])
        t->past.was_up = true;
    if (observation_has(o, ITEM_NVLINKS_UP) && o->value[ITEM_NVLINKS_UP] > t->past.links_best)
        t->past.links_best = o->value[ITEM_NVLINKS_UP];
}

static const char *noun_of(const struct change *c)
{
    static const char *const whole[AREA_MAX] = {
        [AREA_GPU] = "GPUs",
        [AREA_NIC] = "network",
        [AREA_DISK] = "disks",
        [AREA_MOUNTS] = "mounts",
        [AREA_MEMORY] = "memory",
        [AREA_CLOCK] = "clock",
        [AREA_PROCESSES] = "processes",
    };
    static const char *const one[AREA_MAX] = {
        [AREA_GPU] = "GPU ",
        [AREA_NIC] = "port ",
        [AREA_MEMORY] = "memory ",
    };

    if (!c->subject[0])
        return whole[c->area];
    return one[c->area] ? one[c->area] : "";
}

/* "GPU 0000:4d:00: uncorrectable memory errors (ecc_uncorrected 3, was 1)" */
static void write_text(struct change *c, const struct rule *r, const struct thing *t)
{
    char number[96] = "";
    char was[48] = "";

    if (t->has_before && observation_has(&t->before, r->item) &&
        t->before.value[r->item] != t->seen.value[r->item])
        STR_PRINTF(was, ", was %" PRId64, t->before.value[r->item]);
    if (observation_has(&t->seen, r->item) && r->item < ITEM_HUNG)
        STR_PRINTF(number, " (%s %" PRId64 "%s)", item_name(r->item), t->seen.value[r->item], was);
    STR_PRINTF(c->text, "%s%s: %s%s%s", noun_of(c), c->subject, c->cleared ? "over: " : "", r->text,
               number);
}

static void tell(const struct rule *r, const struct thing *t, bool cleared, judge_fn fn, void *ctx)
{
    struct change c = {
        .signature = r->signature,
        .isolation = r->isolation,
        .cause = r->cause,
        .role = r->role,
        .blame = r->blame,
        .confidence = r->confidence,
        .provenance = r->area == AREA_GPU ? PROVENANCE_NVML : PROVENANCE_AGENT,
        .straggler = r->straggler,
        .cleared = cleared,
        .area = r->area,
    };

    STR_COPY(c.subject, t->seen.subject);
    if (r->area == AREA_GPU && strchr(c.subject, ':')) /* one that is lost may not say its place */
        STR_COPY(c.device, c.subject);
    write_text(&c, r, t);
    fn(ctx, &c);
}

static struct sight sight_of(const struct thing *t)
{
    return (struct sight){
        .now = &t->seen,
        .before = t->has_before ? &t->before : NULL,
        .now_us = t->seen_us,
        .between_us = t->seen_us - t->before_us,
        .past = &t->past,
    };
}

static void apply(const struct rule *r, struct row *row, struct thing *t, judge_fn fn, void *ctx)
{
    struct sight s = sight_of(t);
    enum answer is = r->is(r, &s);

    row->yes = is != ANSWER_YES ? 0 : row->yes < r->looks ? row->yes + 1 : row->yes;
    row->no = is != ANSWER_NO ? 0 : row->no < r->looks ? row->no + 1 : row->no;
    if (row->yes == r->looks && !row->told) {
        row->told = !r->passes;
        tell(r, t, false, fn, ctx);
    } else if (row->no == r->looks && row->told) {
        row->told = false;
        tell(r, t, true, fn, ctx);
    }
}

static void apply_all(struct thing *t, judge_fn fn, void *ctx)
{
    note_turns(t, turns_of(t), t->seen_us);
    for (size_t i = 0; i < rules_count; i++)
        if (rules[i].area == t->seen.area)
            apply(&rules[i], &t->rows[i], t, fn, ctx);
    remember(t);
}

/* The troubles of what is not there any more are over. */
static void forget(struct judge *j, size_t i, judge_fn fn, void *ctx)
{
    struct thing *t = j->things.v[i];

    for (size_t k = 0; k < rules_count; k++)
        if (t->rows[k].told)
            tell(&rules[k], t, true, fn, ctx);
    free(t);
    VEC_REMOVE(&j->things, i);
}

/* Of an area that was seen whole, what was there and is missing. A GPU does not go by itself. */
static bool is_missing(const struct judge *j, const struct thing *t)
{
    return !t->is_seen && j->done[t->seen.area] && t->seen.subject[0];
}

static void note_presence(struct judge *j, struct thing *t)
{
    if (is_missing(j, t)) {
        open_thing(j, AREA_GPU, t->seen.subject);
        observation_set(&t->seen, ITEM_GONE, 1);
    } else if (t->is_seen) {
        observation_set(&t->seen, ITEM_GONE, 0);
    }
}

void judge_end(struct judge *j, judge_fn fn, void *ctx)
{
    for (size_t i = j->things.n; i > 0; i--) {
        struct thing *t = j->things.v[i - 1];

        if (t->seen.area == AREA_GPU && t->seen.subject[0])
            note_presence(j, t);
        else if (is_missing(j, t))
            forget(j, i - 1, fn, ctx);
    }
    VEC_FOREACH (&j->things, t)
        if ((*t)->is_seen)
            apply_all(*t, fn, ctx);
}

void judge_now(const struct judge *j, judge_fn fn, void *ctx)
{
    VEC_FOREACH (&j->things, t)
        for (size_t i = 0; i < rules_count && (*t)->is_seen; i++) {
            struct sight s = sight_of(*t);

            if (rules[i].area == (*t)->seen.area && !rules[i].compares &&
                rules[i].is(&rules[i], &s) == ANSWER_YES)
                tell(&rules[i], *t, false, fn, ctx);
        }
}

static json_t *told_of(const struct thing *t)
{
    json_t *told = json_array();

    for (size_t i = 0; i < rules_count; i++)
        if (t->rows[i].told)
            json_array_append_new(told, json_string(rules[i].signature));
    return told;
}

json_t *judge_to_json(const struct judge *j)
{
    json_t *all = json_array();

    VEC_FOREACH (&j->things, x) {
        const struct thing *t = *x;
        json_t *told = told_of(t);

        if (json_array_size(told) == 0 && !t->past.was_up && t->past.links_best == 0) {
            json_decref(told);
            continue;
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:I, s:o}", "area",
                                             area_name(t->seen.area), "subject", t->seen.subject,
                                             "was_up", t->past.was_up, "links_best",
                                             (json_int_t)t->past.links_best, "told", told));
    }
    return all;
}

static void recall_told(struct thing *t, const json_t *told)
{
    const json_t *name;
    size_t k;

    json_array_foreach (told, k, name)
        for (size_t i = 0; json_is_string(name) && i < rules_count; i++)
            if (rules[i].area == t->seen.area && !rules[i].passes &&
                streq(rules[i].signature, json_string_value(name)))
                t->rows[i].told = true;
}

static void recall(struct judge *j, const json_t *one)
{
    const char *area = json_string_value(json_object_get(one, "area"));
    const char *subject = json_string_value(json_object_get(one, "subject"));
    enum area a = area ? area_from_name(area) : AREA_INVALID;
    struct thing *t = a >= 0 && subject ? find_or_add(j, a, subject) : NULL;

    if (!t)
        return;
    t->past.was_up = json_is_true(json_object_get(one, "was_up"));
    t->past.links_best = json_integer_value(json_object_get(one, "links_best"));
    recall_told(t, json_object_get(one, "told"));
}

void judge_from_json(struct judge *j, const json_t *array)
{
    const json_t *one;
    size_t i;

    json_array_foreach (array, i, one)
        recall(j, one);
}
