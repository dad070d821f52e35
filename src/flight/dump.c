/* SPDX-License-Identifier: Apache-2.0 */

/* The members of a dump, and how they changed between releases of PyTorch:
 *
 *   pg_config    group's name -> name, desc, ranks (a text); older ones have none
 *   pg_status    the process's own number of a group -> its last collectives; older ones have none
 *   entries      operations, oldest first; process_group is (name, desc), or only a name
 *
 * Stacks (frames) and all else are passed over. */

#include "flight/dump.h"

#include "base/hash.h"
#include "flight/json_text.h"
#include "flight/pickle.h"

#include <errno.h>

struct scene {
    const struct tree *t;
    struct flight *f;
    struct flight_rank *r;
    size_t left; /* of the ranks that lists of members may have, in bytes */
};

/* A dump of a few bytes can refer to a long list many times over, so whatever is walked has a
 * limit of its own. No dump comes near. */
#define ENTRIES_MAX      (1U << 18)
#define TENSORS_MAX      64
#define DIMENSIONS_MAX   8
#define MEMBER_BYTES_MAX (64U << 20)

static uint32_t name_of(struct scene *s, const struct tree_value *v)
{
    if (v->kind == TREE_INT) {
        char text[24];

        STR_PRINTF(text, "%lld", (long long)v->number);
        return flight_name(s->f, text, strlen(text));
    }
    return v->kind == TREE_TEXT ? flight_name(s->f, v->text, v->len) : flight_name(s->f, "", 0);
}

/* Keys of a map may be numbers or texts of them. */
static int64_t number_of(const struct tree_value *v)
{
    char text[24];
    long long n;

    if (v->kind == TREE_INT)
        return v->number;
    if (v->kind != TREE_TEXT || v->len >= sizeof(text))
        return -1;
    str_copy_n(text, sizeof(text), v->text, v->len);
    return str_to_i64(text, &n) == 0 ? n : -1;
}

/* ---- groups ---- */

/* Newer releases may write a list where they wrote the text of one. */
static uint32_t members_of(struct scene *s, const struct tree_value *v)
{
    _cleanup_strbuf_ struct strbuf text = {0};

    size_t cost = v->kind == TREE_TEXT ? v->len : 32 * tree_count(s->t, v);

    if ((v->kind != TREE_TEXT && v->kind != TREE_LIST) || cost > s->left)
        return FLIGHT_NONE;
    s->left -= cost;
    if (v->kind == TREE_TEXT)
        return flight_members(s->f, v->text, v->len);
    for (size_t i = 0; i < tree_count(s->t, v); i++)
        strbuf_addf(&text, "%lld, ", (long long)tree_int(tree_at(s->t, v, i), -1));
    return text.len ? flight_members(s->f, text.s, text.len) : FLIGHT_NONE;
}

static void read_group(struct scene *s, const struct tree_value *key, const struct tree_value *v)
{
    const struct tree_value *name = tree_get(s->t, v, "name");
    uint32_t n = name_of(s, name->kind == TREE_ABSENT ? key : name);

    if (flight_find_place(s->r, n) == FLIGHT_NONE)
        flight_add_place(s->f, s->r, n, name_of(s, tree_get(s->t, v, "desc")),
                         members_of(s, tree_get(s->t, v, "ranks")));
}

static void read_status(struct scene *s, const struct tree_value *key, const struct tree_value *v)
{
    struct flight_status *st;

    if (s->r->status.n >= FLIGHT_PLACES_MAX)
        return;
    st = VEC_PUSH(&s->r->status);
    st->local = number_of(key);
    st->enqueued = tree_int(tree_get(s->t, v, "last_enqueued_collective"), FLIGHT_UNKNOWN);
    st->started = tree_int(tree_get(s->t, v, "last_started_collective"), -1);
    st->completed = tree_int(tree_get(s->t, v, "last_completed_collective"), FLIGHT_UNKNOWN);
    s->r->has_starts |= st->started >= 0;
}

static void each_pair(struct scene *s, const struct tree_value *map,
                      void (*fn)(struct scene *, const struct tree_value *,
                                 const struct tree_value *))
{
    size_t n = map->kind == TREE_MAP ? tree_count(s->t, map) : 0;

    for (size_t i = 0; i < n && i < FLIGHT_PLACES_MAX; i++) {
        const struct tree_value *key, *v;

        tree_pair(s->t, map, i, &key, &v);
        fn(s, key, v);
    }
}

/* ---- operations ---- */

static bool begins(const char **p, const char *prefix)
{
    if (!str_startswith(*p, prefix))
        return false;
    *p += strlen(prefix);
    return true;
}

/* "0->3": who sends; "3<-0": who receives, from whom. */
static void read_ends(struct flight_op *op, const char *p)
{
    char *end;

    strtol(p, &end, 10);
    op->peer = -1;
    if (end > p && (str_startswith(end, "->") || str_startswith(end, "<-")))
        op->peer = (int32_t)strtol(end + 2, NULL, 10);
    op->peer = op->peer < 0 ? -1 : op->peer;
}

/* One word for one operation, whatever a release calls it: "nccl:_allgather_base". */
static void read_name(struct scene *s, struct flight_op *op, const struct tree_value *v)
{
    char text[128] = "", spelt[128];
    const char *p = text, *colon;

    if (v->kind == TREE_TEXT)
        str_copy_n(text, sizeof(text), v->text, v->len);
    if ((colon = strchr(text, ':')))
        p = colon + 1;
    p += strspn(p, "_");
    op->peer = -1;
    op->batch = streq(p, "coalesced");
    if (str_startswith(p, "send ") || str_startswith(p, "recv ")) {
        op->sends = *p == 's';
        op->p2p = true;
        read_ends(op, p + 5);
        text[p - text + 4] = '\0';
    }
    op->one_way = str_startswith(p, "broadcast") || streq(p, "gather") || streq(p, "scatter") ||
                  streq(p, "reduce") || streq(p, "reduce_oop");
    if (begins(&p, "allgather"))
        STR_PRINTF(spelt, "all_gather%s", p);
    else
        STR_COPY(spelt, p);
    op->what = flight_name(s->f, spelt, strlen(spelt));
}

/* Of these all ranks give tensors of the same size. */
static bool is_even(const char *what)
{
    static const char *const even[] = {"all_reduce", "broadcast", "reduce", "all_gather",
                                       "reduce_scatter"};

    for (size_t i = 0; i < ARRAY_SIZE(even); i++)
        if (str_startswith(what, even[i]))
            return true;
    return false;
}

/* The number of elements, for views of one tensor have many shapes, and their types. */
static uint64_t shape_of(struct scene *s, const struct tree_value *entry)
{
    const struct tree_value *sizes = tree_get(s->t, entry, "input_sizes");
    const struct tree_value *types = tree_get(s->t, entry, "input_dtypes");
    uint64_t h = HASH_INIT, total = 0;

    for (size_t i = 0; i < tree_count(s->t, sizes) && i < TENSORS_MAX; i++) {
        const struct tree_value *dims = tree_at(s->t, sizes, i);
        uint64_t elements = 1;

        for (size_t k = 0; k < tree_count(s->t, dims) && k < DIMENSIONS_MAX; k++)
            elements *= (uint64_t)tree_int(tree_at(s->t, dims, k), 1);
        total += elements;
    }
    for (size_t i = 0; i < tree_count(s->t, types) && i < TENSORS_MAX; i++) {
        const struct tree_value *type = tree_at(s->t, types, i);

        if (type->kind == TREE_TEXT)
            h = hash_bytes(h, type->text, type->len);
    }
    return sizes->kind == TREE_ABSENT ? 0 : hash_bytes(h, &total, sizeof(total)) | 1;
}

static uint32_t place_of(struct scene *s, const struct tree_value *entry)
{
    const struct tree_value *group = tree_get(s->t, entry, "process_group");
    const struct tree_value *id = tree_get(s->t, entry, "pg_id"), *desc = tree_at(s->t, group, 1);
    uint32_t name, place;

    if (group->kind == TREE_LIST)
        group = tree_at(s->t, group, 0);
    if (group->kind == TREE_ABSENT)
        group = id;
    name = name_of(s, group);
    place = flight_find_place(s->r, name);
    if (place == FLIGHT_NONE)
        place = flight_add_place(s->f, s->r, name, name_of(s, desc), FLIGHT_NONE);
    if (place != FLIGHT_NONE && id->kind == TREE_INT)
        s->r->places.v[place].local = id->number;
    return place;
}

static uint8_t state_of(const struct tree_value *v)
{
    if (tree_is_text(v, "completed"))
        return FLIGHT_COMPLETED;
    return tree_is_text(v, "started") ? FLIGHT_STARTED : FLIGHT_SCHEDULED;
}

static void read_entry(struct scene *s, const struct tree_value *v, size_t i)
{
    struct flight_op op = {.place = place_of(s, v)};

    if (op.place == FLIGHT_NONE || v->kind != TREE_MAP)
        return;
    op.seq =
        tree_int(tree_get(s->t, v, "collective_seq_id"), tree_int(tree_get(s->t, v, "seq_id"), -1));
    op.p2p_seq = tree_int(tree_get(s->t, v, "p2p_seq_id"), 0);
    op.order =
        tree_int(tree_get(s->t, v, "record_id"), tree_int(tree_get(s->t, v, "id"), (int64_t)i));
    op.state = state_of(tree_get(s->t, v, "state"));
    read_name(s, &op, tree_get(s->t, v, "profiling_name"));
    op.p2p |= tree_true(tree_get(s->t, v, "is_p2p"));
    if (!op.p2p && is_even(flight_word(s->f, op.what)))
        op.shape = shape_of(s, v);
    s->r->has_starts |= op.state == FLIGHT_STARTED ||
                        tree_get(s->t, v, "time_discovered_started_ns")->kind == TREE_INT;
    *VEC_PUSH(&s->r->ops) = op;
}

/* ---- the whole ---- */

static int parse(const char *data, size_t len, struct tree *t, struct tree_value *ret,
                 struct err *e)
{
    size_t i = 0;

    while (i < len && memchr(" \t\r\n", data[i], 4))
        i++;
    tree_reset(t);
    if (i < len && data[i] == '{')
        return json_text_read(data, len, t, ret, e);
    return pickle_read(data, len, t, ret, e);
}

int dump_read(const char *data, size_t len, struct tree *t, struct flight *f, struct flight_rank *r,
              struct err *e)
{
    struct scene s = {.t = t, .f = f, .r = r, .left = MEMBER_BYTES_MAX};
    const struct tree_value *entries;
    struct tree_value root;
    int x = parse(data, len, t, &root, e);

    if (x < 0)
        return x;
    entries = tree_get(t, &root, "entries");
    if (root.kind != TREE_MAP ||
        (entries->kind != TREE_LIST && tree_get(t, &root, "pg_status")->kind != TREE_MAP))
        return err_set(e, -EBADMSG, "is no dump of a flight recorder: it has no entries");
    if (tree_count(t, entries) > ENTRIES_MAX)
        return err_set(e, -E2BIG, "more than %u operations: no dump has so many", ENTRIES_MAX);
    each_pair(&s, tree_get(t, &root, "pg_config"), read_group);
    each_pair(&s, tree_get(t, &root, "pg_status"), read_status);
    for (size_t i = 0; i < tree_count(t, entries); i++)
        read_entry(&s, tree_at(t, entries, i), i);
    flight_rank_settle(f, r);
    return 0;
}
