/* SPDX-License-Identifier: Apache-2.0 */
#include "source/reader_state.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PRINT_LEN_MAX 64

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

json_t *reader_state_load(const char *path, json_t **ret_left)
{
    json_t *file = path ? json_load_file(path, 0, NULL) : NULL;
    json_t *jobs = json_object_get(file, "jobs");

    if (json_is_object(jobs))
        json_incref(jobs);
    else
        jobs = json_object();
    *ret_left = load_left(file);
    json_decref(file);
    return jobs;
}

char *reader_state_text(json_t *jobs, const json_t *left)
{
    json_t *lists = json_object(), *file, *marks;
    const char *uid;
    char *text;

    json_object_foreach ((json_t *)left, uid, marks)
        json_object_set_new(lists, uid, reader_marks_list(marks));
    file = json_pack("{s:i,s:o,s:o}", "version", 1, "jobs", jobs, "left", lists);
    text = json_dumps(file, JSON_COMPACT);
    json_decref(file);
    return text;
}

void reader_state_put(json_t *state, const struct reader_record *r)
{
    json_object_set_new(state, r->job,
                        json_pack("{s:I,s:I,s:o,s:o}", "uid", (json_int_t)r->uid, "attempt",
                                  (json_int_t)r->attempt, "marks", reader_marks_list(r->marks),
                                  "before", reader_marks_list(r->before)));
}

bool reader_state_get(const json_t *state, const char *job, struct reader_record *ret)
{
    const json_t *j = json_object_get(state, job);
    const json_t *uid = json_object_get(j, "uid"), *attempt = json_object_get(j, "attempt");

    if (!is_count(uid) || !is_count(attempt))
        return false;
    *ret = (struct reader_record){.job = job,
                                  .uid = (uid_t)json_integer_value(uid),
                                  .attempt = (uint32_t)json_integer_value(attempt),
                                  .marks = json_object_get(j, "marks"),
                                  .before = json_object_get(j, "before")};
    return true;
}

int reader_state_save(const char *path, const char *text)
{
    _cleanup_(freep) char *fresh = xasprintf("%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(text);
    int r = 0;

    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < len && r == 0;) {
        ssize_t n = write(fd, text + at, len - at);

        if (n < 0 && errno != EINTR)
            r = -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    return r;
}
