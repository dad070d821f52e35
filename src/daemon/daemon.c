/* SPDX-License-Identifier: Apache-2.0 */

/* Wires the parts of reknitd together: the pump in the middle; the scheduler and the logs, which
 * are looked at; and what core asks for, which is carried out.
 *
 * Nothing is asked of the scheduler before it was looked at for the first time: the journal says
 * what was true, and only a look what is. */

#include "daemon/daemon.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/siblings.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADAPTER     "reknit-slurm"
#define JOURNAL_MIB 16
#define SAY_EVERY   (60 * USEC_PER_SEC) /* what may come often */

/* What happened */

static void say_decision(const struct event *e)
{
    const struct decision_facts *d = &e->decision;

    log_info("%s, attempt %" PRIu32 ": %s by the rule '%s' (%s): %s", e->job, e->attempt,
             action_name(d->action), d->rule, mode_name(d->mode), d->why);
}

static void say_of_node(const struct event *e)
{
    const struct node_verdict *v = &e->node_verdict;

    if (e->kind == EVENT_NODE_VERDICT && v->node[0] == '\0')
        log_warning("nodes, %s: %s", v->signature[0] ? v->signature : v->rule, v->why);
    else if (e->kind == EVENT_NODE_VERDICT)
        log_info("node %s: %s by the rule '%s': %s", v->node, isolation_name(v->isolation), v->rule,
                 v->why);
    else if (e->kind == EVENT_INTENT)
        log_info("node %s: asks for %s", e->intended.nodes[0], intent_name(e->intended.intent));
    else if (e->kind == EVENT_RESULT && e->result.outcome != OUTCOME_DONE)
        log_info("nodes: that is %s: %s", outcome_name(e->result.outcome), e->result.detail);
}

static void say(const struct event *e)
{
    if (event_is_of_nodes(e)) {
        say_of_node(e);
        return;
    }
    switch (e->kind) {
    case EVENT_VERDICT:
        log_info("%s, attempt %" PRIu32 ": %s, %s, %d %%: %s", e->job, e->attempt,
                 incident_class_name(e->incident.class), cause_name(e->incident.cause),
                 e->incident.confidence, e->incident.summary);
        break;
    case EVENT_DECISION:
        say_decision(e);
        break;
    case EVENT_INTENT:
        log_info("%s, attempt %" PRIu32 ": asks for %s", e->job, e->attempt,
                 intent_name(e->intended.intent));
        break;
    case EVENT_FENCED:
        log_info("%s: nothing of it runs on %s any more, says %s", e->job, e->fenced.node,
                 e->fenced.by);
        break;
    case EVENT_RESULT:
        if (e->result.outcome != OUTCOME_DONE)
            log_info("%s: that is %s: %s", e->job, outcome_name(e->result.outcome),
                     e->result.detail);
        break;
    default:
        break;
    }
}

static void on_happened(void *ctx, const struct event *e)
{
    struct daemon *d = ctx;

    say(e);
    if (d->logs)
        log_watch_happened(d->logs, e);
    if (d->api)
        api_happened(d->api, e);
    if (d->nodes)
        node_watch_happened(d->nodes, e);
    if (d->notifier)
        notifier_happened(d->notifier, e);
}

static void on_intent(void *ctx, const struct event *intent)
{
    act_on_intent(ctx, intent);
}

/* Whoever moves the folder away, or removes what is in it, may let another reknitd begin there; and
 * what this one writes is in no journal that anybody will read. */
static int may_write(void *ctx, struct err *e)
{
    const struct daemon *d = ctx;
    bool is_held = file_has_name(d->lock, d->lock_path);

    if (is_held && journal_is_in_place(d->journal))
        return 0;
    return err_set(e, -ENOENT, "%.*s%s was moved away, removed or replaced",
                   (int)(strrchr(d->lock_path, '/') + 1 - d->lock_path), d->lock_path,
                   is_held ? JOURNAL_NAME : "lock");
}

static void on_tilted(void *ctx, const struct err *why)
{
    struct daemon *d = ctx;

    if (!why && d->nodes)
        node_watch_written(d->nodes);
    d->tilt = why ? *why : (struct err){0};
    if (why)
        err_prefix(&d->tilt, d->tilt.code, "the journal cannot be written");
    if (why)
        log_error("the journal cannot be written (%s): nothing is done until it can", why->text);
    else
        log_warning("the journal can be written again");
}

/* Some program's fault, and perhaps for ever: it is said now and then. */
static void on_refused(void *ctx, const struct event *e)
{
    struct daemon *d = ctx;

    d->refused++;
    if (d->said_refused > 0 && mono_us() < d->said_refused + SAY_EVERY)
        return;
    d->said_refused = mono_us();
    log_warning("%s: an event of kind %s has a number out of all range and is left out; so far "
                "%" PRIu64 " were",
                e->job, event_kind_name(e->kind), d->refused);
}

static void on_stalled(void *ctx, usec_t how_long)
{
    char text[DURATION_TEXT_MAX];

    log_warning("reknitd did not run for %s; that time is held against nobody",
                duration_format(how_long, text));
}

static const struct pump_handlers pump_handlers = {.happened = on_happened,
                                                   .intent = on_intent,
                                                   .may_write = may_write,
                                                   .tilted = on_tilted,
                                                   .refused = on_refused,
                                                   .stalled = on_stalled,
                                                   .forget = USEC_PER_DAY,
                                                   .sleeps = true};

/* From beginning to end */

/* Where the programs that go with this one are. */
static void find_programs(char ret[PATH_MAX])
{
    char path[PATH_MAX];

    if (sibling_find(ADAPTER, path, sizeof(path)) < 0)
        sibling_find("reknit-reader", path, sizeof(path));
    str_copy(ret, PATH_MAX, dirname(path));
}

/* One at a time: two would act twice. The lock goes with the process. */
static int take_lock(struct daemon *d, struct err *e)
{
    const char *path = d->lock_path;

    if (mkdir(d->config->state_dir, 0750) < 0 && errno != EEXIST)
        return err_set(e, -errno, "%s: %s", d->config->state_dir, strerror(errno));
    d->state_dir = open(d->config->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->state_dir < 0)
        return err_set(e, -errno, "%s: %s", d->config->state_dir, strerror(errno));
    STR_PRINTF(d->lock_path, "%s/lock", d->config->state_dir);
    d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (flock(d->lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, -EBUSY, "%s is held: another reknitd works with this state", path);
    return 0;
}

static int open_pump(struct daemon *d, struct err *e)
{
    char path[PATH_MAX];
    int r;

    STR_PRINTF(path, "%s/" JOURNAL_NAME, d->config->state_dir);
    r = journal_open(path, JOURNAL_WRITE, &d->journal, e);
    if (r >= 0)
        r = journal_use_memory(d->journal, JOURNAL_MIB, e);
    if (r >= 0 && journal_lost(d->journal) > 0)
        log_warning("%s: %" PRIu64 " entries of the journal are lost: a file of it was damaged or "
                    "removed, or the power was cut. 'A damaged journal' in CLUSTER.md says what "
                    "that means",
                    path, journal_lost(d->journal));
    if (r >= 0)
        r = pump_new(d->event, d->journal, &pump_handlers, d, &d->pump, e);
    return r == -EBADMSG ? err_suffix(e, r,
                                      "nothing is done while it is so. To begin a new one, move "
                                      "it and what is beside it (" JOURNAL_NAME "-*) away; read "
                                      "'A damaged journal' in CLUSTER.md first")
                         : r;
}

static void start_adapter(struct daemon *d)
{
    static const struct adapter_handlers handlers = {
        .hello = sched_watch_hello, .down = sched_watch_down, .stray = sched_watch_stray};
    const struct command *c = &d->config->adapter.command;
    const char *argv[COMMAND_ARGS_MAX + 1] = {NULL};

    for (unsigned i = 0; i < c->n; i++)
        argv[i] = c->argv[i];
    d->adapter = adapter_new(d->event, c->n > 0 ? argv : NULL, d->children, &handlers, d->sched);
}

/* Of a cluster whose size is not known yet, what was said last holds. */
static uint32_t most_excluded(const struct daemon *d)
{
    uint64_t nodes = sched_watch_nodes(d->sched), percent = d->config->max_excluded;

    if (percent == 0 || percent >= 100)
        return 0;
    return nodes == 0 ? pump_model(d->pump)->brakes.max_excluded
                      : (uint32_t)((nodes * percent + 99) / 100);
}

void daemon_tell_brakes(struct daemon *d)
{
    const struct model *m = pump_model(d->pump);
    struct event e = {.kind = EVENT_BRAKES, .brakes = d->config->brakes};

    e.brakes.max_excluded = most_excluded(d);
    if (memcmp(&m->brakes, &e.brakes, sizeof(e.brakes)) != 0)
        pump_input(d->pump, &e);
}

static void tell_config(struct daemon *d)
{
    daemon_tell_brakes(d);
    isolate_tell_terms(d);
    log_set_level(d->config->log_level);
}

static int set_up(struct daemon *d, struct err *e)
{
    struct children_config children = {.programs = d->programs};
    int r = daemon_config_load(d->config_path, d->drop_ins, &d->config, e);

    if (r >= 0)
        r = take_lock(d, e);
    if (r >= 0)
        r = open_pump(d, e);
    if (r < 0)
        return r;
    d->new_journal = pump_model(d->pump)->seq == 0;
    logs_are_unread(d->pump);
    tell_config(d);
    d->config_hash = daemon_config_hash(d->config);
    children.spawner = d->config->spawner;
    children.readers_max = d->config->readers.max_processes;
    find_programs(d->programs);
    d->children = children_new(d->event, &children);
    d->node_readers = node_readers_new(d->event);
    d->sched = sched_watch_new(d);
    if (d->children && d->node_readers && d->sched) {
        start_adapter(d);
        d->logs = log_watch_new(d);
        d->nodes = node_watch_new(d);
        d->notifier = notifier_new(d);
    }
    d->keeping = keeping_new(d);
    if (!d->adapter || !d->logs || !d->nodes || !d->notifier || !d->keeping)
        return err_set(e, -ENOMEM, "the event loop takes nothing more");
    return backend_new(d, e);
}

int daemon_new(sd_event *event, const char *config_path, const char *drop_ins, struct daemon **ret,
               struct err *e)
{
    _cleanup_(daemon_freep) struct daemon *d = xnew(struct daemon);
    int r;

    d->event = sd_event_ref(event);
    d->config_path = config_path;
    d->drop_ins = drop_ins;
    d->state_dir = d->lock = -1;
    d->started = now_us();
    r = set_up(d, e);
    if (r < 0)
        return r;
    *ret = TAKE(d);
    return 0;
}

struct daemon *daemon_free(struct daemon *d)
{
    if (!d)
        return NULL;
    d->api = api_free(d->api);
    notifier_free(d->notifier);
    keeping_free(d->keeping);
    node_watch_free(d->nodes);
    log_watch_free(d->logs);
    node_readers_free(d->node_readers);
    adapter_free(d->adapter);
    sched_watch_free(d->sched);
    children_free(d->children);
    pump_free(d->pump);
    journal_free(d->journal);
    daemon_config_free(d->config);
    closep(&d->lock);
    closep(&d->state_dir);
    sd_event_unref(d->event);
    free(d);
    return NULL;
}

static bool is_same_command(const struct command *a, const struct command *b)
{
    bool same = a->n == b->n;

    for (unsigned i = 0; same && i < a->n; i++)
        same = streq(a->argv[i], b->argv[i]);
    return same;
}

/* What is used once, at the start, stays as it was: journal and lock are open in state_dir, and all
 * that is beside them belongs to them; the children were told the rest. */
static void keep_fixed(const struct daemon_config *old, struct daemon_config *fresh)
{
    const struct {
        const char *key;
        bool same;
    } fixed[] = {
        {"state_dir", streq(old->state_dir, fresh->state_dir)},
        {"spawner", streq(old->spawner, fresh->spawner)},
        {"adapter.command", is_same_command(&old->adapter.command, &fresh->adapter.command)},
        {"readers.stall", old->readers.stall == fresh->readers.stall},
    };

    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        if (!fixed[i].same)
            log_error("%s: what is new is used only after a restart of reknitd; until then what "
                      "held before holds",
                      fixed[i].key);
    STR_COPY(fresh->state_dir, old->state_dir);
    STR_COPY(fresh->spawner, old->spawner);
    fresh->adapter.command = old->adapter.command;
    fresh->readers.stall = old->readers.stall;
}

void daemon_reload(struct daemon *d)
{
    struct daemon_config *fresh = NULL;
    struct err e = {0};

    if (daemon_config_load(d->config_path, d->drop_ins, &fresh, &e) < 0) {
        log_error("%s; what held before still holds", e.text);
        return;
    }
    keep_fixed(d->config, fresh);
    d->config_hash = daemon_config_hash(fresh);
    daemon_config_free(d->config);
    d->config = fresh;
    sched_watch_lower(d->sched);
    tell_config(d);
    sched_watch_reload(d->sched);
    node_watch_reload(d->nodes);
    children_limit(d->children, d->config->readers.max_processes);
    notifier_reload(d->notifier);
    if (backend_reload(d, &e) < 0)
        log_error("%s; what held before still holds of it", e.text);
    log_info("the configuration was read again");
}
