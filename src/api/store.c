/* SPDX-License-Identifier: Apache-2.0 */
#include "api/store.h"

#include "base/hash.h"
#include "base/str.h"
#include "api/metrics.h"

#include <assert.h>
#include <string.h>

#define SAME_ID_MAX 64 /* jobs of one number in the journal that are looked at */

struct store *store_new(const struct api_backend *b, void *ctx)
{
    struct store *store = xnew(struct store);

    assert(b->model && b->now && b->submit && b->status && b->journal);
    store->backend = *b;
    store->ctx = ctx;
    store->journal_path = xstrdup(b->journal);
    store->metrics = metrics_new();
    store->owners = xcalloc(OWNERS_MAX, sizeof(*store->owners));
    return store;
}

struct store *store_free(struct store *store)
{
    if (!store)
        return NULL;
    metrics_free(store->metrics);
    journal_free(store->journal);
    free(store->journal_path);
    free(store->owners);
    free(store);
    return NULL;
}

const struct model *store_model(const struct store *store)
{
    return store->backend.model(store->ctx);
}

const char *store_notes(const struct store *store, const char *key)
{
    return store->backend.notes ? store->backend.notes(store->ctx, key) : "";
}

void store_logs(const struct store *store, const char *key, char *ret, size_t size)
{
    *ret = '\0';
    if (store->backend.logs)
        store->backend.logs(store->ctx, key, ret, size);
}

uint32_t store_unread_logs(const struct store *store, const char *key,
                           void (*fn)(void *ctx, const char *path, const char *why), void *ctx)
{
    return store->backend.unread_logs ? store->backend.unread_logs(store->ctx, key, fn, ctx) : 0;
}

usec_t store_now(const struct store *store)
{
    return store->backend.now(store->ctx);
}

int store_journal(struct store *store, struct journal **ret, struct err *e)
{
    int r = 0;

    if (!store->journal)
        r = journal_open(store->journal_path, JOURNAL_ASK, &store->journal, e);
    if (r >= 0)
        *ret = store->journal;
    return r;
}

int store_select(struct store *store, const struct journal_choice *c, struct journal_cursor **ret,
                 struct err *e)
{
    struct journal *j;
    int r = store_journal(store, &j, e);

    return r < 0 ? r : journal_select(j, c, ret, e);
}

void found_job_done(struct found_job *f)
{
    free(f->seen);
    f->seen = NULL;
}

/* "6_[2-3%2]" is whatever waits of the array: it becomes less from moment to moment. */
static bool is_labelled(const char *label, const char *name)
{
    const char *rest = strstr(name, "_[");

    return rest ? strncmp(label, name, (size_t)(rest - name) + 2) == 0 : streq(label, name);
}

static bool is_named(const struct job *j, const char *name)
{
    char id[16];

    if (streq(j->name, name))
        return true;
    if (!j->scheduled)
        return false;
    STR_PRINTF(id, "%u", (unsigned)j->sched.id);
    return streq(id, name) || is_labelled(j->sched.label, name);
}

static bool find_in_model(const struct store *store, const struct asker *who, const char *name,
                          struct found_job *ret)
{
    const struct model *m = store_model(store);
    const struct job *best = NULL;

    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct job *j = m->jobs.v[i];

        if (is_named(j, name) && access_sees(who, j->sched.uid) &&
            (!best || j->seen_at > best->seen_at))
            best = j;
    }
    if (!best)
        return false;
    STR_COPY(ret->key, best->name);
    ret->owner = best->sched.uid;
    ret->job = best;
    ret->seen_at = best->seen_at;
    return true;
}

static void keep_found(const struct event *e, struct found_job *ret)
{
    STR_COPY(ret->key, e->job);
    ret->owner = e->seen.uid;
    ret->seen = xmemdup(&e->seen, sizeof(e->seen));
    ret->seen_at = e->time_us;
}

/* 1 and the newest that he may see; 0: there is none. */
static int find_seen(struct store *store, const struct asker *who, const struct journal_choice *c,
                     struct found_job *ret, struct err *e)
{
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r = store_select(store, c, &cursor, e);

    for (int n = 0; r >= 0 && n < SAME_ID_MAX && (r = journal_next(cursor, event, e)) > 0; n++)
        if (access_sees(who, event->seen.uid)) {
            keep_found(event, ret);
            return 1;
        }
    return r < 0 ? r : 0;
}

/* As people called it last, if that can be read. */
static void rename_found(struct store *store, struct found_job *f)
{
    struct journal_choice c = {
        .job = f->key, .kinds = UINT64_C(1) << EVENT_LOOK, .newest_first = true};
    _cleanup_(journal_cursor_freep) struct journal_cursor *cursor = NULL;
    _cleanup_(freep) struct event *event = xnew(struct event);

    if (store_select(store, &c, &cursor, NULL) >= 0 && journal_next(cursor, event, NULL) > 0 &&
        event->look.label[0])
        STR_COPY(f->seen->label, event->look.label);
}

int store_find_job(struct store *store, const struct asker *who, const char *name,
                   struct found_job *ret, struct err *e)
{
    struct journal_choice c = {
        .job = name, .kinds = UINT64_C(1) << EVENT_JOB_SEEN, .newest_first = true};
    int r;

    if (find_in_model(store, who, name, ret))
        return 0;
    r = find_seen(store, who, &c, ret, e);
    c.job = NULL;
    c.id = name;
    if (r == 0 && strspn(name, "0123456789") == strlen(name))
        r = find_seen(store, who, &c, ret, e);
    if (r > 0)
        rename_found(store, ret);
    return r == 0 ? err_set(e, -ENOENT, "no job '%s'", name) : r < 0 ? r : 0;
}

static uid_t owner_in_journal(struct store *store, const char *key)
{
    static const struct asker everybody = {.known = true, .is_operator = true};
    _cleanup_found_job_ struct found_job f = {0};
    struct journal_choice c = {
        .job = key, .kinds = UINT64_C(1) << EVENT_JOB_SEEN, .newest_first = true};
    struct known_owner *k = &store->owners[hash_bytes(HASH_INIT, key, strlen(key)) % OWNERS_MAX];

    if (streq(k->job, key))
        return k->owner;
    store->owners_asked++;
    if (find_seen(store, &everybody, &c, &f, NULL) <= 0)
        return 0;
    STR_COPY(k->job, key);
    return k->owner = f.owner;
}

uid_t store_owner(struct store *store, const char *key)
{
    const struct job *j = key[0] ? model_job(store_model(store), key) : NULL;

    return j ? j->sched.uid : key[0] ? owner_in_journal(store, key) : 0;
}

bool store_shows(struct store *store, const struct asker *who, const char *key)
{
    return who->is_operator || access_sees(who, store_owner(store, key));
}
