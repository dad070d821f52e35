/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-agent: on every compute node, as root. What the plugin tells goes into the spool and from
 * there to reknitd; what the steps' processes do is told while there is a connection. Everything
 * happens in one loop; what blocks is done by reknit-seal. */

#include "agent/check.h"
#include "agent/inlet.h"
#include "agent/kernel_log.h"
#include "agent/probing.h"
#include "agent/seed.h"
#include "agent/tunnels.h"
#include "agent/uplink.h"
#include "agent/watch.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/siblings.h"
#include "base/str.h"
#include "probe/look.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

static const char help[] =
    "usage: reknit-agent --to HOST:PORT [option]...\n"
    "       reknit-agent check [option]...   is this node fit for a job? (check --help)\n"
    "\n"
    "Runs on a compute node, as root. Takes what Slurm's plugin spank_reknit.so says about the "
    "tasks\n"
    "of jobs, watches their processes, and tells reknitd.\n"
    "\n"
    "options:\n"
    "  --to HOST:PORT        where reknitd listens for agents; [ADDRESS]:PORT for IPv6\n"
    "  --node NAME           this node's name in Slurm (default: SLURMD_NODENAME in the "
    "environment,\n"
    "                        or the host's name up to the first dot)\n"
    "  --socket PATH         where the plugin sends to (default: /run/reknit-agent/agent.sock)\n"
    "  --spool PATH          file of what reknitd has not got yet\n"
    "                        (default: /var/lib/reknit-agent/agent.spool)\n"
    "  --kmsg PATH           the kernel's log, of which facts about the node are told; '' = none\n"
    "                        (default: /dev/kmsg)\n"
    "  --munge-socket PATH   munged's, where it is not the usual one\n"
    "  --key FILE            a key shared with reknitd, in place of MUNGE\n"
    "  --sample DURATION     how often to look at the processes of jobs (default: 10s)\n"
    "  --probe-every DURATION  how often to look at the node itself: GPUs, ports, disks, mounts;\n"
    "                        0s = never (default: 60s)\n"
    "  --probe-deadline DURATION  what has not answered a look by then hangs (default: 20s)\n"
    "  --nvml LIBRARY        NVIDIA's management library, where it is not the usual one\n"
    "  --root FOLDER         stands in front of /sys, /proc and /dev when the node is looked at\n"
    "  --heartbeat DURATION  how often to tell that the agent lives (default: 30s)\n"
    "  --spawner PATH        the socket of this node's reknit-spawner, which starts readers of "
    "logs where\n"
    "                        reknitd cannot see them; '' = none here\n"
    "                        (default: /run/reknit-spawner/spawner.sock)\n"
    "  --asker USER          whom reknitd runs as, a name or a number: nothing is told to anybody "
    "who\n"
    "                        cannot prove to be that user, or root\n"
    "                        (default: reknit)\n"
    "  --verbose             say more on standard error\n"
    "  --version             names the release\n"
    "  --help                this text\n";

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"node", required_argument, NULL, 'n'},
    {"socket", required_argument, NULL, 's'},
    {"spool", required_argument, NULL, 'p'},
    {"kmsg", required_argument, NULL, 'y'},
    {"munge-socket", required_argument, NULL, 'm'},
    {"key", required_argument, NULL, 'k'},
    {"sample", required_argument, NULL, 'a'},
    {"heartbeat", required_argument, NULL, 'b'},
    {"probe-every", required_argument, NULL, 'e'},
    {"probe-deadline", required_argument, NULL, 'i'},
    {"nvml", required_argument, NULL, 'l'},
    {"root", required_argument, NULL, 'r'},
    {"spawner", required_argument, NULL, 'w'},
    {"asker", required_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'd'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL},
};

struct settings {
    char host[256], port[16], node[NODE_NAME_LEN];
    const char *socket, *spool, *kmsg, *munge_socket, *key, *spawner, *asker, *nvml, *root;
    usec_t sample, heartbeat, probe_every, probe_deadline;
};

struct agent {
    struct settings settings;
    sd_event *event;
    struct spool *spool;
    struct inlet *inlet;
    struct uplink *uplink;
    struct watch *watch;
    struct tunnels *tunnels;
    struct probing *probing;
    char prober[PATH_MAX], locks[PATH_MAX], looks[PATH_MAX]; /* reknit-probe, folder, file */
    struct kernel_log *kernel;                               /* NULL = not wanted */
    sd_event_source *beat;
    bool spool_failed, missed; /* said */
    bool kernel_news;          /* the next heartbeat is due */
};

static void keep(struct agent *a, const struct node_message *m)
{
    json_t *j = node_message_to_json(m);
    _cleanup_(freep) char *text = json_dumps(j, JSON_COMPACT);
    uint64_t dropped = spool_dropped(a->spool);
    int r = spool_add(a->spool, text);

    json_decref(j);
    if (r < 0 && !a->spool_failed)
        log_warning("%s: %s: what waits for reknitd is in memory only", a->settings.spool,
                    strerror(-r));
    a->spool_failed = r < 0;
    if (dropped == 0 && spool_dropped(a->spool) > 0)
        log_warning("more than %d messages wait for reknitd: the oldest are given up",
                    SPOOL_MESSAGES_MAX);
    uplink_poke(a->uplink);
}

static void say_missed(struct agent *a)
{
    if (watch_missed(a->watch) > 0 && !a->missed)
        log_warning("there are steps that are not watched: more than %d, or of jobs that do not "
                    "say which they are",
                    WATCH_STEPS_MAX);
    a->missed = watch_missed(a->watch) > 0;
}

static void on_task(void *ctx, const struct node_message *from_plugin)
{
    struct agent *a = ctx;
    struct node_message m = *from_plugin;

    STR_COPY(m.node, a->settings.node);
    if (m.kind == NODE_MESSAGE_START)
        watch_task(a->watch, &m);
    say_missed(a);
    keep(a, &m);
}

static bool on_worth_now(void *ctx, const struct node_message *m)
{
    struct agent *a = ctx;

    return uplink_tell(a->uplink, node_message_to_json(m));
}

/* What must not be lost. */
static void on_lasting(void *ctx, const struct node_message *m)
{
    keep(ctx, m);
}

static void tell_alive(struct agent *a)
{
    struct node_message m = {.kind = NODE_MESSAGE_HEARTBEAT, .time_us = now_us()};

    STR_COPY(m.node, a->settings.node);
    STR_COPY(m.heartbeat.version, REKNIT_VERSION);
    m.heartbeat.dropped = (int64_t)spool_dropped(a->spool);
    m.heartbeat.refused = (int64_t)inlet_refused(a->inlet);
    m.heartbeat.watched = (int64_t)watch_count(a->watch);
    m.heartbeat.missed = (int64_t)watch_missed(a->watch);
    if (a->kernel)
        kernel_log_beat(a->kernel, &m.heartbeat);
    uplink_tell(a->uplink, node_message_to_json(&m));
}

static void on_fact(void *ctx, const struct node_fact *f)
{
    struct agent *a = ctx;
    struct node_message m = {.kind = NODE_MESSAGE_FACT, .time_us = now_us(), .fact = *f};

    STR_COPY(m.node, a->settings.node);
    log_info("the kernel says: %s (%s%s)", f->signal.text, f->signal.signature,
             f->cleared ? ", over" : "");
    keep(a, &m);
}

static void on_kernel_trouble(void *ctx, const char *what)
{
    struct agent *a = ctx;

    if (what)
        log_warning("%s", what);
    if (a->probing)
        probing_poke(a->probing);
    if (a->kernel_news)
        return;
    a->kernel_news = true;
    sd_event_source_set_time_relative(a->beat, USEC_PER_SEC);
    sd_event_source_set_enabled(a->beat, SD_EVENT_ONESHOT);
}

static void on_said(void *ctx, const char *text)
{
    if (str_startswith(text, "connected"))
        log_info("%s", text);
    else
        log_warning("%s", text);
    sd_notifyf(0, "STATUS=%s", text);
}

static void on_greeted(void *ctx)
{
    struct agent *a = ctx;

    tell_alive(a);
    watch_repeat(a->watch); /* it may be another reknitd */
}

static void on_lost(void *ctx)
{
    struct agent *a = ctx;

    watch_repeat(a->watch);
}

static void tell_refusal(void *ctx, int64_t question, const char *why)
{
    struct agent *a = ctx;
    struct node_message m = {.kind = NODE_MESSAGE_READER, .time_us = now_us()};

    STR_COPY(m.node, a->settings.node);
    m.reader.question = question;
    STR_COPY(m.reader.trouble, why);
    uplink_tell(a->uplink, node_message_to_json(&m));
}

static bool read_id(const json_t *object, const char *key, uint32_t *ret)
{
    const json_t *j = json_object_get(object, key);

    if (!json_is_integer(j) || json_integer_value(j) < 0 || json_integer_value(j) >= UINT32_MAX)
        return false;
    *ret = (uint32_t)json_integer_value(j);
    return true;
}

/* Proven to be reknitd's. Even so a user's files are nothing to it before the user has a job here.
 */
static void on_asked(void *ctx, const json_t *j)
{
    struct agent *a = ctx;
    const json_t *reader = json_object_get(j, "reader");
    struct tunnel_question q = {.number = json_integer_value(json_object_get(j, "question")),
                                .gid = (gid_t)-1};
    struct greet_config greets;

    if (q.number <= 0 || !read_id(reader, "uid", &q.uid))
        return; /* some other question, of a reknitd that is newer than we are */
    read_id(reader, "gid", &q.gid);
    greets = uplink_greets(a->uplink);
    if (!watch_has_user(a->watch, q.uid))
        tell_refusal(a, q.number, "the user has no job there, nor had one lately");
    else
        tunnels_open(a->tunnels, &q, uplink_address(a->uplink), &greets, uplink_sealer(a->uplink));
}

static int on_beat(sd_event_source *s, uint64_t usec, void *userdata)
{
    struct agent *a = userdata;

    a->kernel_news = false;
    tell_alive(a);
    sd_event_source_set_time_relative(s, (uint64_t)a->settings.heartbeat);
    return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int open_uplink(struct agent *a)
{
    static const struct uplink_handlers handlers = {
        .said = on_said, .greeted = on_greeted, .lost = on_lost, .asked = on_asked};
    const struct settings *s = &a->settings;
    char found[PATH_MAX];
    const char *option = s->key ? "--key" : s->munge_socket ? "--munge-socket" : NULL;
    const char *argv[] = {found, option, s->key ? s->key : s->munge_socket, NULL};
    struct uplink_config c = {
        .host = s->host, .port = s->port, .node = s->node, .seal = argv, .asker = s->asker};

    if (sibling_find("reknit-seal", found, sizeof(found)) < 0)
        log_warning("%s is missing", found);
    a->uplink = uplink_new(a->event, &c, a->spool, &handlers, a);
    return a->uplink ? 0 : -ENOMEM;
}

/* Its locks are in the folder of the socket, which is root's alone. */
static int open_probing(struct agent *a)
{
    const struct settings *s = &a->settings;
    struct probing_config c = {.node = s->node,
                               .program = a->prober,
                               .locks = a->locks,
                               .state = a->looks,
                               .nvml = s->nvml,
                               .root = s->root,
                               .every = s->probe_every,
                               .deadline = s->probe_deadline};
    const char *slash = strrchr(s->socket, '/');

    if (s->probe_every == 0)
        return 0;
    if (sibling_find("reknit-probe", a->prober, sizeof(a->prober)) < 0)
        log_warning("%s is missing", a->prober);
    STR_PRINTF(a->locks, "%.*s", slash ? (int)(slash - s->socket) : 1, slash ? s->socket : ".");
    STR_PRINTF(a->looks, "%s.looks", s->spool);
    a->probing = probing_new(a->event, &c, on_lasting, a);
    return a->probing ? 0 : -ENOMEM;
}

static int open_kernel_log(struct agent *a, struct err *e)
{
    static const struct kernel_log_handlers handlers = {.fact = on_fact,
                                                        .trouble = on_kernel_trouble};
    char state[PATH_MAX];
    struct kernel_log_config c = {
        .device = a->settings.kmsg, .state = state, .node = a->settings.node};

    STR_PRINTF(state, "%s.kmsg", a->settings.spool);
    return *a->settings.kmsg ? kernel_log_new(a->event, &c, &handlers, a, &a->kernel, e) : 0;
}

static int open_all(struct agent *a, struct err *e)
{
    static const struct watch_handlers handlers = {
        .activity = on_worth_now, .logs = on_worth_now, .gone = on_lasting};
    struct tunnels_config tunnels = {
        .node = a->settings.node, .port = a->settings.port, .spawner = a->settings.spawner};
    char attempts[PATH_MAX];
    int r = spool_open(a->settings.spool, now_us(), &a->spool, e);

    if (r == 0)
        r = inlet_new(a->event, a->settings.socket, on_task, a, &a->inlet, e);
    if (r < 0)
        return r;
    STR_PRINTF(attempts, "%s.attempts", a->settings.spool);
    a->watch = watch_new(a->event, a->settings.node, attempts, a->settings.sample, &handlers, a);
    a->tunnels = tunnels_new(a->event, &tunnels, tell_refusal, a);
    if (!a->watch || !a->tunnels || open_uplink(a) < 0 || open_probing(a) < 0 ||
        sd_event_add_time_relative(a->event, &a->beat, CLOCK_MONOTONIC, 500 * USEC_PER_MSEC, 0,
                                   on_beat, a) < 0)
        return err_set(e, -ENOMEM, "the event loop refuses");
    return open_kernel_log(a, e);
}

static void close_all(struct agent *a)
{
    sd_event_source_disable_unref(a->beat);
    probing_free(a->probing);
    watch_free(a->watch);
    kernel_log_free(a->kernel); /* it tells to the spool */
    tunnels_free(a->tunnels);   /* what is being sealed for it is answered by the next */
    uplink_free(a->uplink);
    inlet_free(a->inlet);
    spool_free(a->spool);
    sd_event_unref(a->event);
}

static int block_ending_signals(sd_event *event)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL) < 0)
        return -ENOMEM;
    return sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

static int run(const struct settings *settings)
{
    struct agent a = {.settings = *settings};
    struct err e = {0};
    int r = sd_event_default(&a.event);

    if (r >= 0)
        r = block_ending_signals(a.event);
    if (r >= 0)
        r = open_all(&a, &e);
    if (r < 0) {
        log_error("%s", e.text[0] ? e.text : strerror(-r));
        close_all(&a);
        return 1;
    }
    watch_recover(a.watch);
    say_missed(&a);
    sd_event_set_watchdog(a.event, true);
    sd_notify(0, "READY=1");
    r = sd_event_loop(a.event);
    close_all(&a);
    return r < 0 ? 1 : 0;
}

/* "host:port", "[::1]:port" */
static bool split_address(const char *text, struct settings *s)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len > 2 && text[0] == '[' && colon[-1] == ']';

    if (!colon || len == 0 || !colon[1] || !STR_COPY(s->port, colon + 1))
        return false;
    return str_copy_n(s->host, sizeof(s->host), text + brackets, len - 2 * brackets);
}

static void default_node(struct settings *s)
{
    const char *name = getenv("SLURMD_NODENAME");

    if (name) {
        STR_COPY(s->node, name);
        return;
    }
    if (gethostname(s->node, sizeof(s->node) - 1) < 0)
        s->node[0] = '\0';
    s->node[strcspn(s->node, ".")] = '\0';
}

static bool take_duration(const char *text, usec_t *ret)
{
    return duration_parse(text, ret) == 0 && *ret >= 100 * USEC_PER_MSEC;
}

static bool take_option(int c, struct settings *s)
{
    switch (c) {
    case 't':
        return split_address(optarg, s);
    case 'n':
        return STR_COPY(s->node, optarg);
    case 's':
        s->socket = optarg;
        return true;
    case 'p':
        s->spool = optarg;
        return true;
    case 'y':
        s->kmsg = optarg;
        return true;
    case 'm':
        s->munge_socket = optarg;
        return true;
    case 'k':
        s->key = optarg;
        return true;
    case 'a':
        return take_duration(optarg, &s->sample);
    case 'b':
        return take_duration(optarg, &s->heartbeat);
    case 'e':
        return duration_parse(optarg, &s->probe_every) == 0 &&
               (s->probe_every == 0 || s->probe_every >= PROBING_EVERY_MIN);
    case 'i':
        return take_duration(optarg, &s->probe_deadline);
    case 'l':
        s->nvml = optarg;
        return true;
    case 'r':
        s->root = optarg;
        return true;
    case 'w':
        s->spawner = optarg;
        return true;
    case 'u':
        s->asker = optarg;
        return true;
    case 'd':
        log_set_level(LOG_LEVEL_INFO);
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    struct settings s = {
        .socket = "/run/reknit-agent/agent.sock",
        .spool = "/var/lib/reknit-agent/agent.spool",
        .kmsg = "/dev/kmsg",
        .spawner = "/run/reknit-spawner/spawner.sock",
        .asker = "reknit",
        .sample = 10 * USEC_PER_SEC,
        .heartbeat = 30 * USEC_PER_SEC,
        .probe_every = 60 * USEC_PER_SEC,
        .probe_deadline = LOOK_DEADLINE,
    };
    int c;

    log_init("reknit-agent");
    default_node(&s);
    if (argc > 1 && streq(argv[1], "check"))
        return check_main(argc - 1, argv + 1, s.node);
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h' || c == 'v') {
            fputs(c == 'h' ? help : "reknit-agent " REKNIT_VERSION "\n", stdout);
            return 0;
        }
        if (!take_option(c, &s)) {
            if (c != '?')
                log_error("--%s: not understood", optarg);
            return 2;
        }
    }
    if (!s.host[0] || !s.node[0] || optind < argc) {
        log_error("%s; see --help", s.host[0] ? "not understood" : "--to HOST:PORT is missing");
        return 2;
    }
    srandom(seed_of(s.node, now_us(), getpid()));
    return run(&s);
}
