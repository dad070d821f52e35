/* SPDX-License-Identifier: Apache-2.0 */
#include "source/sched_job.h"

#include "base/alloc.h"
#include "base/hostlist.h"
#include "core/model/event.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX  4096 /* what is longer is cut; logs are found by paths, which are no longer */
#define HOSTS_MAX 65536

/* Words of the protocol that mean the same to us. */
static const struct {
    const char *word;
    enum sched_state state;
} states[] = {
    {"configuring", SCHED_RUNNING}, {"requeued", SCHED_PENDING}, {"special-exit", SCHED_PENDING},
    {"deadline", SCHED_TIMEOUT},    {"unknown", SCHED_NONE},
};

static enum sched_state state_of(const char *word)
{
    enum sched_state s;

    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (streq(states[i].word, word))
            return states[i].state;
    s = sched_state_from_name(word);
    return s >= 0 ? s : SCHED_NONE;
}

static const char *raw_text(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));

    return s ? s : "";
}

/* Text of a user's: shown in many places, so it is made harmless at once. */
static char *text(const json_t *j, const char *name)
{
    const char *s = raw_text(j, name);
    char buf[TEXT_MAX];

    str_sanitize(buf, sizeof(buf), s, strlen(s));
    return xstrdup(buf);
}

/* Never cut within a name: what a job ran on decides whether it may run beside itself. */
static char *hosts(const json_t *j, const char *name)
{
    const char *s = raw_text(j, name);
    size_t size = 3 * strlen(s) + 1; /* each byte may become a U+FFFD */
    char *clean = xmalloc(size), *fits;

    str_sanitize(clean, size, s, strlen(s));
    if (strlen(clean) < HOSTS_MAX)
        return clean;
    fits = xmalloc(HOSTS_MAX);
    hostlist_copy(fits, HOSTS_MAX, clean);
    free(clean);
    return fits;
}

/* A path or a comment is used as it is, and shown only sanitised. */
static char *exact(const json_t *j, const char *name)
{
    return xstrdup(raw_text(j, name));
}

static int64_t number(const json_t *j, const char *name, int64_t min, int64_t max)
{
    json_int_t v = json_integer_value(json_object_get(j, name));

    return v < min ? min : v > max ? max : v;
}

static uint32_t count(const json_t *j, const char *name)
{
    return (uint32_t)number(j, name, 0, INT32_MAX);
}

static bool flag(const json_t *j, const char *name)
{
    return json_is_true(json_object_get(j, name));
}

static uint32_t id_of(const char *s)
{
    long long v;

    return str_to_i64(s, &v) == 0 && v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static json_t *names(const json_t *j, const char *name)
{
    json_t *a = json_object_get(j, name);

    return json_is_array(a) ? json_incref(a) : json_array();
}

static bool is_cut(const json_t *j, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach (json_object_get(j, "cut"), i, v)
        if (json_is_string(v) && streq(json_string_value(v), name))
            return true;
    return false;
}

static void parse_texts(const json_t *j, struct sched_job *r)
{
    r->label = text(j, "label");
    r->name = text(j, "name");
    r->user = text(j, "user");
    r->account = text(j, "account");
    r->partition = text(j, "partition");
    r->qos = text(j, "qos");
    r->comment = exact(j, "comment");
    r->dependency = exact(j, "dependency");
    r->command = text(j, "command");
    r->work_dir = exact(j, "work_dir");
    r->std_out = exact(j, "stdout_path");
    r->std_err = exact(j, "stderr_path");
    r->reason = text(j, "reason");
    r->reason_kind = text(j, "reason_kind");
    r->dependency_cut = is_cut(j, "dependency");
    r->nodes = hosts(j, "nodes_text");
    r->failed_node = text(j, "failed_node");
    r->batch_host = text(j, "batch_host");
}

/* As src/daemon/act.c leaves it: {"reknit":{"held_until":1796035923}}. */
static void parse_note(const json_t *j, struct sched_job *r)
{
    const char *text = raw_text(j, "admin_comment");
    json_t *note = *text == '{' ? json_loads(text, 0, NULL) : NULL;
    const json_t *until = json_object_get(json_object_get(note, "reknit"), "held_until");

    r->noted = r->held && json_is_integer(until);
    r->noted_until = r->noted ? number(json_object_get(note, "reknit"), "held_until", 0,
                                       INT64_MAX / USEC_PER_SEC / 4)
                              : 0;
    json_decref(note);
}

static void parse_numbers(const json_t *j, struct sched_job *r)
{
    const json_t *array = json_object_get(j, "array"), *het = json_object_get(j, "het");
    const json_t *exit = json_object_get(j, "exit");
    int64_t latest = INT64_MAX / USEC_PER_SEC / 4;

    r->uid = (uid_t)number(j, "uid", 0, UINT32_MAX);
    r->gid = (gid_t)number(j, "gid", 0, UINT32_MAX);
    r->array_id = id_of(raw_text(array, "job"));
    r->array_task = count(array, "task");
    r->het_leader = id_of(raw_text(het, "leader"));
    r->het_offset = count(het, "offset");
    r->batch = flag(j, "batch");
    r->requeue = flag(j, "requeue");
    r->completing = flag(j, "completing");
    r->held = flag(j, "held");
    parse_note(j, r);
    r->restarts = count(j, "restarts");
    r->n_nodes = count(j, "n_nodes");
    r->n_tasks = count(j, "n_tasks");
    r->gpus = count(j, "gpus");
    r->priority = (uint32_t)number(j, "priority", 0, UINT32_MAX);
    r->submit = number(j, "submit", 0, latest);
    r->eligible = number(j, "eligible", 0, latest);
    r->start = number(j, "start", 0, latest);
    r->end = number(j, "end", 0, latest);
    r->exit_code = (int32_t)number(exit, "code", 0, 255);
    r->exit_signal = (int32_t)number(exit, "signal", 0, SIGNAL_NUMBER_MAX);
}

int sched_job_parse(const json_t *j, struct sched_job **ret, struct err *e)
{
    uint32_t id = id_of(raw_text(j, "id"));
    struct sched_job *r;

    if (id == 0 || !json_is_string(json_object_get(j, "state")))
        return err_set(e, -EBADMSG, "a job without an id, or without a state");
    r = xnew(struct sched_job);
    r->id = id;
    r->state = state_of(raw_text(j, "state"));
    parse_texts(j, r);
    parse_numbers(j, r);
    r->exclude = names(j, "exclude");
    r->required = names(j, "required");
    *ret = r;
    return 0;
}

struct sched_job *sched_job_free(struct sched_job *r)
{
    if (!r)
        return NULL;
    free(r->label);
    free(r->name);
    free(r->user);
    free(r->account);
    free(r->partition);
    free(r->qos);
    free(r->comment);
    free(r->dependency);
    free(r->command);
    free(r->work_dir);
    free(r->std_out);
    free(r->std_err);
    free(r->reason);
    free(r->reason_kind);
    free(r->nodes);
    free(r->failed_node);
    free(r->batch_host);
    json_decref(r->exclude);
    json_decref(r->required);
    free(r);
    return NULL;
}

void sched_job_key(const struct sched_job *r, char ret[SCHED_KEY_LEN])
{
    snprintf(ret, SCHED_KEY_LEN, "%" PRIu32 "-%" PRId64, r->id, r->submit);
}

int64_t sched_key_submit(const char *key)
{
    const char *dash = strchr(key, '-');
    long long v;

    return dash && str_to_i64(dash + 1, &v) == 0 ? v : 0;
}

struct sched_identity sched_job_identity(const struct sched_job *r)
{
    struct sched_identity id = {.uid = r->uid, .restarts = r->restarts, .submit = r->submit};

    STR_COPY(id.name, r->name);
    return id;
}

/* A requeue sets the submission anew, and once more when what was requeued while it ran has ended;
 * a number that is given away again mostly begins without restarts. A job keeps its user. */
static bool may_be_later(const struct sched_identity *known, const struct sched_identity *id)
{
    return id->uid == known->uid && id->restarts >= known->restarts && id->submit >= known->submit;
}

/* Who was not looking may have missed a whole round of the numbers: then the name counts, too,
 * unless nothing else has happened to it. */
bool sched_job_may_follow(const struct sched_job *r, const struct sched_identity *known)
{
    struct sched_identity id = sched_job_identity(r);

    return may_be_later(known, &id) &&
           (id.submit == known->submit || (id.restarts > 0 && streq(id.name, known->name)));
}

/* From one look to the next no number comes round, whatever its user calls the job by then. */
bool sched_job_is_same(const struct sched_job *a, const struct sched_job *b)
{
    struct sched_identity known = sched_job_identity(a), id = sched_job_identity(b);

    return a->id == b->id && may_be_later(&known, &id) &&
           (id.submit == known.submit || id.restarts > 0);
}

/* Slurm says of a job that was cancelled while it waited that it began as it ended; but it had no
 * nodes. */
bool sched_job_never_began(const struct sched_job *r)
{
    return sched_has_ended(r->state) &&
           (r->start == 0 || (r->start == r->end && r->nodes[0] == '\0'));
}
