/* SPDX-License-Identifier: Apache-2.0 */

/* Each owner of jobs has one reader in each place where something is to be read, started when there
 * is and dropped when there is not; reader_process.c keeps it alive. What readers are asked for,
 * and of which jobs, is here; reading.h says what else is where. */

#include "source/readers.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/timer.h"
#include "source/reader_request.h"
#include "source/reading.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define PING_EVERY    (10 * USEC_PER_SEC)
#define PING_PATIENCE (30 * USEC_PER_SEC)
#define JOBS_MAX      20000

static bool is_key(const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)key[i]) && !strchr("-_.+", key[i]))
            return false;
    return n > 0 && n < JOB_NAME_LEN;
}

static void begin_attempt(struct reading *j, uint32_t attempt, const struct log_paths *p)
{
    if (j->attempt > 0) {
        json_decref(j->before);
        j->before = j->marks;
        j->marks = json_object();
        reading_end_parts(j);
    }
    j->attempt = attempt;
    j->draining = j->ended = j->nowhere = j->told_unread = false;
    reading_forget_seen(j);
    reading_drop_files(j);
    json_decref(j->request);
    j->request = reader_request_new(j->key, j->owner->uid, attempt, p);
}

static const char *home_of(const struct readers *r, const char *job, uint32_t attempt)
{
    return r->handlers.home ? r->handlers.home(r->ctx, job, attempt) : NULL;
}

/* Its nodes may be others now. What this host did not have, it will not have now. */
static void find_home(struct reading *j)
{
    const struct readers *r = j->owner->readers;
    const char *node = home_of(r, j->key, j->attempt);

    if (!node && *j->owner->node && r->handlers.elsewhere)
        node = r->handlers.elsewhere(r->ctx, j->key, j->attempt, NULL);
    reading_move(j, node);
}

static struct reading *add_job(struct readers *r, struct reading_owner *o, const char *key)
{
    struct reading *j = xnew(struct reading);

    j->owner = o;
    STR_COPY(j->key, key);
    STR_COPY(j->record, key);
    j->marks = json_object();
    j->before = json_object();
    j->files = told_files_new();
    o->n_jobs++;
    *VEC_INSERT(&r->jobs, reading_place(r, key)) = j;
    return j;
}

int readers_follow(struct readers *r, uid_t uid, gid_t gid, const char *job, uint32_t attempt,
                   const struct log_paths *paths)
{
    struct reading *j = is_key(job) ? reading_find(r, job) : NULL;
    struct reader_record record;
    bool is_new = !j, begins;
    struct reading_owner *o;

    if (!is_key(job) || attempt == 0)
        return -EINVAL;
    if (j && j->owner->uid != uid)
        return -EPERM;
    if (j && attempt < j->attempt)
        return -EINVAL;
    if (!j && r->jobs.n == JOBS_MAX)
        return -E2BIG;
    o = j ? j->owner : reading_owner_get(r, uid, gid, home_of(r, job, attempt));
    if (!o)
        return -ENOMEM;
    if (!j)
        j = add_job(r, o, job);
    begins = attempt > j->attempt;
    if (begins)
        begin_attempt(j, attempt, paths);
    record = reading_record(j);
    if (is_new)
        reader_state_recall(r->state, &record);
    if (!reader_request_add(j->request, paths))
        reading_gap(j, "it has more logs than are followed, or one whose name is no text");
    if (begins && !is_new)
        find_home(j);
    reading_ask_follow(j);
    if (begins)
        reading_tell_read(j);
    reader_state_changed(r->state);
    return 0;
}

void readers_drain(struct readers *r, const char *job, uint32_t attempt)
{
    struct reading *home = reading_find(r, job);

    if (!home || home->attempt != attempt)
        return;
    for (size_t i = reading_place(r, job); i < r->jobs.n && streq(r->jobs.v[i]->key, job); i++) {
        struct reading *j = r->jobs.v[i];

        reading_ask_files(j);
        j->draining = j->ended = true;
        reading_ask(j, "drain");
    }
    reading_tell_read(home);
}

void readers_forget(struct readers *r, const char *job)
{
    struct reading *j;

    while ((j = reading_find(r, job))) {
        struct reader_record record = reading_record(j);

        if (!j->part)
            reader_state_leave(r->state, &record);
        reading_end(j);
    }
}

void readers_save(struct readers *r)
{
    reader_state_save(r->state);
}

static void list_jobs(void *ctx, json_t *jobs)
{
    const struct readers *r = ctx;

    VEC_FOREACH (&r->jobs, j) {
        struct reader_record record = reading_record(*j);

        reader_state_put(jobs, &record);
    }
}

static int on_bury(sd_event_source *source, void *userdata)
{
    struct readers *r = userdata;

    VEC_FOREACH (&r->gone, j)
        reading_free(*j);
    VEC_DONE(&r->gone);
    for (size_t i = r->owners.n; i > 0; i--)
        reading_owner_drop(r->owners.v[i - 1]);
    return 0;
}

void readers_node_up(struct readers *r, const char *node)
{
    VEC_FOREACH (&r->owners, o)
        if (streq((*o)->node, node))
            reader_process_hurry((*o)->process);
    for (size_t i = 0; i < r->jobs.n; i++)
        if (r->jobs.v[i]->nowhere && !r->jobs.v[i]->part && !*r->jobs.v[i]->owner->node)
            reading_elsewhere(r->jobs.v[i], NULL);
}

int readers_look(const struct readers *r, const char *job, struct readers_view *ret)
{
    const struct reading *j = reading_find(r, job);
    const struct reading_owner *o = j ? j->owner : NULL;

    if (!j)
        return -ENOENT;
    *ret = (struct readers_view){.running = reader_process_is_running(o->process),
                                 .missing = j->nowhere};
    STR_COPY(ret->node, o->node);
    STR_COPY(ret->trouble, o->trouble);
    return 0;
}

static void count_unread(const struct readers *r, struct readers_counts *ret)
{
    ret->unread = 0;
    ret->unread_job[0] = '\0';
    VEC_FOREACH (&r->jobs, j) {
        if ((*j)->ended || (*j)->part ||
            (reader_process_is_running((*j)->owner->process) && !(*j)->nowhere))
            continue;
        if (ret->unread++ == 0)
            STR_COPY(ret->unread_job, (*j)->key);
    }
}

void readers_counts(const struct readers *r, struct readers_counts *ret)
{
    *ret = r->counts;
    ret->running = ret->hung = ret->on_nodes = 0;
    VEC_FOREACH (&r->owners, o) {
        ret->running += reader_process_is_running((*o)->process);
        ret->on_nodes += *(*o)->node && reader_process_is_running((*o)->process);
        ret->hung += reader_process_is_hung((*o)->process);
    }
    count_unread(r, ret);
}

static int on_files_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    const struct readers *r = userdata;

    VEC_FOREACH (&r->jobs, j)
        reading_ask_files(*j);
    return 0;
}

struct readers *readers_new(sd_event *event, const struct readers_config *c,
                            const struct readers_handlers *handlers, void *ctx)
{
    struct readers *r = xnew(struct readers);

    r->event = sd_event_ref(event);
    r->config = *c;
    r->handlers = *handlers;
    r->ctx = ctx;
    if (r->config.ping_every <= 0)
        r->config.ping_every = PING_EVERY;
    if (r->config.ping_patience <= 0)
        r->config.ping_patience = PING_PATIENCE;
    r->state = reader_state_new(event, c->state_dir, list_jobs, r);
    if (!r->state || timer_new(event, on_files_timer, r, &r->files_timer) < 0 ||
        sd_event_add_defer(event, &r->bury, on_bury, r) < 0 ||
        sd_event_source_set_enabled(r->bury, SD_EVENT_OFF) < 0)
        return readers_free(r);
    return r;
}

struct readers *readers_free(struct readers *r)
{
    if (!r)
        return NULL;
    reader_state_free(r->state);
    VEC_FOREACH (&r->owners, o)
        reading_owner_free(*o);
    VEC_DONE(&r->owners);
    VEC_FOREACH (&r->jobs, j)
        reading_free(*j);
    VEC_DONE(&r->jobs);
    VEC_FOREACH (&r->gone, j)
        reading_free(*j);
    VEC_DONE(&r->gone);
    sd_event_source_disable_unref(r->bury);
    sd_event_source_disable_unref(r->files_timer);
    sd_event_unref(r->event);
    free(r);
    return NULL;
}
