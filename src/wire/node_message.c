/* SPDX-License-Identifier: Apache-2.0 */

/* One table of members for all kinds, each with its bounds; a kind is the set of those that it must
 * have. So a message is checked whole before anything of it is used, and what is written can be
 * read again. */

#include "wire/node_message.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "wire/codec.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

#define VERSION 1

static const char *const kind_names[NODE_MESSAGE_KIND_MAX] = {
    [NODE_MESSAGE_START] = "start",       [NODE_MESSAGE_EXIT] = "exit",
    [NODE_MESSAGE_ACTIVITY] = "activity", [NODE_MESSAGE_GONE] = "gone",
    [NODE_MESSAGE_HEARTBEAT] = "alive",   [NODE_MESSAGE_LOGS] = "logs",
    [NODE_MESSAGE_READER] = "reader",     [NODE_MESSAGE_FACT] = "fact",
};
DEFINE_NAMES(node_message_kind, enum node_message_kind, kind_names);

#define ON(kind) (1u << NODE_MESSAGE_##kind)
#define TASKS    (ON(START) | ON(EXIT))
#define OF_JOB   (TASKS | ON(ACTIVITY) | ON(LOGS) | ON(GONE))

struct member {
    const char *name;
    unsigned kinds;
    size_t offset, size; /* of an integer: 4 or 8 bytes; of text: of its field */
    bool text;
    int64_t min, max;
    bool optional; /* 0 when it is not there */
};

#define AT(field) offsetof(struct node_message, field), sizeof(((struct node_message *)0)->field)
#define ALL       (OF_JOB | ON(FACT) | ON(HEARTBEAT) | ON(READER))
#define COUNT_MAX ((int64_t)1 << 53) /* what every JSON reader can hold */

/* The node's time until the year 2286: what is beyond is nonsense. */
static const struct member members[] = {
    {"node", ALL, AT(node), true, 0, 0},
    {"time", ALL, AT(time_us), false, 0, 10000000000000000},
    {"job", OF_JOB, AT(job), false, 1, UINT32_MAX},
    {"restart", OF_JOB, AT(restart), false, 0, UINT16_MAX},
    {"uid", OF_JOB, AT(uid), false, 0, UINT32_MAX},
    {"step", TASKS, AT(step), true, 0, 0},
    {"rank", TASKS, AT(task.rank), false, 0, UINT32_MAX - 1},
    {"tasks", TASKS, AT(task.tasks), false, 0, UINT32_MAX - 1},
    {"local", TASKS, AT(task.local), false, -1, INT32_MAX},
    {"pid", TASKS, AT(task.pid), false, 0, INT32_MAX},
    {"status", ON(EXIT), AT(task.status), false, 0, 0xffff},
    {"version", ON(HEARTBEAT), AT(heartbeat.version), true, 0, 0},
    {"dropped", ON(HEARTBEAT), AT(heartbeat.dropped), false, 0, COUNT_MAX},
    {"refused", ON(HEARTBEAT), AT(heartbeat.refused), false, 0, COUNT_MAX},
    {"watched", ON(HEARTBEAT), AT(heartbeat.watched), false, 0, COUNT_MAX},
    {"missed", ON(HEARTBEAT), AT(heartbeat.missed), false, 0, COUNT_MAX, .optional = true},
    {"kernel_records", ON(HEARTBEAT), AT(heartbeat.kernel_records), false, 0, COUNT_MAX,
     .optional = true},
    {"kernel_gaps", ON(HEARTBEAT), AT(heartbeat.kernel_gaps), false, 0, COUNT_MAX,
     .optional = true},
    {"kernel_lost", ON(HEARTBEAT), AT(heartbeat.kernel_lost), false, 0, COUNT_MAX,
     .optional = true},
    {"kernel_untold", ON(HEARTBEAT), AT(heartbeat.kernel_untold), false, 0, COUNT_MAX,
     .optional = true},
    {"kernel_trouble", ON(HEARTBEAT), AT(heartbeat.kernel_trouble), true, .optional = true},
    {"question", ON(READER), AT(reader.question), false, 1, COUNT_MAX},
    {"trouble", ON(READER), AT(reader.trouble), true, 0, 0},
};

static int refuse(struct err *e, const char *what, const char *why)
{
    return err_set(e, -EBADMSG, "%s %s", what, why);
}

static int read_text(const struct member *m, const json_t *j, struct node_message *ret,
                     struct err *e)
{
    const char *text = json_string_value(j);

    if (!text || json_string_length(j) >= m->size)
        return refuse(e, m->name, "is no text, or too long");
    str_sanitize((char *)ret + m->offset, m->size, text, json_string_length(j));
    return 0;
}

static int read_number(const struct member *m, const json_t *j, struct node_message *ret,
                       struct err *e)
{
    void *at = (char *)ret + m->offset;
    int64_t v;

    if (!json_is_integer(j))
        return refuse(e, m->name, "is no number");
    v = json_integer_value(j);
    if (v < m->min || v > m->max)
        return refuse(e, m->name, "is out of bounds");
    if (m->size == sizeof(int64_t))
        *(int64_t *)at = v;
    else
        *(uint32_t *)at = (uint32_t)v; /* within the bounds of int32_t where that is signed */
    return 0;
}

static int read_members(const json_t *j, struct node_message *ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const struct member *m = &members[i];
        const json_t *value = json_object_get(j, m->name);
        int r;

        if (!(m->kinds & (1u << ret->kind)) || (m->optional && !value))
            continue;
        r = m->text ? read_text(m, value, ret, e) : read_number(m, value, ret, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Only what an agent sees may come from one, and it comes as the agent's word. */
static struct signal as_agent(const struct signal *said)
{
    struct signal s = signal_make(said->kind, PROVENANCE_AGENT);

    s.time_us = said->time_us;
    if (said->who.rank >= 0) {
        s.role = ROLE_CONFIRM;
        s.who.rank = said->who.rank;
        s.who.local_rank = said->who.local_rank;
    }
    if (said->kind == SIGNAL_EXIT)
        s.exit = said->exit;
    else
        s.activity = said->activity;
    return s;
}

/* What the member holds, as the body of an event of its kind. */
static int read_body(const json_t *j, const char *name, struct event *event, struct err *e)
{
    _cleanup_(freep) char *text = json_dumps(json_object_get(j, name), JSON_COMPACT);

    if (!text)
        return refuse(e, name, "is missing");
    return codec_decode(text, event, e) < 0 ? -EBADMSG : 0;
}

static int read_signal(const json_t *j, struct node_message *ret, struct err *e)
{
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r;

    event->kind = EVENT_SIGNAL;
    r = read_body(j, "signal", event, e);
    if (r < 0)
        return r;
    if (event->signal.kind != SIGNAL_ACTIVITY && event->signal.kind != SIGNAL_EXIT)
        return refuse(e, "signal", "is of a kind that no agent sees");
    if (!event_is_sane(event)) /* core would refuse it, and a journal that holds it is damaged */
        return codec_refuse_numbers(e);
    ret->signal = as_agent(&event->signal);
    STR_COPY(ret->signal.who.node, ret->node);
    return 0;
}

/* What the catalogue says, and what a witness on the node can see: no more. */
static struct signal as_witness(const struct signal *said)
{
    bool vouches = said->provenance == PROVENANCE_KERNEL || said->provenance == PROVENANCE_NVML;
    struct signal s = signal_make(SIGNAL_HIT, vouches ? said->provenance : PROVENANCE_AGENT);

    s.time_us = said->time_us;
    STR_COPY(s.signature, said->signature);
    s.layer = said->layer;
    s.role = said->role;
    s.cause = said->cause;
    s.blame = said->blame;
    s.advice = said->advice;
    s.confidence = said->confidence;
    s.hang = said->hang;
    s.straggler = said->straggler;
    STR_COPY(s.clears, said->clears);
    STR_COPY(s.who.device, said->who.device);
    STR_COPY(s.who.peer, said->who.peer);
    s.who.pid = said->who.pid;
    STR_COPY(s.text, said->text);
    return s;
}

/* Who is root on a node is so on that node alone: whatever it names, the fact is about it. */
static int read_fact(const json_t *j, struct node_message *ret, struct err *e)
{
    _cleanup_(freep) struct event *event = xnew(struct event);
    int r;

    event->kind = EVENT_NODE_FACT;
    r = read_body(j, "fact", event, e);
    if (r < 0)
        return r;
    if (event->fact.signal.kind != SIGNAL_HIT)
        return refuse(e, "fact", "has a signal that is no hit");
    if (ret->node[0] == '\0')
        return refuse(e, "node", "is empty");
    event->fact.signal = as_witness(&event->fact.signal);
    STR_COPY(event->fact.node, ret->node);
    STR_COPY(event->fact.signal.who.node, ret->node);
    codec_sanitize(event);
    if (!event_is_sane(event))
        return codec_refuse_numbers(e);
    ret->fact = event->fact;
    return 0;
}

/* A process that ended: it exited, or a signal that exists has killed it. */
static bool is_end(int status)
{
    return WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) <= SIGNAL_NUMBER_MAX);
}

bool node_path_is_good(const char *path, size_t len)
{
    char clean[NODE_PATH_LEN];

    return len < NODE_PATH_LEN && len > 1 && path[0] == '/' &&
           str_sanitize(clean, sizeof(clean), path, len) == len && memcmp(clean, path, len) == 0;
}

bool node_paths_add(struct node_paths *p, const char *path)
{
    size_t size = strlen(path) + 1;

    assert(node_path_is_good(path, size - 1));
    if (size > sizeof(p->text) - p->len)
        return false;
    memcpy(p->text + p->len, path, size);
    p->len += (uint32_t)size;
    return true;
}

const char *node_paths_next(const struct node_paths *p, const char *last)
{
    const char *next = last ? last + strlen(last) + 1 : p->text;

    return next < p->text + p->len ? next : NULL;
}

static int read_paths(const json_t *j, struct node_message *ret, struct err *e)
{
    const json_t *list = json_object_get(j, "paths"), *path;
    size_t i;

    json_array_foreach (list, i, path) {
        const char *text = json_string_value(path);

        if (!text || !node_path_is_good(text, json_string_length(path)))
            return refuse(e, "paths", "has one that is none of a log");
        if (!node_paths_add(&ret->paths, text))
            return refuse(e, "paths", "is too long");
    }
    return ret->paths.len > 0 ? 0 : refuse(e, "paths", "is empty, or no list");
}

int node_message_from_json(const json_t *j, struct node_message *ret, struct err *e)
{
    struct node_message m = {0};
    const char *kind = json_string_value(json_object_get(j, "kind"));
    int r;

    if (json_integer_value(json_object_get(j, "v")) != VERSION)
        return refuse(e, "v", "is not 1");
    m.kind = kind ? node_message_kind_from_name(kind) : NODE_MESSAGE_INVALID;
    if (m.kind < 0)
        return refuse(e, "kind", "is not known");
    r = read_members(j, &m, e);
    if (r == 0 && m.kind == NODE_MESSAGE_ACTIVITY)
        r = read_signal(j, &m, e);
    if (r == 0 && m.kind == NODE_MESSAGE_FACT)
        r = read_fact(j, &m, e);
    if (r == 0 && m.kind == NODE_MESSAGE_LOGS)
        r = read_paths(j, &m, e);
    if (r == 0 && m.kind == NODE_MESSAGE_EXIT && !is_end(m.task.status))
        r = refuse(e, "status", "is not how a process ends");
    if (r == 0)
        *ret = m;
    return r;
}

int node_message_parse(const char *text, size_t len, struct node_message *ret, struct err *e)
{
    json_error_t error;
    json_t *j;
    int r;

    if (len > NODE_MESSAGE_BYTES_MAX)
        return refuse(e, "the message", "is too long");
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    r = json_is_object(j) ? node_message_from_json(j, ret, e)
                          : refuse(e, "the message", "is no JSON object");
    json_decref(j);
    return r;
}

static json_t *write_member(const struct member *m, const struct node_message *from)
{
    const void *at = (const char *)from + m->offset;

    if (m->text)
        return json_string(at);
    if (m->size == sizeof(int64_t))
        return json_integer(*(const int64_t *)at);
    return m->min < 0 ? json_integer(*(const int32_t *)at) : json_integer(*(const uint32_t *)at);
}

static json_t *write_body(const struct node_message *m)
{
    _cleanup_(freep) struct event *event = xnew(struct event);
    _cleanup_(freep) char *text = NULL;

    if (m->kind == NODE_MESSAGE_FACT) {
        event->kind = EVENT_NODE_FACT;
        event->fact = m->fact;
    } else {
        event->kind = EVENT_SIGNAL;
        event->signal = m->signal;
    }
    text = codec_encode(event);
    return json_loads(text, 0, NULL);
}

static json_t *write_paths(const struct node_paths *p)
{
    json_t *list = json_array();

    for (const char *path = NULL; (path = node_paths_next(p, path));)
        json_array_append_new(list, json_string(path));
    return list;
}

json_t *node_message_to_json(const struct node_message *m)
{
    json_t *j = json_pack("{s:i, s:s}", "v", VERSION, "kind", node_message_kind_name(m->kind));

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (members[i].kinds & (1u << m->kind))
            json_object_set_new(j, members[i].name, write_member(&members[i], m));
    }
    if (m->kind == NODE_MESSAGE_ACTIVITY)
        json_object_set_new(j, "signal", write_body(m));
    if (m->kind == NODE_MESSAGE_FACT)
        json_object_set_new(j, "fact", write_body(m));
    if (m->kind == NODE_MESSAGE_LOGS)
        json_object_set_new(j, "paths", write_paths(&m->paths));
    assert(j);
    return j;
}
