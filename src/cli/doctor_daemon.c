/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd, by its API, and what it says of itself: GET /v1/health. */

#include "base/cleanup.h"
#include "cli/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PATIENCE   (5 * USEC_PER_SEC)
#define ANSWER_MAX (256 * 1024)

static int connect_to(const char *path, int *ret)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (!STR_COPY(a.sun_path, path))
        return -ENAMETOOLONG;
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return -errno;
    *ret = take_fd(&fd);
    return 0;
}

/* Until the other side closes, as HTTP/1.0 has it. */
static int read_all(int fd, struct strbuf *b)
{
    usec_t deadline = mono_us() + PATIENCE;
    char block[4096];

    while (b->len < ANSWER_MAX) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;

        if (mono_us() >= deadline || poll(&p, 1, poll_timeout(deadline)) == 0)
            return -ETIMEDOUT;
        n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (n > 0)
            strbuf_add(b, block, (size_t)n);
    }
    return -EFBIG;
}

/* ret_pid: who answers; 0 = that cannot be told. */
static int get(const char *socket_path, const char *what, pid_t *ret_pid, json_t **ret)
{
    _cleanup_strbuf_ struct strbuf b = {0};
    _cleanup_(closep) int fd = -1;
    struct ucred who = {0};
    socklen_t size = sizeof(who);
    char request[128];
    const char *body;
    int r = connect_to(socket_path, &fd);

    if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        *ret_pid = who.pid;
    STR_PRINTF(request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what);
    if (r == 0 && send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        r = -errno;
    r = r < 0 ? r : read_all(fd, &b);
    if (r < 0)
        return r;
    body = strstr(strbuf_str(&b), "\r\n\r\n");
    if (!body || !str_startswith(b.s, "HTTP/1.") || !strstr(b.s, " 200 "))
        return -EPROTO;
    *ret = json_loads(body + 4, 0, NULL);
    return *ret ? 0 : -EPROTO;
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));

    return s ? s : "";
}

static void look_at_self(struct doctor *d, const json_t *health)
{
    const char *version = text_of(health, "version"), *tilt = text_of(health, "tilt");

    if (!streq(version, REKNIT_VERSION))
        doctor_row(d, DOCTOR_FAIL, "reknitd", "systemctl restart reknitd",
                   "it runs, of release %s; this is " REKNIT_VERSION, version);
    else if (*tilt)
        doctor_row(d, DOCTOR_FAIL, "reknitd", "see its log: journalctl -u reknitd",
                   "it runs, but acts on nothing: %s", tilt);
    else if (json_is_true(json_object_get(health, "frozen")))
        doctor_row(d, DOCTOR_WARN, "reknitd", "reknit thaw", "it runs, and is frozen");
    else
        doctor_row(d, DOCTOR_OK, "reknitd", NULL, "it runs, in mode %s", text_of(health, "mode"));
}

static long long number_of(const json_t *j, const char *key)
{
    return (long long)json_integer_value(json_object_get(j, key));
}

static void look_at_its_journal(struct doctor *d, const json_t *health)
{
    long long lost = number_of(json_object_get(health, "journal"), "lost");

    if (lost > 0)
        doctor_row(
            d, DOCTOR_WARN, "its journal",
            "is its disk sound? See 'A damaged journal' in CLUSTER.md",
            "%lld entries were lost before it started: a file of it was damaged or removed, or "
            "the power was cut",
            lost);
}

static void look_at_its_readers(struct doctor *d, const json_t *health)
{
    const json_t *readers = json_object_get(health, "readers");

    if (number_of(readers, "hung") > 0)
        doctor_row(d, DOCTOR_WARN, "its readers", "are the users' file systems all there?",
                   "%lld hang", number_of(readers, "hung"));
    else if (number_of(readers, "unread") > 0)
        doctor_row(d, DOCTOR_WARN, "its readers",
                   "reknit-agent and reknit-spawner.socket on the nodes, or their file system here",
                   "the logs of %lld running jobs are not read; job %s: %s",
                   number_of(readers, "unread"), text_of(readers, "unread_job"),
                   text_of(readers, "unread_why"));
    else if (number_of(readers, "on_nodes") > 0)
        doctor_row(d, DOCTOR_OK, "its readers", NULL, "%lld run, %lld of them on nodes of the jobs",
                   number_of(readers, "running"), number_of(readers, "on_nodes"));
}

static void look_at_its_links(struct doctor *d, const json_t *health)
{
    const json_t *adapter = json_object_get(health, "adapter");

    if (!json_is_true(json_object_get(adapter, "ok")))
        doctor_row(d, DOCTOR_FAIL, "its adapter", "systemctl status reknitd reknit-spawner", "%s",
                   text_of(adapter, "state"));
    else
        doctor_row(d, DOCTOR_OK, "its adapter", NULL, "%s", text_of(adapter, "state"));
    look_at_its_journal(d, health);
    look_at_its_readers(d, health);
}

static void say_gone(struct doctor *d, const json_t *agents)
{
    _cleanup_strbuf_ struct strbuf names = {0};
    const json_t *gone = json_object_get(agents, "gone_nodes");
    long long n = number_of(agents, "gone");
    json_t *name;
    size_t i;

    json_array_foreach (gone, i, name) {
        strbuf_addf(&names, "%s%s", i > 0 ? " " : "", json_string_value(name));
    }
    if ((size_t)n > json_array_size(gone))
        strbuf_adds(&names, " ...");
    doctor_row(d, DOCTOR_WARN, "agents", "systemctl status reknit-agent there",
               "those of %lld nodes are connected, those of %lld no more: %s",
               number_of(agents, "connected"), n, strbuf_str(&names));
}

static void look_at_agents(struct doctor *d, const json_t *health)
{
    const json_t *agents = json_object_get(health, "agents");

    if (!*d->config->agents.listen)
        doctor_row(d, DOCTOR_SKIP, "agents", NULL,
                   "none are configured (agents.listen): nodes are known by logs and Slurm alone");
    else if (!json_is_object(agents))
        doctor_row(d, DOCTOR_SKIP, "agents", "run doctor as an operator",
                   "how many reknitd hears of is told to operators only");
    else if (!json_is_true(json_object_get(agents, "listening")))
        doctor_row(d, DOCTOR_WARN, "agents",
                   "see its log: journalctl -u reknitd; who has the port: ss -ltnp",
                   "reknitd does not listen for them (yet): %s", d->config->agents.listen);
    else if (number_of(agents, "gone") > 0)
        say_gone(d, agents);
    else if (number_of(agents, "connected") == 0)
        doctor_row(d, DOCTOR_WARN, "agents",
                   "systemctl status reknit-agent on a node; its --asker? a firewall?",
                   "reknitd hears of none");
    else
        doctor_row(d, DOCTOR_OK, "agents", NULL, "those of %lld nodes are connected",
                   number_of(agents, "connected"));
}

static void look_at_webhook(struct doctor *d, const json_t *health)
{
    const json_t *webhook = json_object_get(health, "webhook");
    const char *trouble = text_of(webhook, "trouble");

    if (!json_is_true(json_object_get(webhook, "configured")))
        return;
    if (*trouble)
        doctor_row(d, DOCTOR_WARN, "webhook", "is webhook.url right, and can this host reach it?",
                   "%s; %lld decisions wait to be told", trouble, number_of(webhook, "pending"));
    else
        doctor_row(d, DOCTOR_OK, "webhook", NULL, "%lld messages were taken",
                   number_of(webhook, "sent"));
}

static void look_at_its_holds(struct doctor *d, const json_t *health)
{
    const json_t *holds = json_object_get(health, "holds");

    if (number_of(holds, "unnoted") > 0)
        doctor_row(d, DOCTOR_WARN, "its holds",
                   "make room in AdminComment: nothing, or a JSON object, may stand there",
                   "%lld jobs are held without a note, which nobody frees while reknitd is gone; "
                   "job %s",
                   number_of(holds, "unnoted"), text_of(holds, "unnoted_job"));
}

/* Whether it works with what its files say now. */
static void look_at_its_config(struct doctor *d, const json_t *health)
{
    const char *file = text_of(health, "config_file"), *hash = text_of(health, "config_hash");
    char ours[20];

    if (!*hash)
        return; /* we may not know */
    STR_PRINTF(ours, "%016" PRIx64, daemon_config_hash(d->config));
    if (!streq(file, d->config_path))
        doctor_row(d, DOCTOR_WARN, "its config", "give doctor --config that file",
                   "it is that of %s, not of %s", file, d->config_path);
    else if (!streq(hash, ours))
        doctor_row(d, DOCTOR_WARN, "its config", "systemctl reload reknitd; restart, for state_dir",
                   "it is another one than %s and its drop-ins say now", file);
    else
        doctor_row(d, DOCTOR_OK, "its config", NULL, "it is what %s says now", file);
}

/* One that ends as soon as it sees the other leaves that one alone to be seen. */
static void look_for_others(struct doctor *d, pid_t self)
{
    const struct sole_holder *other = NULL;

    for (int i = 0; i < d->n_holders; i++)
        if (d->holders[i].pid != self)
            other = &d->holders[i];
    if (other)
        doctor_row(d, DOCTOR_FAIL, "one reknitd",
                   "keep one of them; 'systemctl status PID' and 'ps -fp PID' say what that one is",
                   "another one works for this cluster on this host: process %d of user %u",
                   (int)other->pid, (unsigned)other->uid);
    else if (d->n_holders > 0)
        doctor_row(d, DOCTOR_OK, "one reknitd", NULL,
                   "no other one works for this cluster on this host");
}

void doctor_daemon(struct doctor *d)
{
    const char *named = getenv("REKNIT_SOCKET"); /* as for all that ask reknitd */
    const char *path = named && *named ? named : d->config->api.socket;
    json_t *health = NULL;
    pid_t self = 0;
    int r = get(path, "/v1/health", &self, &health);

    if (r == -ENOENT || r == -ECONNREFUSED) {
        doctor_row(d, DOCTOR_FAIL, "reknitd", "systemctl start reknitd", "it does not run (%s)",
                   path);
    } else if (r < 0) {
        doctor_row(d, DOCTOR_FAIL, "reknitd", "see its log: journalctl -u reknitd", "%s: %s", path,
                   strerror(-r));
    } else {
        look_at_self(d, health);
        look_at_its_links(d, health);
        look_at_its_config(d, health);
        look_at_agents(d, health);
        look_at_its_holds(d, health);
        look_at_webhook(d, health);
    }
    look_for_others(d, self);
    json_decref(health);
}
