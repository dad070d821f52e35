/* SPDX-License-Identifier: Apache-2.0 */

/* A request is any line that a client may send, broken ones included: whatever it is, there is an
 * answer to it, one line of valid JSON. Texts that come from elsewhere (a job's name in an error)
 * are made valid here, so that no caller has to think of it. */

#include "slurm/protocol.h"

#include "slurm/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void request_done(struct request *r)
{
    json_decref(r->body);
    *r = (struct request){.id = REQUEST_ID_NONE};
}

static int64_t read_id(const json_t *body)
{
    const json_t *id = json_object_get(body, "id");

    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) > REQUEST_ID_MAX)
        return REQUEST_ID_NONE;
    return json_integer_value(id);
}

static int read_deadline(const json_t *body, int *ret_ms, struct err *e)
{
    const json_t *ms = json_object_get(body, "deadline_ms");

    if (!ms) {
        *ret_ms = DEADLINE_DEFAULT_MS;
        return 0;
    }
    if (!json_is_integer(ms) || json_integer_value(ms) < DEADLINE_MIN_MS ||
        json_integer_value(ms) > DEADLINE_MAX_MS)
        return err_set(e, -EINVAL, "deadline_ms is no integer from %d to %d", DEADLINE_MIN_MS,
                       DEADLINE_MAX_MS);
    *ret_ms = (int)json_integer_value(ms);
    return 0;
}

int request_parse(const char *line, size_t len, struct request *ret, struct err *e)
{
    json_error_t je;
    int r;

    *ret = (struct request){.id = REQUEST_ID_NONE};
    ret->body = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
    if (!json_is_object(ret->body)) {
        r = err_set(e, -EINVAL, "no JSON object: %s", ret->body ? "something else" : je.text);
        request_done(ret);
        return r;
    }
    ret->id = read_id(ret->body);
    ret->op = json_string_value(json_object_get(ret->body, "op"));
    if (ret->id == REQUEST_ID_NONE)
        return err_set(e, -EINVAL, "there is no id, an integer from 0 to 2^53");
    if (!ret->op)
        return err_set(e, -EINVAL, "there is no op");
    return read_deadline(ret->body, &ret->deadline_ms, e);
}

int request_text(const struct request *r, const char *name, const char **ret, struct err *e)
{
    const json_t *v = json_object_get(r->body, name);

    if (!v)
        return -ENOENT;
    if (!json_is_string(v))
        return err_set(e, -EINVAL, "%s is no text", name);
    *ret = json_string_value(v);
    return 0;
}

int request_flag(const struct request *r, const char *name, bool *ret, struct err *e)
{
    const json_t *v = json_object_get(r->body, name);

    if (!v)
        return -ENOENT;
    if (!json_is_boolean(v))
        return err_set(e, -EINVAL, "%s is neither true nor false", name);
    *ret = json_is_true(v);
    return 0;
}

void answer_done(struct answer *a)
{
    json_decref(a->now);
    json_decref(a->body);
    strbuf_done(&a->list);
    *a = (struct answer){0};
}

void answer_fail(struct answer *a, enum fault fault, int scheduler_errno, const char *format, ...)
{
    char raw[sizeof(a->text)];
    va_list ap;

    assert(fault > FAULT_NONE && fault < FAULT_MAX);
    a->fault = fault;
    a->scheduler_errno = scheduler_errno;
    va_start(ap, format);
    vsnprintf(raw, sizeof(raw), format, ap);
    va_end(ap);
    str_sanitize(a->text, sizeof(a->text), raw, strlen(raw));
}

void answer_set(struct answer *a, const char *name, json_t *value)
{
    if (!a->body)
        a->body = json_object();
    json_object_set_new(a->body, name, value);
}

static void write_fault(const struct answer *a, struct strbuf *out)
{
    json_t *o = json_pack("{s:s, s:s}", "error", fault_name(a->fault), "text", a->text);

    assert(o);
    if (a->scheduler_errno)
        json_object_set_new(o, "errno", json_integer(a->scheduler_errno));
    if (a->now)
        json_object_set(o, "now", a->now);
    strbuf_addc(out, ',');
    json_add_members(out, o);
    json_decref(o);
}

void answer_write(const struct answer *a, int64_t id, struct strbuf *out)
{
    if (id == REQUEST_ID_NONE)
        strbuf_adds(out, "{\"id\":null");
    else
        strbuf_addf(out, "{\"id\":%" PRId64, id);
    strbuf_addf(out, ",\"ok\":%s", a->fault ? "false" : "true");
    if (a->fault) {
        write_fault(a, out);
    } else {
        if (json_object_size(a->body) > 0) {
            strbuf_addc(out, ',');
            json_add_members(out, a->body);
        }
        if (a->list.len > 0) {
            strbuf_addc(out, ',');
            strbuf_add(out, a->list.s, a->list.len);
        }
    }
    strbuf_adds(out, "}\n");
}
