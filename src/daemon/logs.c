/* SPDX-License-Identifier: Apache-2.0 */

/* What the logs of attempts say becomes signals about them: those of the job's record and comment,
 * and what the agents see its processes write to, which nothing but being read there makes logs.
 * The readers run as the jobs' owners, and what they tell is the job's own word, no more.
 *
 * They run on this host; where it has no such file system (readers.read_at), on a node of the
 * attempt. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "source/readers.h"

#include <stdlib.h>
#include <string.h>

struct log_watch {
    struct daemon *d;
    struct readers *readers;
};

static struct event about(const char *job, uint32_t attempt, enum event_kind kind)
{
    struct event e = {.kind = kind, .attempt = attempt};

    STR_COPY(e.job, job);
    return e;
}

/* The files are followed on, also behind what was asked for as the attempt ended: a file system may
 * deliver late, and the attempt go on after all. */
static void on_signal(void *ctx, const char *job, uint32_t attempt, const struct signal *s)
{
    struct log_watch *w = ctx;
    struct event e = about(job, attempt, EVENT_SIGNAL);
    const struct job *j = model_job(pump_model(w->d->pump), job);

    e.signal = *s;
    if (j && job_listens(j, attempt))
        pump_input(w->d->pump, &e);
}

static void on_gap(void *ctx, const char *job, uint32_t attempt, const char *text)
{
    log_warning("%s, attempt %u: %s", job, attempt, text);
}

static bool awaits_last_lines(const struct log_watch *w, const char *job, uint32_t attempt)
{
    const struct job *j = model_job(pump_model(w->d->pump), job);

    return j && j->attempt.number == attempt && j->state == JOB_ENDING && !j->attempt.drained;
}

static void on_drained(void *ctx, const char *job, uint32_t attempt)
{
    struct log_watch *w = ctx;
    struct event e = about(job, attempt, EVENT_LOGS_DRAINED);

    if (awaits_last_lines(w, job, attempt))
        pump_input(w->d->pump, &e);
}

/* Core is told what it does not know yet; that a reader was lost that it waits for, each time. */
static void on_read(void *ctx, const char *job, uint32_t attempt, bool is_read)
{
    struct log_watch *w = ctx;
    struct event e = about(job, attempt, is_read ? EVENT_LOGS_READ : EVENT_LOGS_UNREAD);
    const struct job *j = model_job(pump_model(w->d->pump), job);
    bool is_news;

    if (!j || j->attempt.number != attempt)
        return;
    is_news = j->attempt.unread == is_read;
    if ((j->state == JOB_RUNNING && is_news) || (j->state == JOB_ENDING && (is_news || !is_read)))
        pump_input(w->d->pump, &e);
}

static void on_file(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                    const char *trouble)
{
    if (trouble)
        log_warning("%s, attempt %u: %s: %s", job, attempt, path, trouble);
    else
        log_debug("%s, attempt %u: file %u is %s", job, attempt, file, path);
}

/* Core is told what it takes; people, what cannot be read. */
static void on_named(void *ctx, const char *job, uint32_t attempt, uint32_t file, const char *path,
                     const char *trouble)
{
    struct log_watch *w = ctx;
    struct event e = about(job, attempt, EVENT_LOG_NAMED);
    const struct job *j = model_job(pump_model(w->d->pump), job);

    e.log.file = file;
    STR_COPY(e.log.path, path);
    STR_COPY(e.log.trouble, trouble ? trouble : "");
    if (j && j->attempt.number == attempt && (trouble || log_names_lack(&j->attempt.logs, &e.log)))
        pump_input(w->d->pump, &e);
}

static void on_reader_state(void *ctx, uid_t uid, const char *node, const char *text)
{
    log_info("the reader of uid %u%s%s: %s", (unsigned)uid, *node ? " on node " : "", node, text);
}

/* The batch script's host first: what the job's record calls its output is written there. */
static const char *on_elsewhere(void *ctx, const char *job, uint32_t attempt,
                                const char *other_than)
{
    const struct log_watch *w = ctx;
    const struct sched_job *r = sched_watch_record(w->d->sched, job);

    if (!r || !w->d->nodes || w->d->config->readers.read_at == READ_AT_CONTROLLER)
        return NULL;
    return node_watch_reads(w->d->nodes, r->nodes, r->batch_host, other_than);
}

/* Where only nodes may read, even one whose agent is not there yet. */
static const char *on_home(void *ctx, const char *job, uint32_t attempt)
{
    const struct log_watch *w = ctx;
    const struct sched_job *r = sched_watch_record(w->d->sched, job);
    const char *node;

    if (w->d->config->readers.read_at != READ_AT_NODES || !r)
        return NULL;
    node = on_elsewhere(ctx, job, attempt, NULL);
    return node ? node : *r->batch_host ? r->batch_host : NULL;
}

static const struct readers_handlers handlers = {.signal = on_signal,
                                                 .gap = on_gap,
                                                 .drained = on_drained,
                                                 .read = on_read,
                                                 .file = on_file,
                                                 .named = on_named,
                                                 .reader_state = on_reader_state,
                                                 .home = on_home,
                                                 .elsewhere = on_elsewhere};

struct log_watch *log_watch_new(struct daemon *d)
{
    struct log_watch *w = xnew(struct log_watch);
    struct readers_config config = {.children = d->children,
                                    .node_readers = d->node_readers,
                                    .state_dir = d->state_dir,
                                    .ping_patience = d->config->readers.stall};

    w->d = d;
    w->readers = readers_new(d->event, &config, &handlers, w);
    return w->readers ? w : log_watch_free(w);
}

void log_watch_counts(const struct log_watch *w, struct readers_counts *ret)
{
    readers_counts(w->readers, ret);
}

void log_watch_say(const struct log_watch *w, const char *key, char *ret, size_t size)
{
    struct readers_view v;
    char place[NODE_NAME_LEN + 16];

    *ret = '\0';
    if (readers_look(w->readers, key, &v) < 0)
        return;
    STR_PRINTF(place, "%s%s", *v.node ? "node " : "reknitd's host", v.node);
    if (!v.running)
        str_printf(ret, size, "not read on %s: %s", place,
                   *v.trouble ? v.trouble : "its reader is being started");
    else if (v.missing && *v.node)
        str_printf(ret, size, "not read: neither reknitd's host nor %s has their folder", place);
    else if (v.missing)
        str_printf(ret, size, "not read: %s does not have their folder, and %s", place,
                   w->d->config->readers.read_at == READ_AT_CONTROLLER
                       ? "readers.read_at says that no node reads"
                       : "no node of the job has an agent that could have them read");
    else
        str_printf(ret, size, "read on %s", place);
}

uint32_t log_watch_unread(const struct log_watch *w, const char *key, unread_log_fn *fn, void *ctx)
{
    return readers_unread(w->readers, key, fn, ctx);
}

void log_watch_node_up(struct log_watch *w, const char *node)
{
    readers_node_up(w->readers, node);
}

struct log_watch *log_watch_free(struct log_watch *w)
{
    if (!w)
        return NULL;
    readers_free(w->readers);
    free(w);
    return NULL;
}

void log_watch_follow(struct log_watch *w, const char *key, uint32_t attempt,
                      const struct sched_job *r, const struct job_terms *terms, enum log_mode mode)
{
    struct log_paths paths = {.std_out = r->std_out,
                              .std_err = r->std_err,
                              .work_dir = r->work_dir,
                              .job_id = r->id,
                              .array_job_id = r->array_id,
                              .array_task_id = r->array_id ? r->array_task : LOG_NO_TASK,
                              .job_name = r->name,
                              .user_name = r->user,
                              .started_us = r->start * USEC_PER_SEC,
                              .mode = mode};
    const char *more[LOG_PATTERNS_MAX];

    for (uint32_t i = 0; i < terms->comment.n_logs && i < LOG_PATTERNS_MAX; i++)
        more[paths.n_more++] = terms->comment.logs[i];
    paths.more = more;
    if (readers_follow(w->readers, r->uid, r->gid, key, attempt, &paths) < 0)
        log_warning("%s, attempt %u: its logs cannot be followed", key, attempt);
}

void log_watch_found(struct log_watch *w, const char *key, uint32_t attempt, const char *path,
                     const char *node)
{
    bool may = w->d->config->readers.read_at != READ_AT_CONTROLLER;

    readers_add_file(w->readers, key, attempt, path, may ? node : NULL);
}

void log_watch_drain(struct log_watch *w, const char *key, uint32_t attempt)
{
    readers_drain(w->readers, key, attempt);
}

void logs_are_unread(struct pump *p)
{
    VEC_FOREACH (&pump_model(p)->jobs, job) {
        const struct job *j = *job;
        struct event e = about(j->name, j->attempt.number, EVENT_LOGS_UNREAD);

        if (j->scheduled && (j->state == JOB_RUNNING || j->state == JOB_ENDING))
            pump_input(p, &e);
    }
}

void log_watch_happened(struct log_watch *w, const struct event *e)
{
    switch (e->kind) {
    case EVENT_VERDICT: /* where the next attempt begins must outlive us */
        readers_save(w->readers);
        break;
    case EVENT_ATTEMPT_EXITED:
    case EVENT_ATTEMPT_GONE:
    case EVENT_INTERRUPTED:
        if (awaits_last_lines(w, e->job, e->attempt))
            readers_drain(w->readers, e->job, e->attempt);
        break;
    case EVENT_JOB_ENDED:
        readers_forget(w->readers, e->job);
        break;
    default:
        break;
    }
}
