/* SPDX-License-Identifier: Apache-2.0 */

/* Where a job is read is a matter of who reads it, not of what is known of it: when this host lacks
 * the file system of its logs, or a node's reader cannot be had any more, the job goes to another
 * reader with all its marks, as if the last one had died. */

#include "source/reading.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

#define ON_NODES_MAX 4096               /* readers, of all owners */
#define MOVE_PAUSE   (5 * USEC_PER_SEC) /* of a job, from one place to another */

/* Where it is, or would be. */
size_t reading_place(const struct readers *r, const char *key)
{
    return VEC_BISECT(&r->jobs, j, strcmp((*j)->key, key) < 0);
}

struct reading *reading_find(const struct readers *r, const char *key)
{
    size_t at = reading_place(r, key);

    return at < r->jobs.n && streq(r->jobs.v[at]->key, key) ? r->jobs.v[at] : NULL;
}

/* What is read there of it. */
struct reading *reading_find_at(const struct reading_owner *o, const char *key)
{
    const struct readers *r = o->readers;

    for (size_t i = reading_place(r, key); i < r->jobs.n && streq(r->jobs.v[i]->key, key); i++)
        if (r->jobs.v[i]->owner == o)
            return r->jobs.v[i];
    return NULL;
}

void reading_forget_seen(struct reading *j)
{
    VEC_FOREACH (&j->seen, s) {
        free(s->untold);
        reading_forget_unread(j, s);
    }
    j->seen.n = 0;
    j->n_named = j->n_troubles = 0;
}

void reading_free(struct reading *j)
{
    json_decref(j->request);
    told_files_free(j->files);
    json_decref(j->marks);
    json_decref(j->before);
    reading_forget_seen(j);
    VEC_DONE(&j->seen);
    free(j);
}

struct reader_record reading_record(const struct reading *j)
{
    return (struct reader_record){.job = j->record,
                                  .uid = j->owner->uid,
                                  .attempt = j->attempt,
                                  .marks = j->marks,
                                  .before = j->before};
}

void reading_gap(const struct reading *j, const char *text)
{
    struct readers *r = j->owner->readers;

    r->counts.gaps++;
    r->handlers.gap(r->ctx, j->key, j->attempt, text);
}

void reading_ask_follow(struct reading *j)
{
    json_t *q = json_copy(j->request);
    const json_t *beside = NULL; /* where nothing has been read of the job yet */

    told_files_ask(j->files, q);
    if (json_object_size(j->marks) == 0 && json_object_size(j->before) == 0)
        beside = reader_state_left(j->owner->readers->state, j->owner->uid);
    if (beside)
        json_object_set_new(q, "beside", reader_marks_list(beside));
    json_object_set_new(q, "marks", reader_marks_list(j->marks));
    json_object_set_new(q, "before", reader_marks_list(j->before));
    reader_process_ask(j->owner->process, q);
}

static json_t *question(const struct reading *j, const char *op)
{
    return json_pack("{s:s,s:s,s:I}", "op", op, "job", j->key, "attempt", (json_int_t)j->attempt);
}

void reading_ask(const struct reading *j, const char *op)
{
    reader_process_ask(j->owner->process, question(j, op));
}

void reading_ask_files(struct reading *j)
{
    json_t *q;

    if (!told_files_are_new(j->files))
        return;
    q = question(j, "files");
    told_files_ask(j->files, q);
    reader_process_ask(j->owner->process, q);
}

/* Its main log is read, and each other one of which a reader can be had. */
static bool is_heard(const struct reading *home)
{
    const struct readers *r = home->owner->readers;
    bool heard = reader_process_is_running(home->owner->process) && !home->refused;

    for (size_t i = reading_place(r, home->key) + 1;
         i < r->jobs.n && streq(r->jobs.v[i]->key, home->key); i++) {
        const struct reader_process *p = r->jobs.v[i]->owner->process;

        heard &= reader_process_is_running(p) || reader_process_is_hopeless(p);
    }
    return heard;
}

/* Who waits for the end of an attempt need not wait for a reader that cannot be had; who takes its
 * silence for a sign must know that nobody hears it. */
void reading_tell_read(struct reading *j)
{
    struct readers *r = j->owner->readers;
    const struct reader_process *p = j->owner->process;
    bool is_read;

    if (j->part && j->draining)
        return;
    if (j->draining)
        is_read = reader_process_is_running(p) || reader_process_is_hopeless(p);
    else
        is_read = is_heard(reading_find(r, j->key));
    if (j->draining && !is_read && j->told_unread)
        return;
    j->told_unread |= j->draining && !is_read;
    r->handlers.read(r->ctx, j->key, j->attempt, is_read);
}

void reading_tell_all(void *ctx)
{
    struct reading_owner *o = ctx;

    const struct readers *r = o->readers;

    for (size_t i = r->jobs.n; i > 0; i--) /* from behind: who is told may forget jobs */
        if (i <= r->jobs.n && r->jobs.v[i - 1]->owner == o)
            reading_tell_read(r->jobs.v[i - 1]);
}

static void ask_again(struct reading *j)
{
    if (!j->refused)
        return;
    j->refused = false;
    reading_ask_follow(j);
    if (j->draining)
        reading_ask(j, "drain");
    reading_tell_read(j);
}

/* There is room again for jobs that its reader had none for. */
static void ask_refused(const struct reading_owner *o)
{
    const struct readers *r = o->readers;

    for (size_t i = r->jobs.n; i > 0; i--)
        if (i <= r->jobs.n && r->jobs.v[i - 1]->owner == o)
            ask_again(r->jobs.v[i - 1]);
}

/* What the reader before this one told will come again, from the marks on; and which files cannot
 * be read here, if it is so. */
static void expect_repeats(struct reading *j)
{
    VEC_FOREACH (&j->seen, s) {
        reader_seen_expect(s);
        reading_forget_unread(j, s);
    }
}

void reading_ask_all(void *ctx)
{
    struct reading_owner *o = ctx;

    VEC_FOREACH (&o->readers->jobs, j) {
        if ((*j)->owner != o)
            continue;
        (*j)->refused = false;
        expect_repeats(*j);
        reading_ask_follow(*j);
        if ((*j)->draining)
            reading_ask(*j, "drain");
    }
}

void reading_owner_free(struct reading_owner *o)
{
    reader_process_free(o->process);
    free(o);
}

/* node: NULL or "" = on this host. NULL when the loop refuses, or too many run on nodes. */
struct reading_owner *reading_owner_get(struct readers *r, uid_t uid, gid_t gid, const char *node)
{
    struct reader_process_config config = {.children = r->config.children,
                                           .node_readers = r->config.node_readers,
                                           .node = node,
                                           .uid = uid,
                                           .gid = gid,
                                           .ping_every = r->config.ping_every,
                                           .ping_patience = r->config.ping_patience};
    size_t on_nodes = 0;
    struct reading_owner *o;

    VEC_FOREACH (&r->owners, known) {
        if ((*known)->uid == uid && streq((*known)->node, node ? node : ""))
            return *known;
        on_nodes += *(*known)->node != '\0';
    }
    if (node && *node && on_nodes >= ON_NODES_MAX)
        return NULL;
    o = xnew(struct reading_owner);
    *o = (struct reading_owner){.readers = r, .uid = uid, .gid = gid};
    STR_COPY(o->node, node ? node : "");
    o->process = reader_process_new(r->event, &config, &reading_handlers, o);
    if (!o->process) {
        free(o);
        return NULL;
    }
    *VEC_PUSH(&r->owners) = o;
    return o;
}

void reading_owner_drop(struct reading_owner *o)
{
    struct readers *r = o->readers;

    if (o->n_jobs > 0) /* again */
        return;
    for (size_t i = 0; i < r->owners.n; i++)
        if (r->owners.v[i] == o) {
            VEC_REMOVE(&r->owners, i);
            break;
        }
    reading_owner_free(o);
}

void reading_drop_files(struct reading *j)
{
    j->owner->n_files -= told_files_count(j->files);
    told_files_clear(j->files);
    j->full = false;
}

void reading_end(struct reading *j)
{
    struct readers *r = j->owner->readers;

    for (size_t i = reading_place(r, j->key); i < r->jobs.n; i++)
        if (r->jobs.v[i] == j) {
            VEC_REMOVE(&r->jobs, i);
            break;
        }
    reading_ask(j, "unfollow");
    reading_drop_files(j);
    j->owner->n_jobs--;
    ask_refused(j->owner);
    *VEC_PUSH(&r->gone) = j;
    sd_event_source_set_enabled(r->bury, SD_EVENT_ONESHOT);
    reader_state_changed(r->state);
}

/* What was read there already of the job that goes there. */
static void take_over_part(struct reading *home, struct reading_owner *there)
{
    struct reading *part = reading_find_at(there, home->key);

    if (!part)
        return;
    json_object_update_missing(home->marks, part->marks);
    home->owner->n_files -= told_files_count(home->files);
    told_files_take_over(home->files, part->files);
    home->owner->n_files += told_files_count(home->files);
    reading_end(part);
}

/* Where it was, it is read no more. */
void reading_move(struct reading *j, const char *node)
{
    struct reading_owner *from = j->owner,
                         *to = reading_owner_get(from->readers, from->uid, from->gid, node);

    if (!to || to == from)
        return;
    take_over_part(j, to);
    reading_ask(j, "unfollow");
    from->n_jobs--;
    from->n_files -= told_files_count(j->files);
    to->n_jobs++;
    to->n_files += told_files_count(j->files);
    j->owner = to;
    j->nowhere = j->refused = false;
    j->moved_at = mono_us();
    expect_repeats(j);
    reading_ask_follow(j);
    if (j->draining)
        reading_ask(j, "drain");
    reading_tell_read(j);
    sd_event_source_set_enabled(from->readers->bury, SD_EVENT_ONESHOT);
}

void reading_elsewhere(struct reading *j, const char *other_than)
{
    const struct readers *r = j->owner->readers;
    const char *node;

    if (!r->handlers.elsewhere || (j->moved_at > 0 && mono_us() < j->moved_at + MOVE_PAUSE))
        return;
    node = r->handlers.elsewhere(r->ctx, j->key, j->attempt, other_than);
    if (node)
        reading_move(j, node);
}
