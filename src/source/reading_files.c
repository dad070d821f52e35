/* SPDX-License-Identifier: Apache-2.0 */

/* A file that a node tells of goes to home, unless it is seen that home has not got it: then to the
 * reader of a node that has told of it. What is read there is a part, with marks of its own and
 * none of the job's patterns. */

#include "source/reading.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <string.h>

#define PLACES_MAX  64                    /* beside home, where one job is read */
#define FILES_PAUSE (500 * USEC_PER_MSEC) /* many nodes tell of their files in one moment */

static bool is_known(struct reading *home, const char *path, const char *node)
{
    const struct readers *r = home->owner->readers;

    for (size_t i = reading_place(r, home->key);
         i < r->jobs.n && streq(r->jobs.v[i]->key, home->key); i++)
        if (told_files_hear(r->jobs.v[i]->files, path, node, r->jobs.v[i]->owner->node))
            return true;
    return false;
}

static int has_no_room(struct reading *j)
{
    char text[100];

    STR_PRINTF(text, "of the files that its nodes tell of, only %zu are read",
               told_files_count(j->files));
    if (!j->full)
        reading_gap(j, text);
    j->full = true;
    return -E2BIG;
}

static int add_file(struct reading *j, const char *path, json_t *tellers)
{
    struct readers *r = j->owner->readers;
    int ret;

    if (told_files_count(j->files) >= LOG_FILES_MAX || j->owner->n_files >= LOG_FILES_SUM)
        return has_no_room(j);
    ret = told_files_add(j->files, path, tellers);
    if (ret < 0)
        return ret;
    j->owner->n_files++;
    if (!timer_is_armed(r->files_timer))
        timer_arm(r->files_timer, mono_us() + FILES_PAUSE);
    return 0;
}

int readers_add_file(struct readers *r, const char *job, uint32_t attempt, const char *path,
                     const char *node)
{
    struct reading *home = reading_find(r, job);
    json_t *tellers;
    int ret;

    if (!home || home->attempt != attempt)
        return -ENOENT;
    if (*path != '/')
        return -EINVAL;
    if (is_known(home, path, node))
        return 0;
    tellers = node ? json_pack("[s]", node) : json_array();
    ret = add_file(home, path, tellers);
    json_decref(tellers);
    return ret;
}

/* NULL: there are too many. */
static struct reading *get_part(struct reading *home, const char *node)
{
    struct readers *r = home->owner->readers;
    size_t at = reading_place(r, home->key), end = at + 1;
    struct reader_record record;
    struct reading_owner *o;
    struct reading *part;

    for (; end < r->jobs.n && streq(r->jobs.v[end]->key, home->key); end++)
        if (streq(r->jobs.v[end]->owner->node, node))
            return r->jobs.v[end];
    if (end - at > PLACES_MAX)
        has_no_room(home);
    o = end - at > PLACES_MAX ? NULL
                              : reading_owner_get(r, home->owner->uid, home->owner->gid, node);
    if (!o)
        return NULL;
    part = xnew(struct reading);
    *part = (struct reading){.owner = o,
                             .attempt = home->attempt,
                             .request = json_deep_copy(home->request),
                             .marks = json_object(),
                             .before = json_copy(home->before),
                             .files = told_files_new(),
                             .part = true,
                             .draining = home->draining,
                             .ended = home->ended};
    STR_COPY(part->key, home->key);
    STR_PRINTF(part->record, "%s@%s", home->key, node);
    json_object_set_new(part->request, "patterns", json_array());
    json_object_set_new(part->request, "more", json_array());
    o->n_jobs++;
    *VEC_INSERT(&r->jobs, reading_place(r, home->key) + 1) = part;
    record = reading_record(part);
    reader_state_recall(r->state, &record);
    reading_ask_follow(part);
    if (part->draining)
        reading_ask(part, "drain");
    reading_tell_read(part);
    return part;
}

/* The file goes to a node that has told of it; the others are kept for when it is not there. */
void reading_place_file(struct reading *home, const char *path, json_t *tellers,
                        const char *other_than)
{
    _cleanup_(freep) char *node = NULL;
    json_t *rest = json_array(), *name;
    struct reading *part;
    size_t i;

    json_array_foreach (tellers, i, name) {
        const char *text = json_string_value(name);

        if (streq(text, other_than) || streq(text, home->owner->node))
            continue;
        if (!node)
            node = xstrdup(text);
        else
            json_array_append(rest, name);
    }
    part = node ? get_part(home, node) : NULL;
    if (part && add_file(part, path, rest) == 0 && part->draining) {
        reading_ask_files(part);
        reading_ask(part, "drain");
    }
    json_decref(rest);
}

/* It is there. Where it is that host's alone, the others who told of it have others. */
void reading_settle_file(struct reading *j, const char *path, bool local)
{
    bool of_node = local && *j->owner->node;
    json_t *tellers = told_files_settle(j->files, path, of_node), *name;
    struct reading *home = reading_find(j->owner->readers, j->key);
    size_t i;

    json_array_foreach (tellers, i, name) {
        json_t *one = json_pack("[O]", name);

        if (of_node)
            reading_place_file(home, path, one, j->owner->node);
        json_decref(one);
    }
    json_decref(tellers);
}

/* All that was read of it in other places than home. */
void reading_end_parts(struct reading *home)
{
    struct readers *r = home->owner->readers;
    size_t at = reading_place(r, home->key) + 1;

    while (at < r->jobs.n && streq(r->jobs.v[at]->key, home->key)) {
        json_object_update_missing(home->before, r->jobs.v[at]->marks);
        reading_end(r->jobs.v[at]);
    }
    home->n_numbers = 0;
}
