/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-seal: seals texts so that another host can tell who sent them, and opens such. Both are
 * calls that block (MUNGE's library for ten seconds when munged is down, a resolver for longer), so
 * the agent and reknitd each keep such a process and talk to it in lines of JSON.
 *
 *   {"id":1,"seal":"text"}         {"id":1,"sealed":"MUNGE:..."}
 *   ... ,"for":998                 ... that nobody but this uid can open, where MUNGE seals
 *   {"id":2,"open":"MUNGE:..."}    {"id":2,"text":"text","uid":0,"from":"10.0.0.7"}
 *   ... ,"names":true              ... ,"user":"root","groups":[0]: what this host knows of it
 *   {"id":3,"resolve":"n7"}        {"id":3,"addresses":["10.0.0.7"]}
 *   what cannot be done            {"id":4,"error":"why","bad":true}
 *
 * "bad" says that the credential itself is to blame, and will be however often it is opened. With
 * --key FILE the seal is an HMAC of the text and the time by the key in that file instead: then all
 * who have the key are uid 0, and no address is vouched for. Either kind is good for five minutes,
 * and MUNGE's only once on a host. */

#include "seal/key.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <grp.h>
#include <jansson.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#ifdef HAVE_MUNGE
#include <munge.h>
#endif

static const char help[] =
    "usage: reknit-seal [--munge-socket PATH | --key FILE]\n"
    "\n"
    "Seals and opens messages between nodes, as reknit-agent and reknitd ask it to on standard\n"
    "input. There is no use in starting it by hand.\n"
    "\n"
    "options:\n"
    "  --munge-socket PATH   munged's, where it is not the usual one\n"
    "  --key FILE            use a shared key instead of MUNGE; nobody but its owner may read it\n"
    "  --version             names the release\n"
    "  --help                this text\n";

static const struct option options[] = {
    {"munge-socket", required_argument, NULL, 'm'},
    {"key", required_argument, NULL, 'k'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL},
};

#define ADDRESSES_MAX 16
#define GROUPS_MAX    1024
#define TEXT_MAX      8192 /* bytes of what was sealed: twice that of any message of ours */

struct sealer_state {
    struct key *key; /* NULL = MUNGE */
    const char *munge_socket;
};

static json_t *complain(const char *why, bool bad)
{
    return json_pack("{s:s, s:b}", "error", why, "bad", bad);
}

#ifdef HAVE_MUNGE
static munge_ctx_t munge_context(const struct sealer_state *s)
{
    munge_ctx_t ctx = munge_ctx_create();

    if (ctx && s->munge_socket)
        munge_ctx_set(ctx, MUNGE_OPT_SOCKET, s->munge_socket);
    return ctx;
}

/* reader: the only uid that may open it; -1 = any. */
static json_t *seal_munge(const struct sealer_state *s, const char *text, json_int_t reader)
{
    munge_ctx_t ctx = munge_context(s);
    _cleanup_(freep) char *cred = NULL;
    munge_err_t r = EMUNGE_SUCCESS;
    json_t *j;

    if (reader >= 0)
        r = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)reader);
    if (r == EMUNGE_SUCCESS)
        r = munge_encode(&cred, ctx, text, (int)strlen(text));
    j = r == EMUNGE_SUCCESS ? json_pack("{s:s}", "sealed", cred)
                            : complain(munge_strerror(r), false);
    munge_ctx_destroy(ctx);
    return j;
}

static json_t *opened_munge(munge_ctx_t ctx, const char *text, int len, uid_t uid)
{
    struct in_addr from = {0};
    char address[INET_ADDRSTRLEN];
    json_t *j = json_pack("{s:s%, s:I}", "text", text, (size_t)len, "uid", (json_int_t)uid);

    munge_ctx_get(ctx, MUNGE_OPT_ADDR4, &from);
    if (j && inet_ntop(AF_INET, &from, address, sizeof(address)))
        json_object_set_new(j, "from", json_string(address));
    return j ? j : complain("what was sealed is no text", true);
}

static json_t *open_munge(const struct sealer_state *s, const char *cred)
{
    munge_ctx_t ctx = munge_context(s);
    _cleanup_(freep) char *text = NULL;
    int len = 0;
    uid_t uid;
    gid_t gid;
    munge_err_t r = munge_decode(cred, ctx, (void **)&text, &len, &uid, &gid);
    json_t *j = r == EMUNGE_SUCCESS && len > TEXT_MAX
                    ? complain("what was sealed is too long", true)
                : r == EMUNGE_SUCCESS
                    ? opened_munge(ctx, text ? text : "", len, uid)
                    : complain(munge_strerror(r), r != EMUNGE_SOCKET && r != EMUNGE_TIMEOUT &&
                                                      r != EMUNGE_SNAFU && r != EMUNGE_NO_MEMORY);

    munge_ctx_destroy(ctx);
    return j;
}
#else
static json_t *seal_munge(const struct sealer_state *s, const char *text, json_int_t reader)
{
    return complain("this reknit was built without MUNGE", false);
}

static json_t *open_munge(const struct sealer_state *s, const char *cred)
{
    return complain("this reknit was built without MUNGE", false);
}
#endif

static json_t *seal(const struct sealer_state *s, const json_t *request, const char *text)
{
    const json_t *reader = json_object_get(request, "for");
    _cleanup_(freep) char *sealed = NULL;

    if (!s->key)
        return seal_munge(s, text, json_is_integer(reader) ? json_integer_value(reader) : -1);
    sealed = key_seal(s->key, text, now_us());
    return json_pack("{s:s}", "sealed", sealed);
}

static json_t *open_sealed(const struct sealer_state *s, const char *sealed)
{
    const char *text;
    struct err e = {0};

    if (!s->key)
        return open_munge(s, sealed);
    if (key_open(s->key, sealed, now_us(), &text, &e) < 0)
        return complain(e.text, true);
    return json_pack("{s:s, s:i}", "text", text, "uid", 0);
}

/* May hang, as a directory service may. */
static void add_names(json_t *j)
{
    const json_t *uid = json_object_get(j, "uid");
    const struct passwd *p = uid ? getpwuid((uid_t)json_integer_value(uid)) : NULL;
    gid_t groups[GROUPS_MAX];
    int n = GROUPS_MAX;
    json_t *list;

    if (!p)
        return;
    list = json_array();
    if (getgrouplist(p->pw_name, p->pw_gid, groups, &n) < 0)
        n = 0;
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(groups[i]));
    json_object_set_new(j, "groups", list);
    json_object_set_new(j, "user", json_string(p->pw_name));
}

static json_t *open_named(const struct sealer_state *s, const json_t *request, const char *sealed)
{
    json_t *j = open_sealed(s, sealed);

    if (json_is_true(json_object_get(request, "names")))
        add_names(j);
    return j;
}

static json_t *resolve(const char *name)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int r = getaddrinfo(name, NULL, &hints, &found);
    json_t *list;

    if (r != 0)
        return complain(gai_strerror(r), false);
    list = json_array();
    for (struct addrinfo *a = found; a && json_array_size(list) < ADDRESSES_MAX; a = a->ai_next) {
        char text[NI_MAXHOST];

        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) ==
            0)
            json_array_append_new(list, json_string(text));
    }
    freeaddrinfo(found);
    return json_pack("{s:o}", "addresses", list);
}

static json_t *answer(const struct sealer_state *s, const json_t *request)
{
    const char *text;

    if ((text = json_string_value(json_object_get(request, "seal"))))
        return seal(s, request, text);
    if ((text = json_string_value(json_object_get(request, "open"))))
        return open_named(s, request, text);
    if ((text = json_string_value(json_object_get(request, "resolve"))))
        return resolve(text);
    return complain("a request that is not known", false);
}

/* Until the end of standard input. */
static void serve(const struct sealer_state *s)
{
    _cleanup_(freep) char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, stdin)) > 0) {
        json_t *request = json_loadb(line, (size_t)n, 0, NULL), *j = answer(s, request);

        json_object_set(j, "id", json_object_get(request, "id"));
        if (json_dumpf(j, stdout, JSON_COMPACT) < 0 || fputc('\n', stdout) == EOF ||
            fflush(stdout) == EOF)
            return;
        json_decref(request);
        json_decref(j);
    }
}

int main(int argc, char **argv)
{
    struct sealer_state s = {0};
    const char *key_file = NULL;
    struct err e = {0};
    int c;

    log_init("reknit-seal");
    prctl(PR_SET_DUMPABLE, 0); /* it may hold a key */
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h' || c == 'v') {
            fputs(c == 'h' ? help : "reknit-seal " REKNIT_VERSION "\n", stdout);
            return 0;
        }
        if (c == 'm')
            s.munge_socket = optarg;
        else if (c == 'k')
            key_file = optarg;
        else
            return 2;
    }
    if (key_file && key_load(key_file, &s.key, &e) < 0) {
        log_error("%s", e.text);
        return 1;
    }
    serve(&s);
    key_free(s.key);
    return 0;
}
