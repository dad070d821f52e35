/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked, one JSON object a line; "id" comes back in the answer {"id":3,"ok":true}, or
 * {"id":3,"ok":false,"text":"..."}. What is not known is ignored.
 *
 *   {"op":"follow","job":K,"attempt":N,"dir":D,"patterns":[P..],"mode":"truncate"|"append",
 *    "uid":U,"more":[P..],"files":[F..],"started_us":T,"names":{"job_id","array_job_id","array_task_id",
 *    "job_name","user_name"},"leave":true,"marks":[M..],"before":[M..],"beside":[M..]}
 *                         U is whose job it is, for a reader that root runs;
 *                         `patterns` are the scheduler's own and written in that mode, `more` are
 *                         not; `files` are called as they are, and may be no logs; with `leave`,
 *                         those that are not here are told as such, and forgotten;
 *                         marks: read up to there already; before: the attempt before was;
 *                         beside: other jobs were, in files that may be this one's too.
 *                         M: {"file":0,"path":P,"ino":I,"offset":O,"line":L,"print":HEX}
 *   {"op":"files","job":K,"attempt":N,"files":[F..]}    more of them
 *   {"op":"drain","job":K,"attempt":N}    read to the end, then say so
 *   {"op":"unfollow","job":K}
 *   {"op":"ping"}
 *
 * It ends when what comes in does. What is told: {"kind":"hello","protocol":1,"uid":U}; signals, as
 * whole events (wire/codec.h); and, each with "job" and "attempt":
 *
 *   {"kind":"file","file":0,"path":P,"trouble":null|"why it cannot be read",
 *    "local":true}                        its file system is this host's alone
 *   {"kind":"marks","marks":[M..]}        all that stands before them was told before
 *   {"kind":"anew","file":0}              its offsets count from the beginning again
 *   {"kind":"gap","text":"..."}           something will never be told
 *   {"kind":"full"}                       there is no room for it until others are unfollowed
 *   {"kind":"nowhere","path":P}           the folder is missing on this host
 *   {"kind":"left","path":P}              it is left to others
 *   {"kind":"drained"}
 *
 * While much is owed to the far side nothing is read: files keep what they have. */

#include "reader/serve.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/timer.h"
#include "base/vec.h"
#include "reader/attempt.h"
#include "reader/pattern.h"
#include "wire/codec.h"
#include "wire/lines.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OWED_MAX   (2 * LINES_OF_READER_MAX)
#define OWED_PAUSE ((size_t)1 << 20)
#define JOBS_MAX   4096
#define FILES_MAX  16384
#define TURN_US    (250 * USEC_PER_MSEC)
#define AWAKE_MAX  1024 /* scanners, of some ten KiB each, and more where lines are long */

struct server {
    sd_event *event;
    struct matcher *matcher;
    struct notice *notice;
    struct lines *lines;
    sd_event_source *tick;
    VEC(struct job *) jobs;
    size_t turn; /* which of them is first */
};

struct job {
    struct server *server;
    char key[JOB_NAME_LEN];
    uint32_t number;
    usec_t started_us; /* of the attempt; 0 = not known */
    struct attempt *attempt;
    usec_t due;
};

static struct job *job_free(struct job *j)
{
    if (!j)
        return NULL;
    attempt_free(j->attempt);
    free(j);
    return NULL;
}

/* ---- telling ---- */

static void tell(struct server *s, json_t *j)
{
    if (lines_send(s->lines, j) < 0) /* it cannot be: so much is owed only if nothing was asked */
        sd_event_exit(s->event, -ENOBUFS);
}

static json_t *about(const struct job *j, const char *kind)
{
    return json_pack("{s:s,s:s,s:I}", "kind", kind, "job", j->key, "attempt",
                     (json_int_t)j->number);
}

static void on_signal(void *ctx, const struct signal *signal)
{
    struct job *j = ctx;
    struct event e = {.kind = EVENT_SIGNAL, .attempt = j->number, .signal = *signal};

    STR_COPY(e.job, j->key);
    tell(j->server, codec_event_json(&e));
}

static void on_file(void *ctx, uint32_t file, const char *path, const char *trouble, bool local)
{
    struct job *j = ctx;
    json_t *t = about(j, "file"), *p = json_string(path);

    json_object_set_new(t, "file", json_integer(file));
    json_object_set_new(t, "path", p ? p : json_string(""));
    json_object_set_new(t, "trouble", trouble ? json_string(trouble) : json_null());
    json_object_set_new(t, "local", json_boolean(local));
    tell(j->server, t);
}

static void on_gap(void *ctx, const char *path, const char *text)
{
    struct job *j = ctx;
    json_t *t = about(j, "gap");
    char clean[512], whole[768];

    str_sanitize(clean, sizeof(clean), path, strlen(path));
    STR_PRINTF(whole, "%s%s%s", clean, *clean ? ": " : "", text);
    json_object_set_new(t, "text", json_string(whole));
    tell(j->server, t);
}

static void on_anew(void *ctx, uint32_t file)
{
    struct job *j = ctx;
    json_t *t = about(j, "anew");

    json_object_set_new(t, "file", json_integer(file));
    tell(j->server, t);
}

static json_t *mark_json(const struct attempt_mark *m)
{
    char hex[2 * TAIL_PRINT_MAX + 1] = "";

    for (unsigned i = 0; i < m->mark.n_print; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", m->mark.print[i]);
    return json_pack("{s:I,s:s,s:I,s:I,s:I,s:s}", "file", (json_int_t)m->file, "path", m->path,
                     "ino", (json_int_t)m->mark.ino, "offset", (json_int_t)m->mark.offset, "line",
                     (json_int_t)m->mark.line, "print", hex);
}

static void add_mark_json(void *ctx, const struct attempt_mark *m)
{
    json_t *j = mark_json(m);

    if (j) /* else the path is no UTF-8: it begins anew in another process */
        json_array_append_new(ctx, j);
}

static void on_marks(void *ctx)
{
    struct job *j = ctx;
    json_t *marks = json_array(), *t;

    attempt_marks(j->attempt, add_mark_json, marks);
    if (json_array_size(marks) == 0) {
        json_decref(marks);
        return;
    }
    t = about(j, "marks");
    json_object_set_new(t, "marks", marks);
    tell(j->server, t);
}

static void on_drained(void *ctx)
{
    struct job *j = ctx;

    tell(j->server, about(j, "drained"));
}

static void tell_path(const struct job *j, const char *kind, const char *path)
{
    json_t *t = about(j, kind), *p = json_string(path);

    json_object_set_new(t, "path", p ? p : json_string(""));
    tell(j->server, t);
}

static void on_nowhere(void *ctx, const char *path)
{
    tell_path(ctx, "nowhere", path);
}

static void on_left(void *ctx, const char *path)
{
    tell_path(ctx, "left", path);
}

/* Jobs that write one after the other into one file: the furthest of those that were there. */
static bool on_elsewhere(void *ctx, const char *path, struct tail_mark *ret)
{
    const struct job *j = ctx;
    struct tail_mark m;
    bool found = false;

    VEC_FOREACH (&j->server->jobs, other)
        if (*other != j && attempt_was_at((*other)->attempt, path, j->started_us, &m) &&
            (!found || m.offset > ret->offset)) {
            *ret = m;
            found = true;
        }
    return found;
}

/* ---- reading ---- */

static void limit_memory(struct server *s, usec_t now)
{
    static const usec_t quiet[] = {10 * USEC_PER_SEC, USEC_PER_SEC, 0};

    for (size_t i = 0; i < ARRAY_SIZE(quiet); i++) {
        size_t awake = 0;

        VEC_FOREACH (&s->jobs, j)
            awake += attempt_awake((*j)->attempt);
        if (awake <= AWAKE_MAX)
            return;
        VEC_FOREACH (&s->jobs, j)
            attempt_sleep((*j)->attempt, now - quiet[i]);
    }
}

/* What is due, for a while: requests must not wait for long. */
static void run(struct server *s)
{
    usec_t now = mono_us(), due = USEC_NEVER;
    size_t first = s->turn;

    for (size_t i = 0; i < s->jobs.n; i++) {
        struct job *j = s->jobs.v[(first + i) % s->jobs.n];

        if (lines_owed(s->lines) > OWED_PAUSE)
            return; /* on_relieved() goes on */
        if (j->due <= now && mono_us() - now < TURN_US) {
            j->due = attempt_run(j->attempt, now);
            s->turn = first + i + 1;
        }
        due = j->due < due ? j->due : due;
    }
    limit_memory(s, now);
    if (due != USEC_NEVER)
        timer_arm(s->tick, due);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    run(userdata);
    return 0;
}

static void on_relieved(void *ctx)
{
    run(ctx);
}

static void on_changed(void *ctx, int number)
{
    struct server *s = ctx;

    VEC_FOREACH (&s->jobs, j)
        if (attempt_changed((*j)->attempt, number))
            (*j)->due = 0;
}

static void on_settled(void *ctx)
{
    run(ctx);
}

/* ---- being asked ---- */

static struct job *find_job(const struct server *s, const char *key)
{
    VEC_FOREACH (&s->jobs, j)
        if (streq((*j)->key, key))
            return *j;
    return NULL;
}

static const char *text_of(const json_t *q, const char *key)
{
    return json_string_value(json_object_get(q, key));
}

static uint64_t number_of(const json_t *q, const char *key, uint64_t absent)
{
    const json_t *j = json_object_get(q, key);

    return json_is_integer(j) && json_integer_value(j) >= 0 ? (uint64_t)json_integer_value(j)
                                                            : absent;
}

static void read_names(const json_t *j, struct pattern_names *ret)
{
    *ret = (struct pattern_names){.numbers.job = (uint32_t)number_of(j, "job_id", 0),
                                  .numbers.array_job = (uint32_t)number_of(j, "array_job_id", 0),
                                  .numbers.array_task =
                                      (uint32_t)number_of(j, "array_task_id", LOG_NO_TASK),
                                  .job_name = text_of(j, "job_name"),
                                  .user_name = text_of(j, "user_name")};
}

static bool read_mark(const json_t *j, struct attempt_mark *ret)
{
    const char *hex = text_of(j, "print"), *path = text_of(j, "path");
    size_t n = hex ? strlen(hex) / 2 : 0;

    if (!path || n > TAIL_PRINT_MAX)
        return false;
    *ret = (struct attempt_mark){.file = (uint32_t)number_of(j, "file", 0),
                                 .path = (char *)path,
                                 .mark = {.ino = number_of(j, "ino", 0),
                                          .offset = number_of(j, "offset", 0),
                                          .line = number_of(j, "line", 1),
                                          .n_print = (uint8_t)n}};
    for (size_t i = 0; i < n; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return false;
        ret->mark.print[i] = (unsigned char)byte;
    }
    return true;
}

static void read_marks(const json_t *list, struct attempt *a,
                       void (*add)(struct attempt *a, const struct attempt_mark *m))
{
    struct attempt_mark m;
    const json_t *j;
    size_t i;

    json_array_foreach (list, i, j)
        if (read_mark(j, &m))
            add(a, &m);
}

static void hand_over(void *ctx, const struct attempt_mark *m)
{
    attempt_follow_up(ctx, m);
}

/* Of everybody else only the job's owner has a reader. */
static uid_t owner_of(const json_t *q)
{
    return geteuid() == 0 ? (uid_t)number_of(q, "uid", 0) : geteuid();
}

/* The attempt that was followed until now ends; what is known of its files goes to the next. */
static void replace_attempt(struct job *j, uint32_t number, const json_t *q)
{
    static const struct attempt_handlers handlers = {.signal = on_signal,
                                                     .file = on_file,
                                                     .gap = on_gap,
                                                     .anew = on_anew,
                                                     .marks = on_marks,
                                                     .drained = on_drained,
                                                     .nowhere = on_nowhere,
                                                     .left = on_left,
                                                     .elsewhere = on_elsewhere};
    usec_t started_us = (usec_t)number_of(q, "started_us", 0);
    struct attempt_options o = {.matcher = j->server->matcher,
                                .notice = j->server->notice,
                                .started_us = started_us,
                                .owner = owner_of(q)};
    struct attempt *next;

    if (number == 1)
        o.own_number = (uint32_t)number_of(json_object_get(q, "names"), "job_id", 0);
    next = attempt_new(&o, &handlers, j);
    if (j->attempt)
        attempt_end(j->attempt, started_us, hand_over, next);
    attempt_free(j->attempt);
    j->attempt = next;
    j->number = number;
    j->started_us = started_us;
}

static void add_patterns(struct job *j, const json_t *q, const char *key, enum stream_mode mode)
{
    const json_t *list = json_object_get(q, key), *p;
    _cleanup_strbuf_ struct strbuf path = {0};
    struct pattern_names names;
    size_t i;

    read_names(json_object_get(q, "names"), &names);
    json_array_foreach (list, i, p) {
        const char *pattern = json_string_value(p);

        if (pattern && *pattern == '\0')
            pattern = log_pattern_default(&names.numbers);
        if (!pattern || pattern_expand(pattern, text_of(q, "dir"), &names, &path) < 0)
            on_gap(j, pattern ? pattern : "", "it is no path of a log");
        else if (attempt_add_path(j->attempt, strbuf_str(&path), mode) < 0)
            on_gap(j, pattern, "the attempt has more logs than are followed");
    }
}

static void add_files(struct job *j, const json_t *q)
{
    const json_t *list = json_object_get(q, "files"), *f;
    size_t i;

    attempt_leave(j->attempt, json_is_true(json_object_get(q, "leave")));
    json_array_foreach (list, i, f) {
        const char *path = json_string_value(f);

        if (path && *path == '/' && strlen(path) < PATH_MAX)
            attempt_add_file(j->attempt, path);
    }
}

static size_t files_of(const struct server *s)
{
    size_t n = 0;

    VEC_FOREACH (&s->jobs, j)
        n += attempt_files((*j)->attempt);
    return n;
}

static void tell_full(struct server *s, const char *key, uint32_t attempt)
{
    struct job j = {.number = attempt};

    STR_COPY(j.key, key);
    tell(s, about(&j, "full"));
}

static struct job *add_job(struct server *s, const char *key)
{
    struct job *j = xnew(struct job);

    j->server = s;
    STR_COPY(j->key, key);
    *VEC_PUSH(&s->jobs) = j;
    return j;
}

static const char *follow(struct server *s, const json_t *q, const char *key)
{
    uint32_t number = (uint32_t)number_of(q, "attempt", 0);
    const char *mode = text_of(q, "mode");
    struct job *j = find_job(s, key);
    enum stream_mode m = STREAM_MODE_UNKNOWN;
    bool is_new = !j || number > j->number;

    if (j ? number < j->number : number == 0)
        return "that attempt is over";
    if (!j && (s->jobs.n == JOBS_MAX || files_of(s) > FILES_MAX)) {
        tell_full(s, key, number);
        return NULL;
    }
    if (!j)
        j = add_job(s, key);
    if (is_new) {
        bool known = j->attempt != NULL;

        replace_attempt(j, number, q);
        read_marks(json_object_get(q, "marks"), j->attempt, attempt_resume);
        read_marks(json_object_get(q, "beside"), j->attempt, attempt_beside);
        if (!known)
            read_marks(json_object_get(q, "before"), j->attempt, attempt_follow_up);
    }
    if (mode && streq(mode, "truncate"))
        m = STREAM_MODE_TRUNCATE;
    else if (mode && streq(mode, "append"))
        m = STREAM_MODE_APPEND;
    add_patterns(j, q, "patterns", m);
    add_patterns(j, q, "more", STREAM_MODE_UNKNOWN);
    add_files(j, q);
    if (is_new)
        attempt_add_resumed(j->attempt);
    j->due = 0;
    return NULL;
}

static struct job *find_attempt(const struct server *s, const json_t *q, const char *key)
{
    struct job *j = find_job(s, key);

    return j && j->number == number_of(q, "attempt", 0) ? j : NULL;
}

static const char *more_files(struct server *s, const json_t *q, const char *key)
{
    struct job *j = find_attempt(s, q, key);

    if (!j)
        return "that attempt is not followed";
    add_files(j, q);
    j->due = 0;
    return NULL;
}

static const char *drain(struct server *s, const json_t *q, const char *key)
{
    struct job *j = find_attempt(s, q, key);

    if (!j)
        return "that attempt is not followed";
    attempt_drain(j->attempt);
    j->due = 0;
    return NULL;
}

static const char *unfollow(struct server *s, const char *key)
{
    for (size_t i = 0; i < s->jobs.n; i++)
        if (streq(s->jobs.v[i]->key, key)) {
            job_free(s->jobs.v[i]);
            VEC_REMOVE(&s->jobs, i);
            break;
        }
    return NULL;
}

static const char *answer_job(struct server *s, const char *op, const json_t *q)
{
    const char *key = text_of(q, "job");

    if (!key || *key == '\0' || strlen(key) >= JOB_NAME_LEN)
        return "which job?";
    if (streq(op, "follow"))
        return follow(s, q, key);
    if (streq(op, "files"))
        return more_files(s, q, key);
    if (streq(op, "drain"))
        return drain(s, q, key);
    if (streq(op, "unfollow"))
        return unfollow(s, key);
    return "there is no such op";
}

static void on_request(void *ctx, const json_t *q)
{
    struct server *s = ctx;
    const char *op = text_of(q, "op"), *fault = NULL;
    json_t *id = json_object_get(q, "id"), *t;

    if (!op)
        fault = "which op?";
    else if (!streq(op, "ping"))
        fault = answer_job(s, op, q);
    t = json_pack("{s:O?,s:b}", "id", id, "ok", fault == NULL);
    if (fault)
        json_object_set_new(t, "text", json_string(fault));
    tell(s, t);
    timer_arm(s->tick, 0);
}

static void on_bad(void *ctx, const char *text)
{
    tell(ctx, json_pack("{s:n,s:b,s:s}", "id", "ok", 0, "text", text));
}

static void on_closed(void *ctx)
{
    struct server *s = ctx;

    sd_event_exit(s->event, 0);
}

/* ---- the whole ---- */

static int start(struct server *s, int in, int out)
{
    static const struct lines_options options = {.line_max = LINES_OF_READER_MAX,
                                                 .owed_max = OWED_MAX};
    static const struct lines_handlers lines_handlers = {
        .object = on_request, .bad = on_bad, .relieved = on_relieved, .closed = on_closed};
    static const struct notice_handlers notice_handlers = {.changed = on_changed,
                                                           .settled = on_settled};
    int r = sd_event_new(&s->event);

    if (r >= 0)
        r = timer_new(s->event, on_tick, s, &s->tick);
    if (r < 0)
        return r;
    s->notice = notice_new(s->event, &notice_handlers, s); /* without it: polling */
    s->lines = lines_new(s->event, in, out, &options, &lines_handlers, s);
    if (!s->lines)
        return -ENOMEM;
    tell(s,
         json_pack("{s:s,s:i,s:I}", "kind", "hello", "protocol", 1, "uid", (json_int_t)getuid()));
    return 0;
}

int serve(struct matcher *m, int in, int out, struct err *e)
{
    struct server s = {.matcher = m};
    int r = start(&s, in, out);

    if (r >= 0)
        r = sd_event_loop(s.event);
    VEC_FOREACH (&s.jobs, j)
        job_free(*j);
    VEC_DONE(&s.jobs);
    lines_free(s.lines);
    notice_free(s.notice);
    sd_event_source_disable_unref(s.tick);
    sd_event_unref(s.event);
    return r < 0 ? err_set(e, r, "event loop: %s", strerror(-r)) : 0;
}
