/* SPDX-License-Identifier: Apache-2.0 */

/* A claim is an abstract Unix socket: the kernel takes it away with its process, however that ends,
 * no folder must be there for it, and no user's files are in its way. Whoever claims listens first
 * and then looks who else does: of two that begin at the same time at least one sees the other.
 *
 * Anybody may make such a socket, so its name alone says nothing. Only the claims of those count
 * who could act for the cluster (root, SlurmUser, whom the spawner serves, we ourselves), as the
 * kernel says it of who listens. And each claim has a name of its own, which nobody can take before
 * it: the others are found where the kernel lists all sockets.
 *
 * The kernel says it to who has connected. A stranger may keep a queue full, his own or that of
 * another, so all are tried in turn for a moment; a claimant takes its connections all the time. */

#include "source/sole.h"

#include "base/acceptor.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define KIND      "reknitd/"
#define NAME_LEN  sizeof(KIND "0123456789abcdef/0123456789abcdef")
#define SOCKETS   "/proc/self/net/unix"
#define LISTENING "00010000" /* __SO_ACCEPTCON, among the flags there */
#define SPAWNER   "/run/reknit-spawner/spawner.sock"
#define BACKLOG   128
#define PATIENCE  (2 * USEC_PER_SEC)
#define PAUSE_MS  1

struct sole {
    char prefix[NAME_LEN]; /* of all claims of this cluster */
    char name[NAME_LEN];
    int fd;
    struct acceptor *acceptor;
};

/* Who could act for the cluster. */
struct kin {
    uid_t uids[4];
    unsigned n;
};

struct name {
    char text[NAME_LEN];
};

struct names {
    VEC(struct name) all;
};

static const char *text_of(const json_t *config, const char *key)
{
    const char *s = json_string_value(json_object_get(config, key));

    return s ? s : "";
}

/* False: the cluster has no name. */
static bool prefix_of(const json_t *config, char ret[NAME_LEN])
{
    const char *cluster = text_of(config, "cluster"), *controller = text_of(config, "controller");
    uint64_t h = hash_bytes(HASH_INIT, cluster, strlen(cluster) + 1);

    str_printf(ret, NAME_LEN, KIND "%016" PRIx64 "/",
               hash_bytes(h, controller, strlen(controller)));
    return *cluster;
}

static void kin_of(const json_t *config, struct kin *ret)
{
    const json_t *scheduler = json_object_get(config, "scheduler_uid");
    struct stat st;

    *ret = (struct kin){.uids = {0, geteuid()}, .n = 2};
    if (json_is_integer(scheduler))
        ret->uids[ret->n++] = (uid_t)json_integer_value(scheduler);
    if (lstat(SPAWNER, &st) == 0)
        ret->uids[ret->n++] = st.st_uid;
}

static bool is_kin(const struct kin *k, uid_t uid)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->uids[i] == uid)
            return true;
    return false;
}

/* Its length is that of the text: in an abstract name, a zero counts. */
static socklen_t address_of(const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    str_copy(ret->sun_path + 1, sizeof(ret->sun_path) - 1, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

/* Names of sockets that listen; as many as there are, for the kernel keeps each of them. What a
 * line pretends is found out when it is connected to. */
static int list_names(const char *prefix, const char *own, struct names *ret)
{
    FILE *f = fopen(SOCKETS, "re");
    char *line = NULL, flags[16];
    size_t size = 0;

    if (!f)
        return -errno;
    while (getline(&line, &size, f) > 0) {
        int at = 0;

        if (sscanf(line, "%*s %*s %*s %15s %*s %*s %*s @%n", flags, &at) != 1 || at == 0 ||
            !streq(flags, LISTENING) || !str_startswith(line + at, prefix))
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (strlen(line + at) < NAME_LEN && !streq(line + at, own))
            STR_COPY(VEC_PUSH(&ret->all)->text, line + at);
    }
    free(line);
    fclose(f);
    return 0;
}

/* 0, -EAGAIN: not now; otherwise there is nobody. */
static int ask_who(const char *name, struct sole_holder *ret)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a;
    socklen_t len = address_of(name, &a);
    struct ucred cred;
    socklen_t size = sizeof(cred);

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, len) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return -errno;
    *ret = (struct sole_holder){.pid = cred.pid, .uid = cred.uid};
    return 0;
}

/* Those whose queue is full stay in the list. */
static unsigned ask_all(struct names *names, const struct kin *kin, struct sole_holder *ret,
                        unsigned max)
{
    unsigned found = 0;
    size_t left = 0;

    VEC_FOREACH (&names->all, name) {
        struct sole_holder who;
        int r = ask_who(name->text, &who);

        if (r == -EAGAIN)
            names->all.v[left++] = *name;
        else if (r == 0 && is_kin(kin, who.uid) && found < max)
            ret[found++] = who;
    }
    names->all.n = left;
    return found;
}

static int find(const json_t *config, const char *prefix, const char *own, struct sole_holder *ret,
                unsigned max, struct err *e)
{
    usec_t deadline = mono_us() + PATIENCE;
    struct names names = {0};
    unsigned found = 0;
    struct kin kin;
    int r = list_names(prefix, own, &names);

    kin_of(config, &kin);
    while (r == 0 && names.all.n > 0 && found < max) {
        found += ask_all(&names, &kin, ret + found, max - found);
        if (mono_us() >= deadline)
            break;
        if (names.all.n > 0)
            poll(NULL, 0, PAUSE_MS);
    }
    VEC_DONE(&names.all);
    return r < 0 ? err_set(e, r, SOCKETS ": %s: whether another reknitd runs cannot be seen",
                           strerror(-r))
                 : (int)found;
}

/* They come to see who is here, and have seen it. */
static void on_connection(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    close(fd);
}

static int listen_at(struct sole *s, sd_event *event)
{
    struct sockaddr_un a;
    uint64_t own;

    if (getrandom(&own, sizeof(own), 0) != sizeof(own))
        return -EIO;
    STR_PRINTF(s->name, "%s%016" PRIx64, s->prefix, own);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&a, address_of(s->name, &a)) < 0 ||
        listen(s->fd, BACKLOG) < 0)
        return -errno;
    return acceptor_new(event, s->fd, on_connection, s, &s->acceptor);
}

static int refuse(const json_t *config, const struct sole_holder *who, struct err *e)
{
    return err_set(e, -EBUSY,
                   "another reknitd, process %d of user %u, works for the cluster '%s' on this "
                   "host: two would act twice on each job. Keep one of them: 'ps -fp %d' and "
                   "'systemctl status %d' say what that one is",
                   (int)who->pid, (unsigned)who->uid, text_of(config, "cluster"), (int)who->pid,
                   (int)who->pid);
}

int sole_claim(sd_event *event, const json_t *config, struct sole **ret, struct err *e)
{
    _cleanup_(sole_freep) struct sole *s = xnew(struct sole);
    struct sole_holder other;
    int r;

    s->fd = -1;
    if (!prefix_of(config, s->prefix)) {
        *ret = NULL;
        return 0;
    }
    r = listen_at(s, event);
    if (r < 0)
        return err_set(e, r, "the cluster '%s' cannot be claimed: %s", text_of(config, "cluster"),
                       strerror(-r));
    r = find(config, s->prefix, s->name, &other, 1, e);
    if (r < 0)
        return r;
    if (r > 0)
        return refuse(config, &other, e);
    *ret = TAKE(s);
    return 0;
}

struct sole *sole_free(struct sole *s)
{
    if (!s)
        return NULL;
    acceptor_free(s->acceptor);
    closep(&s->fd);
    free(s);
    return NULL;
}

bool sole_is_of(const struct sole *s, const json_t *config)
{
    char prefix[NAME_LEN];

    return prefix_of(config, prefix) ? s && streq(prefix, s->prefix) : !s;
}

int sole_holders(const json_t *config, struct sole_holder *ret, unsigned max, struct err *e)
{
    char prefix[NAME_LEN];

    return prefix_of(config, prefix) ? find(config, prefix, "", ret, max, e) : 0;
}
