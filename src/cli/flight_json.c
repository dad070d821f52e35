/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flight.h"

#include "base/cleanup.h"
#include "cli/json.h"

#include <assert.h>

/* The schema that scripts rely on; reknit-flight-recorder(1) describes it. Fields are only ever
 * added. */

#define SCHEMA 1

static json_t *make_set(const struct intset *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(list, json_integer(s->v[i]));
    return list;
}

static json_t *word(const struct flight *f, uint32_t name)
{
    return cli_json_text(flight_word(f, name));
}

static json_t *number_or_null(int64_t v)
{
    return v < 0 ? json_null() : json_integer((json_int_t)v);
}

static json_t *make_reason(const struct flight *f, const struct flight_judgement *j,
                           const struct flight_culprit *c)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    json_t *v;

    flight_tell_culprit(&text, f, j, c);
    v = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "rank", (int)c->rank, "reason",
                  flight_reason_name(c->reason), "text", cli_json_text(strbuf_str(&text)), "group",
                  c->group == FLIGHT_NONE ? json_null() : word(f, j->groups.v[c->group].name),
                  "operation", word(f, c->what), "sequence", number_or_null(c->seq), "own_sequence",
                  number_or_null(c->own), "waiter", number_or_null(c->waiter));
    assert(v);
    return v;
}

static json_t *make_culprits(const struct flight *f, const struct flight_judgement *j)
{
    json_t *ranks = json_array(), *reasons = json_array();

    VEC_FOREACH (&j->culprits, c) {
        json_array_append_new(ranks, json_integer(c->rank));
        json_array_append_new(reasons, make_reason(f, j, c));
    }
    return json_pack("{s:o, s:o}", "ranks", ranks, "reasons", reasons);
}

static json_t *make_stand(const struct flight_group *g, enum flight_stand stand, bool blamed)
{
    struct intset s = {0};
    json_t *list;

    flight_ranks_of(g, stand, blamed, &s);
    list = make_set(&s);
    intset_done(&s);
    return list;
}

static json_t *make_group(const struct flight *f, const struct flight_group *g)
{
    json_t *v = json_pack(
        "{s:o, s:o, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "name", word(f, g->name), "desc",
        word(f, g->desc), "members", (int)g->ranks.n, "sequence", (json_int_t)g->front, "operation",
        word(f, g->what), "waiting", make_stand(g, FLIGHT_WAITS, false), "behind",
        make_stand(g, FLIGHT_BEHIND, false), "blamed", make_stand(g, FLIGHT_BEHIND, true), "untold",
        make_stand(g, FLIGHT_UNTOLD, false), "differs_at", number_or_null(g->differs_at), "root",
        (int)g->root);

    assert(v);
    return v;
}

static json_t *make_groups(const struct flight *f, const struct flight_judgement *j)
{
    json_t *list = json_array();

    VEC_FOREACH (&j->groups, g)
        if (g->front >= 0)
            json_array_append_new(list, make_group(f, g));
    return list;
}

static json_t *make_unread(const struct dump_folder *d)
{
    json_t *list = json_array();

    VEC_FOREACH (&d->files, file)
        if (file->error)
            json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "rank", (int)file->rank,
                                                  "file", cli_json_text(file->name), "error",
                                                  cli_json_text(file->error)));
    return list;
}

void flight_print_json(FILE *out, const struct flight *f, const struct flight_judgement *j,
                       const struct dump_folder *d)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    json_t *root;

    flight_tell_verdict(&text, f, j);
    root =
        json_pack("{s:i, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "schema", SCHEMA, "verdict",
                  flight_verdict_name(j->verdict), "summary", cli_json_text(strbuf_str(&text)),
                  "culprits", make_culprits(f, j), "groups", make_groups(f, j), "dumps",
                  (json_int_t)d->files.n, "missing", make_set(&j->missing), "completed",
                  make_set(&j->idle), "circle", make_set(&j->circle), "unread", make_unread(d));
    assert(root);
    json_dumpf(root, out, JSON_COMPACT);
    json_decref(root);
    fputc('\n', out);
}
