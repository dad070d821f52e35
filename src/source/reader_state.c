/* SPDX-License-Identifier: Apache-2.0 */

/* A mark may be written down once the signals before it are: so the text that a turn of the timer
 * makes is written by the next one, when what was told has long been committed. Whoever knows that
 * all is safe has it written at once. */

#include "source/reader_state.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "base/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME           "offsets"
#define PRINT_LEN_MAX  64
#define UNCLAIMED_LIFE (10 * USEC_PER_MIN) /* of jobs in the file that nobody asks for */
#define LEFT_MAX       64                  /* marks that jobs of one owner left */
#define LEFT_OWNERS    256
#define SAVE_EVERY     (2 * USEC_PER_SEC)
#define SAVE_COST      (4 * USEC_PER_MSEC) /* for each KiB: a large file is written less often */

struct reader_state {
    int folder; /* -1 = none */
    void (*list)(void *ctx, json_t *jobs);
    void *ctx;
    json_t *saved; /* of the file, as far as nobody has asked for it */
    usec_t saved_until;
    json_t *left; /* by uid: marks by path, of jobs that are forgotten; the newest last */
    sd_event_source *timer;
    bool changed;
    char *pending; /* text that the next turn writes */
};

static bool is_count(const json_t *j)
{
    return json_is_integer(j) && json_integer_value(j) >= 0;
}

/* Only what a mark consists of. */
static json_t *copy_mark(const json_t *j)
{
    const char *path = json_string_value(json_object_get(j, "path"));
    const char *print = json_string_value(json_object_get(j, "print"));
    json_t *ret;

    if (!path || *path != '/' || strlen(path) >= PATH_MAX || !print ||
        strlen(print) > PRINT_LEN_MAX)
        return NULL;
    ret = json_pack("{s:s,s:s}", "path", path, "print", print);
    for (const char *const *key = (const char *const[]){"file", "ino", "offset", "line", NULL};
         *key; key++) {
        json_t *n = json_object_get(j, *key);

        if (!is_count(n)) {
            json_decref(ret);
            return NULL;
        }
        json_object_set(ret, *key, n);
    }
    return ret;
}

bool reader_marks_merge(json_t *marks, const json_t *list)
{
    bool all = json_is_array(list);
    json_t *j;
    size_t i;

    json_array_foreach (list, i, j) {
        json_t *mark = copy_mark(j);
        const char *path = json_string_value(json_object_get(mark, "path"));

        if (mark && (json_object_size(marks) < READER_MARKS_MAX || json_object_get(marks, path)))
            json_object_set(marks, path, mark);
        else
            all = false;
        json_decref(mark);
    }
    return all;
}

json_t *reader_marks_list(const json_t *marks)
{
    json_t *list = json_array(), *j;
    const char *key;

    json_object_foreach ((json_t *)marks, key, j)
        json_array_append(list, j);
    return list;
}

static json_t *load_left(const json_t *file)
{
    json_t *ret = json_object(), *list;
    const char *uid;

    json_object_foreach (json_object_get(file, "left"), uid, list) {
        json_t *marks = json_object();

        reader_marks_merge(marks, list);
        json_object_set_new(ret, uid, marks);
    }
    return ret;
}

static void load(struct reader_state *s)
{
    _cleanup_(closep) int fd =
        s->folder < 0 ? -1 : openat(s->folder, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    json_t *file = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
    json_t *jobs = json_object_get(file, "jobs");

    s->saved = json_is_object(jobs) ? json_incref(jobs) : json_object();
    s->saved_until = mono_us() + UNCLAIMED_LIFE;
    s->left = load_left(file);
    json_decref(file);
}

void reader_state_put(json_t *jobs, const struct reader_record *r)
{
    json_object_set_new(jobs, r->job,
                        json_pack("{s:I,s:I,s:o,s:o}", "uid", (json_int_t)r->uid, "attempt",
                                  (json_int_t)r->attempt, "marks", reader_marks_list(r->marks),
                                  "before", reader_marks_list(r->before)));
}

static char *text_of(const struct reader_state *s)
{
    json_t *jobs = mono_us() < s->saved_until ? json_copy(s->saved) : json_object();
    json_t *left = json_object(), *file, *marks;
    const char *uid;
    char *text;

    s->list(s->ctx, jobs);
    json_object_foreach (s->left, uid, marks)
        json_object_set_new(left, uid, reader_marks_list(marks));
    file = json_pack("{s:i,s:o,s:o}", "version", 1, "jobs", jobs, "left", left);
    text = json_dumps(file, JSON_COMPACT);
    json_decref(file);
    return text;
}

static void write_pending(struct reader_state *s)
{
    if (s->pending)
        file_replace(s->folder, NAME, s->pending,
                     strlen(s->pending)); /* if not: some is read twice */
    free(s->pending);
    s->pending = NULL;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct reader_state *s = userdata;

    write_pending(s);
    if (!s->changed)
        return 0;
    s->changed = false;
    s->pending = text_of(s);
    timer_arm(s->timer, mono_us() + SAVE_EVERY + (usec_t)(strlen(s->pending) / 1024) * SAVE_COST);
    return 0;
}

void reader_state_changed(struct reader_state *s)
{
    s->changed = true;
    if (s->folder >= 0 && !timer_is_armed(s->timer))
        timer_arm(s->timer, mono_us() + SAVE_EVERY);
}

void reader_state_save(struct reader_state *s)
{
    if (s->folder < 0)
        return;
    s->changed = false;
    free(s->pending);
    s->pending = text_of(s);
    write_pending(s);
}

void reader_state_recall(struct reader_state *s, struct reader_record *r)
{
    const json_t *old = json_object_get(s->saved, r->job);
    const json_t *uid = json_object_get(old, "uid"), *attempt = json_object_get(old, "attempt");

    if (!is_count(uid) || !is_count(attempt))
        return;
    if ((uid_t)json_integer_value(uid) == r->uid) {
        uint32_t n = (uint32_t)json_integer_value(attempt);

        if (n == r->attempt) {
            reader_marks_merge(r->marks, json_object_get(old, "marks"));
            reader_marks_merge(r->before, json_object_get(old, "before"));
        } else if (n < r->attempt) {
            reader_marks_merge(r->before, json_object_get(old, "marks"));
        }
    }
    json_object_del(s->saved, r->job);
}

const json_t *reader_state_left(const struct reader_state *s, uid_t uid)
{
    char key[16];

    STR_PRINTF(key, "%u", (unsigned)uid);
    return json_object_get(s->left, key);
}

static void drop_oldest(json_t *object)
{
    json_object_del(object, json_object_iter_key(json_object_iter(object)));
}

void reader_state_leave(struct reader_state *s, const struct reader_record *r)
{
    uint64_t number = strtoull(r->job, NULL, 10);
    json_t *left, *mark;
    const char *path;
    char uid[16];

    STR_PRINTF(uid, "%u", (unsigned)r->uid);
    left = json_object_get(s->left, uid);
    if (!left) {
        left = json_object();
        json_object_set_new(s->left, uid, left);
    }
    json_object_foreach (r->marks, path, mark) {
        if (str_has_number(path, number))
            continue;
        json_object_del(left, path);
        json_object_set(left, path, mark);
        if (json_object_size(left) > LEFT_MAX)
            drop_oldest(left);
    }
    if (json_object_size(left) == 0)
        json_object_del(s->left, uid);
    else if (json_object_size(s->left) > LEFT_OWNERS)
        drop_oldest(s->left);
}

struct reader_state *reader_state_new(sd_event *event, int folder,
                                      void (*list)(void *ctx, json_t *jobs), void *ctx)
{
    struct reader_state *s = xnew(struct reader_state);

    *s = (struct reader_state){.folder = folder, .list = list, .ctx = ctx};
    load(s);
    return timer_new(event, on_timer, s, &s->timer) < 0 ? reader_state_free(s) : s;
}

struct reader_state *reader_state_free(struct reader_state *s)
{
    if (!s)
        return NULL;
    if (s->timer)
        reader_state_save(s);
    sd_event_source_disable_unref(s->timer);
    json_decref(s->saved);
    json_decref(s->left);
    free(s->pending);
    free(s);
    return NULL;
}
