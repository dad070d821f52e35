/* SPDX-License-Identifier: Apache-2.0 */

/* Each owner of jobs has one reader in each place where something is to be read, started when there
 * is and dropped when there is not; reader_process.c keeps it alive.
 *
 * Where a job is read is a matter of who reads it, not of what is known of it: when this host lacks
 * the file system of its logs, or a node's reader cannot be had any more, the job goes to another
 * reader with all its marks, as if the last one had died.
 *
 * What a reader has told stands in two notes. Its marks are what it vouches for: everything before
 * them was told. Of each file it is also kept how far signals came (`seen`): the next reader begins
 * at the marks, and what it repeats is dropped until it is past that.
 *
 * A reader is its user's process. So of what it says, everything is checked: here that the job is
 * its user's and the attempt the present one, all else by reader_word.c. */

#include "source/readers.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"
#include "source/reader_process.h"
#include "source/reader_request.h"
#include "source/reader_seen.h"
#include "source/reader_state.h"
#include "source/reader_word.h"
#include "source/told_files.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#define PING_EVERY     (10 * USEC_PER_SEC)
#define PING_PATIENCE  (30 * USEC_PER_SEC)
#define JOBS_MAX       20000
#define SIGNALS_MAX    500  /* of one job in a second */
#define COMPLAINTS_MAX 20   /* of one reader in a second: they end in a log */
#define PLACES_MAX     64   /* beside home, where one job is read */
#define ON_NODES_MAX   4096 /* readers, of all owners */
#define NAMED_MAX      1024 /* files of an attempt at one place whose paths are told */
#define NAMED_WELL     64   /* ... as long as they tell of nothing but progress */
#define MOVE_PAUSE     (5 * USEC_PER_SEC)    /* of a job, from one place to another */
#define FAILURES_MAX   2                     /* of a node's reader, and its jobs go elsewhere */
#define FILES_PAUSE    (500 * USEC_PER_MSEC) /* many nodes tell of their files in one moment */

struct job {
    struct owner *owner;
    char key[JOB_NAME_LEN];
    uint32_t attempt;
    json_t *request;        /* follow, without marks */
    json_t *marks, *before; /* by path */
    struct told_files *files;
    bool part;                                 /* of what a node has and home has not */
    uint32_t n_numbers;                        /* of home: that were given to files of parts */
    char record[JOB_NAME_LEN + NODE_NAME_LEN]; /* name of its marks */
    bool full;                                 /* said so */
    bool refused;                              /* its reader has no room for it yet */
    bool draining;
    bool ended;   /* and was to be drained */
    bool nowhere; /* its reader misses the folder of a log */
    usec_t moved_at;
    bool told_unread;             /* of the end of this attempt */
    VEC(struct reader_seen) seen; /* by file */
    uint32_t n_named;             /* of them, whose path was told */
    struct reader_rate signals;
};

struct owner {
    struct readers *readers;
    uid_t uid;
    gid_t gid;
    char node[NODE_NAME_LEN]; /* "" = this host */
    unsigned failures;        /* since a reader ran */
    char trouble[200];
    struct reader_process *process;
    struct reader_rate complaints;
    size_t n_jobs, n_files; /* files that were told one by one */
};

struct readers {
    sd_event *event;
    struct readers_config config;
    struct readers_handlers handlers;
    void *ctx;
    struct readers_counts counts;
    VEC(struct owner *) owners;
    VEC(struct job *) jobs; /* by key; where one is read in several places, home is the first */
    VEC(struct job *) gone; /* forgotten, maybe by a handler that is told of them */
    sd_event_source *bury, *files_timer;
    struct reader_state *state;
    struct event decoded;
};

/* ---- jobs ---- */

/* Where it is, or would be. */
static size_t place_of(const struct readers *r, const char *key)
{
    return VEC_BISECT(&r->jobs, j, strcmp((*j)->key, key) < 0);
}

static struct job *find_job(const struct readers *r, const char *key)
{
    size_t at = place_of(r, key);

    return at < r->jobs.n && streq(r->jobs.v[at]->key, key) ? r->jobs.v[at] : NULL;
}

/* What is read there of it. */
static struct job *find_at(const struct owner *o, const char *key)
{
    const struct readers *r = o->readers;

    for (size_t i = place_of(r, key); i < r->jobs.n && streq(r->jobs.v[i]->key, key); i++)
        if (r->jobs.v[i]->owner == o)
            return r->jobs.v[i];
    return NULL;
}

static void forget_seen(struct job *j)
{
    VEC_FOREACH (&j->seen, s)
        free(s->untold);
    j->seen.n = 0;
    j->n_named = 0;
}

static void job_free(struct job *j)
{
    json_decref(j->request);
    told_files_free(j->files);
    json_decref(j->marks);
    json_decref(j->before);
    forget_seen(j);
    VEC_DONE(&j->seen);
    free(j);
}

static struct reader_record record_of(const struct job *j)
{
    return (struct reader_record){.job = j->record,
                                  .uid = j->owner->uid,
                                  .attempt = j->attempt,
                                  .marks = j->marks,
                                  .before = j->before};
}

static void tell_gap(const struct job *j, const char *text)
{
    struct readers *r = j->owner->readers;

    r->counts.gaps++;
    r->handlers.gap(r->ctx, j->key, j->attempt, text);
}

/* ---- asking ---- */

static void ask_follow(struct job *j)
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

static json_t *question(const struct job *j, const char *op)
{
    return json_pack("{s:s,s:s,s:I}", "op", op, "job", j->key, "attempt", (json_int_t)j->attempt);
}

static void ask_about(const struct job *j, const char *op)
{
    reader_process_ask(j->owner->process, question(j, op));
}

static void ask_more_files(struct job *j)
{
    json_t *q;

    if (!told_files_are_new(j->files))
        return;
    q = question(j, "files");
    told_files_ask(j->files, q);
    reader_process_ask(j->owner->process, q);
}

static int on_files_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
    const struct readers *r = userdata;

    VEC_FOREACH (&r->jobs, j)
        ask_more_files(*j);
    return 0;
}

/* Its main log is read, and each other one of which a reader can be had. */
static bool is_heard(const struct job *home)
{
    const struct readers *r = home->owner->readers;
    bool heard = reader_process_is_running(home->owner->process) && !home->refused;

    for (size_t i = place_of(r, home->key) + 1;
         i < r->jobs.n && streq(r->jobs.v[i]->key, home->key); i++) {
        const struct reader_process *p = r->jobs.v[i]->owner->process;

        heard &= reader_process_is_running(p) || reader_process_is_hopeless(p);
    }
    return heard;
}

/* Who waits for the end of an attempt need not wait for a reader that cannot be had; who takes its
 * silence for a sign must know that nobody hears it. */
static void tell_read(struct job *j)
{
    struct readers *r = j->owner->readers;
    const struct reader_process *p = j->owner->process;
    bool is_read;

    if (j->part && j->draining)
        return;
    if (j->draining)
        is_read = reader_process_is_running(p) || reader_process_is_hopeless(p);
    else
        is_read = is_heard(find_job(r, j->key));
    if (j->draining && !is_read && j->told_unread)
        return;
    j->told_unread |= j->draining && !is_read;
    r->handlers.read(r->ctx, j->key, j->attempt, is_read);
}

static void tell_all_read(void *ctx)
{
    struct owner *o = ctx;

    const struct readers *r = o->readers;

    for (size_t i = r->jobs.n; i > 0; i--) /* from behind: who is told may forget jobs */
        if (i <= r->jobs.n && r->jobs.v[i - 1]->owner == o)
            tell_read(r->jobs.v[i - 1]);
}

static void ask_again(struct job *j)
{
    if (!j->refused)
        return;
    j->refused = false;
    ask_follow(j);
    if (j->draining)
        ask_about(j, "drain");
    tell_read(j);
}

/* There is room again for jobs that its reader had none for. */
static void ask_refused(const struct owner *o)
{
    const struct readers *r = o->readers;

    for (size_t i = r->jobs.n; i > 0; i--)
        if (i <= r->jobs.n && r->jobs.v[i - 1]->owner == o)
            ask_again(r->jobs.v[i - 1]);
}

/* What the reader before this one told will come again, from the marks on. */
static void expect_repeats(struct job *j)
{
    VEC_FOREACH (&j->seen, s)
        reader_seen_expect(s);
}

static void ask_all(void *ctx)
{
    struct owner *o = ctx;

    VEC_FOREACH (&o->readers->jobs, j) {
        if ((*j)->owner != o)
            continue;
        (*j)->refused = false;
        expect_repeats(*j);
        ask_follow(*j);
        if ((*j)->draining)
            ask_about(*j, "drain");
    }
}

/* ---- listening ---- */

static void try_elsewhere(struct job *j, const char *other_than);
static void place_file(struct job *home, const char *path, json_t *tellers, const char *other_than);
static void settle(struct job *j, const char *path, bool local);

static struct reader_seen *seen_of(struct job *j, uint32_t file)
{
    while (j->seen.n <= file)
        VEC_PUSH(&j->seen);
    return &j->seen.v[file];
}

/* Other readers of the attempt count from 0 too: the files of parts come behind those of home. */
static uint32_t number_of(struct job *j, uint32_t file)
{
    struct reader_seen *s = seen_of(j, file);
    struct job *home = find_job(j->owner->readers, j->key);

    if (!j->part)
        return file;
    if (s->number == 0)
        s->number =
            READER_FILES_MAX +
            (home->n_numbers < READER_FILES_MAX - 1 ? home->n_numbers++ : READER_FILES_MAX - 1);
    return s->number;
}

static bool may_complain(struct owner *o)
{
    return reader_rate_count(&o->complaints, mono_us()) <= COMPLAINTS_MAX;
}

static bool is_too_much(struct job *j)
{
    unsigned n = reader_rate_count(&j->signals, mono_us());

    if (n == SIGNALS_MAX + 1)
        tell_gap(j, "its reader tells more than is listened to");
    return n > SIGNALS_MAX;
}

/* A verdict may rest on its lines: of thousands of files few are ever quoted. */
static bool is_worth_a_name(const struct job *j, const struct signal *s)
{
    bool tells = s->kind == SIGNAL_HIT || s->kind == SIGNAL_COLLECTIVE || s->kind == SIGNAL_EXIT;

    return s->kind != SIGNAL_OUTPUT && j->n_named < (tells ? NAMED_MAX : NAMED_WELL);
}

static void tell_name(struct job *j, struct reader_seen *seen, const struct signal *s)
{
    struct readers *r = j->owner->readers;
    char *path = seen->untold;

    if (!path || !r->handlers.named || !is_worth_a_name(j, s))
        return;
    seen->untold = NULL;
    j->n_named++;
    r->handlers.named(r->ctx, j->key, j->attempt, s->file, path);
    free(path);
}

static void take_signal(struct job *j, const json_t *t)
{
    struct readers *r = j->owner->readers;
    struct signal *s = &r->decoded.signal;
    struct reader_seen *seen;

    if (!reader_word_signal(t, &r->decoded)) {
        if (may_complain(j->owner))
            tell_gap(j, "its reader told something that is no signal of a log");
        return;
    }
    seen = seen_of(j, s->file);
    if (reader_seen_is_repeated(seen, s->offset) || is_too_much(j))
        return;
    reader_seen_note(seen, s->offset);
    s->file = number_of(j, s->file);
    tell_name(j, seen, s);
    r->counts.signals++;
    r->handlers.signal(r->ctx, j->key, j->attempt, s);
}

static void take_file(struct job *j, const json_t *t)
{
    struct readers *r = j->owner->readers;
    struct reader_file f;
    struct reader_seen *seen;
    uint64_t hash;

    if (!reader_word_file(t, &f))
        return;
    seen = seen_of(j, f.file);
    hash = hash_bytes(HASH_INIT, f.path, strlen(f.path));
    if (seen->path != hash) {
        reader_seen_forget(seen);
        seen->path = hash;
        free(seen->untold);
        seen->untold = xstrdup(f.path);
    }
    if (*f.trouble && !may_complain(j->owner))
        return;
    j->nowhere &= *f.trouble != '\0';
    r->handlers.file(r->ctx, j->key, j->attempt, number_of(j, f.file), f.path,
                     *f.trouble ? f.trouble : NULL);
    if (!*f.trouble)
        settle(j, f.path, f.local);
}

static void take_anew(struct job *j, const json_t *t)
{
    uint32_t file;

    if (reader_word_number(t, &file))
        reader_seen_forget(seen_of(j, file));
}

static void take_gap(const struct job *j, const json_t *t)
{
    char text[512];

    if (!may_complain(j->owner)) {
        j->owner->readers->counts.gaps++;
        return;
    }
    reader_word_text(t, "text", text, sizeof(text));
    tell_gap(j, text);
}

static bool is_drained(const struct readers *r, const char *key)
{
    for (size_t i = place_of(r, key); i < r->jobs.n && streq(r->jobs.v[i]->key, key); i++)
        if (r->jobs.v[i]->draining)
            return false;
    return true;
}

/* It is not there: whoever else has told of it, has it. */
static void take_left(struct job *j, const json_t *t)
{
    const char *path = json_string_value(json_object_get(t, "path"));
    json_t *tellers = path ? told_files_leave(j->files, path) : NULL;

    if (tellers) {
        j->owner->n_files--;
        place_file(find_job(j->owner->readers, j->key), path, tellers, j->owner->node);
    }
    json_decref(tellers);
}

static void take_nowhere(struct job *j)
{
    j->nowhere = true;
    if (!*j->owner->node)
        try_elsewhere(j, NULL);
}

static void take_about(struct owner *o, struct job *j, const char *kind, const json_t *t)
{
    struct readers *r = o->readers;

    if (streq(kind, "signal")) {
        take_signal(j, t);
    } else if (streq(kind, "marks")) {
        reader_marks_merge(j->marks, json_object_get(t, "marks"));
        reader_state_changed(r->state);
    } else if (streq(kind, "file")) {
        take_file(j, t);
    } else if (streq(kind, "anew")) {
        take_anew(j, t);
    } else if (streq(kind, "gap")) {
        take_gap(j, t);
    } else if (streq(kind, "full")) {
        j->refused = true;
        tell_read(j);
        tell_gap(j, "its logs are not read as long as so many others of its user are");
    } else if (streq(kind, "nowhere")) {
        take_nowhere(j);
    } else if (streq(kind, "left")) {
        take_left(j, t);
    } else if (streq(kind, "drained") && j->draining) {
        j->draining = false;
        if (is_drained(r, j->key))
            r->handlers.drained(r->ctx, j->key, j->attempt);
    }
}

static void tell_state(void *ctx, const char *text)
{
    struct owner *o = ctx;
    bool runs = streq(text, "running");

    if (runs)
        o->failures = 0;
    STR_COPY(o->trouble, runs ? "" : text);
    o->readers->handlers.reader_state(o->readers->ctx, o->uid, o->node, text);
}

static void take_own(struct owner *o, const char *kind, const json_t *t)
{
    char text[256];

    if (json_is_false(json_object_get(t, "ok")) || (kind && streq(kind, "failed"))) {
        reader_word_text(t, "text", text, sizeof(text));
        if (may_complain(o))
            tell_state(o, text);
    }
}

static void take_said(void *ctx, const json_t *t)
{
    struct owner *o = ctx;
    const char *kind = json_string_value(json_object_get(t, "kind"));
    const char *key = json_string_value(json_object_get(t, "job"));
    struct job *j = key ? find_at(o, key) : NULL;

    if (!kind || !key)
        take_own(o, kind, t);
    else if (j && json_integer_value(json_object_get(t, "attempt")) == (json_int_t)j->attempt)
        take_about(o, j, kind, t);
}

/* A node's reader that was merely killed is there again at once. */
static void take_end(void *ctx, const char *why)
{
    struct owner *o = ctx;
    struct readers *r = o->readers;

    r->counts.replaced++;
    tell_state(o, why);
    o->failures += *o->node != '\0';
    for (size_t i = 0; o->failures >= FAILURES_MAX && i < r->jobs.n; i++)
        if (r->jobs.v[i]->owner == o && !r->jobs.v[i]->part)
            try_elsewhere(r->jobs.v[i], o->node);
    tell_all_read(o);
}

/* ---- owners ---- */

static void owner_free(struct owner *o)
{
    reader_process_free(o->process);
    free(o);
}

/* node: NULL or "" = on this host. NULL when the loop refuses, or too many run on nodes. */
static struct owner *get_owner(struct readers *r, uid_t uid, gid_t gid, const char *node)
{
    static const struct reader_process_handlers handlers = {.started = ask_all,
                                                            .runs = tell_all_read,
                                                            .said = take_said,
                                                            .state = tell_state,
                                                            .ended = take_end};
    struct reader_process_config config = {.children = r->config.children,
                                           .node_readers = r->config.node_readers,
                                           .node = node,
                                           .uid = uid,
                                           .gid = gid,
                                           .ping_every = r->config.ping_every,
                                           .ping_patience = r->config.ping_patience};
    size_t on_nodes = 0;
    struct owner *o;

    VEC_FOREACH (&r->owners, known) {
        if ((*known)->uid == uid && streq((*known)->node, node ? node : ""))
            return *known;
        on_nodes += *(*known)->node != '\0';
    }
    if (node && *node && on_nodes >= ON_NODES_MAX)
        return NULL;
    o = xnew(struct owner);
    *o = (struct owner){.readers = r, .uid = uid, .gid = gid};
    STR_COPY(o->node, node ? node : "");
    o->process = reader_process_new(r->event, &config, &handlers, o);
    if (!o->process) {
        free(o);
        return NULL;
    }
    *VEC_PUSH(&r->owners) = o;
    return o;
}

static void drop_files(struct job *j)
{
    j->owner->n_files -= told_files_count(j->files);
    told_files_clear(j->files);
    j->full = false;
}

static void bury(struct job *j)
{
    struct readers *r = j->owner->readers;

    for (size_t i = place_of(r, j->key); i < r->jobs.n; i++)
        if (r->jobs.v[i] == j) {
            VEC_REMOVE(&r->jobs, i);
            break;
        }
    ask_about(j, "unfollow");
    drop_files(j);
    j->owner->n_jobs--;
    ask_refused(j->owner);
    *VEC_PUSH(&r->gone) = j;
    sd_event_source_set_enabled(r->bury, SD_EVENT_ONESHOT);
    reader_state_changed(r->state);
}

/* What was read there already of the job that goes there. */
static void take_over_part(struct job *home, struct owner *there)
{
    struct job *part = find_at(there, home->key);

    if (!part)
        return;
    json_object_update_missing(home->marks, part->marks);
    home->owner->n_files -= told_files_count(home->files);
    told_files_take_over(home->files, part->files);
    home->owner->n_files += told_files_count(home->files);
    bury(part);
}

/* Where it was, it is read no more. */
static void move(struct job *j, const char *node)
{
    struct owner *from = j->owner, *to = get_owner(from->readers, from->uid, from->gid, node);

    if (!to || to == from)
        return;
    take_over_part(j, to);
    ask_about(j, "unfollow");
    from->n_jobs--;
    from->n_files -= told_files_count(j->files);
    to->n_jobs++;
    to->n_files += told_files_count(j->files);
    j->owner = to;
    j->nowhere = j->refused = false;
    j->moved_at = mono_us();
    expect_repeats(j);
    ask_follow(j);
    if (j->draining)
        ask_about(j, "drain");
    tell_read(j);
    sd_event_source_set_enabled(from->readers->bury, SD_EVENT_ONESHOT);
}

static void try_elsewhere(struct job *j, const char *other_than)
{
    const struct readers *r = j->owner->readers;
    const char *node;

    if (!r->handlers.elsewhere || (j->moved_at > 0 && mono_us() < j->moved_at + MOVE_PAUSE))
        return;
    node = r->handlers.elsewhere(r->ctx, j->key, j->attempt, other_than);
    if (node)
        move(j, node);
}

static void drop_owner(struct owner *o)
{
    struct readers *r = o->readers;

    if (o->n_jobs > 0) /* again */
        return;
    for (size_t i = 0; i < r->owners.n; i++)
        if (r->owners.v[i] == o) {
            VEC_REMOVE(&r->owners, i);
            break;
        }
    owner_free(o);
}

/* ---- what is asked of us ---- */

static bool is_key(const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)key[i]) && !strchr("-_.+", key[i]))
            return false;
    return n > 0 && n < JOB_NAME_LEN;
}

/* All that was read of it in other places than home. */
static void end_parts(struct job *home)
{
    struct readers *r = home->owner->readers;
    size_t at = place_of(r, home->key) + 1;

    while (at < r->jobs.n && streq(r->jobs.v[at]->key, home->key)) {
        json_object_update_missing(home->before, r->jobs.v[at]->marks);
        bury(r->jobs.v[at]);
    }
    home->n_numbers = 0;
}

static void begin_attempt(struct job *j, uint32_t attempt, const struct log_paths *p)
{
    if (j->attempt > 0) {
        json_decref(j->before);
        j->before = j->marks;
        j->marks = json_object();
        end_parts(j);
    }
    j->attempt = attempt;
    j->draining = j->ended = j->nowhere = j->told_unread = false;
    forget_seen(j);
    drop_files(j);
    json_decref(j->request);
    j->request = reader_request_new(j->key, j->owner->uid, attempt, p);
}

static const char *home_of(const struct readers *r, const char *job, uint32_t attempt)
{
    return r->handlers.home ? r->handlers.home(r->ctx, job, attempt) : NULL;
}

/* Its nodes may be others now. What this host did not have, it will not have now. */
static void find_home(struct job *j)
{
    const struct readers *r = j->owner->readers;
    const char *node = home_of(r, j->key, j->attempt);

    if (!node && *j->owner->node && r->handlers.elsewhere)
        node = r->handlers.elsewhere(r->ctx, j->key, j->attempt, NULL);
    move(j, node);
}

static struct job *add_job(struct readers *r, struct owner *o, const char *key)
{
    struct job *j = xnew(struct job);

    j->owner = o;
    STR_COPY(j->key, key);
    STR_COPY(j->record, key);
    j->marks = json_object();
    j->before = json_object();
    j->files = told_files_new();
    o->n_jobs++;
    *VEC_INSERT(&r->jobs, place_of(r, key)) = j;
    return j;
}

int readers_follow(struct readers *r, uid_t uid, gid_t gid, const char *job, uint32_t attempt,
                   const struct log_paths *paths)
{
    struct job *j = is_key(job) ? find_job(r, job) : NULL;
    struct reader_record record;
    bool is_new = !j, begins;
    struct owner *o;

    if (!is_key(job) || attempt == 0)
        return -EINVAL;
    if (j && j->owner->uid != uid)
        return -EPERM;
    if (j && attempt < j->attempt)
        return -EINVAL;
    if (!j && r->jobs.n == JOBS_MAX)
        return -E2BIG;
    o = j ? j->owner : get_owner(r, uid, gid, home_of(r, job, attempt));
    if (!o)
        return -ENOMEM;
    if (!j)
        j = add_job(r, o, job);
    begins = attempt > j->attempt;
    if (begins)
        begin_attempt(j, attempt, paths);
    record = record_of(j);
    if (is_new)
        reader_state_recall(r->state, &record);
    if (!reader_request_add(j->request, paths))
        tell_gap(j, "it has more logs than are followed, or one whose name is no text");
    if (begins && !is_new)
        find_home(j);
    ask_follow(j);
    if (begins)
        tell_read(j);
    reader_state_changed(r->state);
    return 0;
}

static bool is_known(struct job *home, const char *path, const char *node)
{
    const struct readers *r = home->owner->readers;

    for (size_t i = place_of(r, home->key); i < r->jobs.n && streq(r->jobs.v[i]->key, home->key);
         i++)
        if (told_files_hear(r->jobs.v[i]->files, path, node, r->jobs.v[i]->owner->node))
            return true;
    return false;
}

static int has_no_room(struct job *j)
{
    char text[100];

    STR_PRINTF(text, "of the files that its nodes tell of, only %zu are read",
               told_files_count(j->files));
    if (!j->full)
        tell_gap(j, text);
    j->full = true;
    return -E2BIG;
}

static int add_file(struct job *j, const char *path, json_t *tellers)
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
    struct job *home = find_job(r, job);
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
static struct job *get_part(struct job *home, const char *node)
{
    struct readers *r = home->owner->readers;
    size_t at = place_of(r, home->key), end = at + 1;
    struct reader_record record;
    struct owner *o;
    struct job *part;

    for (; end < r->jobs.n && streq(r->jobs.v[end]->key, home->key); end++)
        if (streq(r->jobs.v[end]->owner->node, node))
            return r->jobs.v[end];
    if (end - at > PLACES_MAX)
        has_no_room(home);
    o = end - at > PLACES_MAX ? NULL : get_owner(r, home->owner->uid, home->owner->gid, node);
    if (!o)
        return NULL;
    part = xnew(struct job);
    *part = (struct job){.owner = o,
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
    *VEC_INSERT(&r->jobs, place_of(r, home->key) + 1) = part;
    record = record_of(part);
    reader_state_recall(r->state, &record);
    ask_follow(part);
    if (part->draining)
        ask_about(part, "drain");
    tell_read(part);
    return part;
}

/* The file goes to a node that has told of it; the others are kept for when it is not there. */
static void place_file(struct job *home, const char *path, json_t *tellers, const char *other_than)
{
    _cleanup_(freep) char *node = NULL;
    json_t *rest = json_array(), *name;
    struct job *part;
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
        ask_more_files(part);
        ask_about(part, "drain");
    }
    json_decref(rest);
}

/* It is there. Where it is that host's alone, the others who told of it have others. */
static void settle(struct job *j, const char *path, bool local)
{
    bool of_node = local && *j->owner->node;
    json_t *tellers = told_files_settle(j->files, path, of_node), *name;
    struct job *home = find_job(j->owner->readers, j->key);
    size_t i;

    json_array_foreach (tellers, i, name) {
        json_t *one = json_pack("[O]", name);

        if (of_node)
            place_file(home, path, one, j->owner->node);
        json_decref(one);
    }
    json_decref(tellers);
}

void readers_drain(struct readers *r, const char *job, uint32_t attempt)
{
    struct job *home = find_job(r, job);

    if (!home || home->attempt != attempt)
        return;
    for (size_t i = place_of(r, job); i < r->jobs.n && streq(r->jobs.v[i]->key, job); i++) {
        struct job *j = r->jobs.v[i];

        ask_more_files(j);
        j->draining = j->ended = true;
        ask_about(j, "drain");
    }
    tell_read(home);
}

void readers_forget(struct readers *r, const char *job)
{
    struct job *j;

    while ((j = find_job(r, job))) {
        struct reader_record record = record_of(j);

        if (!j->part)
            reader_state_leave(r->state, &record);
        bury(j);
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
        struct reader_record record = record_of(*j);

        reader_state_put(jobs, &record);
    }
}

static int on_bury(sd_event_source *source, void *userdata)
{
    struct readers *r = userdata;

    VEC_FOREACH (&r->gone, j)
        job_free(*j);
    VEC_DONE(&r->gone);
    for (size_t i = r->owners.n; i > 0; i--)
        drop_owner(r->owners.v[i - 1]);
    return 0;
}

void readers_node_up(struct readers *r, const char *node)
{
    VEC_FOREACH (&r->owners, o)
        if (streq((*o)->node, node))
            reader_process_hurry((*o)->process);
    for (size_t i = 0; i < r->jobs.n; i++)
        if (r->jobs.v[i]->nowhere && !r->jobs.v[i]->part && !*r->jobs.v[i]->owner->node)
            try_elsewhere(r->jobs.v[i], NULL);
}

int readers_look(const struct readers *r, const char *job, struct readers_view *ret)
{
    const struct job *j = find_job(r, job);
    const struct owner *o = j ? j->owner : NULL;

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
    r->state = reader_state_new(event, c->state_file, list_jobs, r);
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
        owner_free(*o);
    VEC_DONE(&r->owners);
    VEC_FOREACH (&r->jobs, j)
        job_free(*j);
    VEC_DONE(&r->jobs);
    VEC_FOREACH (&r->gone, j)
        job_free(*j);
    VEC_DONE(&r->gone);
    sd_event_source_disable_unref(r->bury);
    sd_event_source_disable_unref(r->files_timer);
    sd_event_unref(r->event);
    free(r);
    return NULL;
}
