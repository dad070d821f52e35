/* SPDX-License-Identifier: Apache-2.0 */

/* Names are looked up when the configuration is read, never while somebody waits for an answer: a
 * directory service that hangs must not hang the loop. Groups of a local asker come with his socket
 * (SO_PEERGROUPS). */

#include "api/identity.h"

#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define TOKENS_MAX       1024
#define TOKEN_LEN_MIN    20
#define TOKEN_LEN_MAX    256
#define GROUPS_MAX       1024
#define BEARER           "Bearer "
#define MUNGE            "MUNGE "
#define CREDENTIAL_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=:"

struct token {
    char text[TOKEN_LEN_MAX];
    struct asker who;
    bool in_group; /* of the operators */
};

struct identity {
    gid_t operators; /* (gid_t)-1 = no group */
    uid_t admin;     /* (uid_t)-1 = none */
    bool munge;      /* credentials are taken */
    VEC(struct token) tokens;
};

static void name_of_uid(uid_t uid, char *ret, size_t size)
{
    _cleanup_(fclosep) FILE *f = fopen("/etc/passwd", "re");
    const struct passwd *p;

    while (f && (p = fgetpwent(f)))
        if (p->pw_uid == uid) {
            str_sanitize(ret, size, p->pw_name, strlen(p->pw_name));
            return;
        }
    str_printf(ret, size, "uid %u", (unsigned)uid);
}

static bool is_operator_uid(const struct identity *i, uid_t uid)
{
    return uid == 0 || uid == i->admin || uid == getuid();
}

/* Tokens */

static bool has_group(const struct passwd *p, gid_t group)
{
    gid_t groups[GROUPS_MAX];
    int n = GROUPS_MAX;

    if (group == (gid_t)-1 || getgrouplist(p->pw_name, p->pw_gid, groups, &n) < 0)
        return false;
    for (int k = 0; k < n; k++)
        if (groups[k] == group)
            return true;
    return false;
}

/* A line "@NAME TOKEN" is a program's that tells of nodes; it is no user. */
static int add_token(struct identity *i, const char *user, const char *text, struct err *e)
{
    bool monitor = user[0] == '@';
    const struct passwd *p = monitor ? NULL : getpwnam(user);
    struct token *t;

    if (strlen(text) < TOKEN_LEN_MIN)
        return err_set(e, -EINVAL, "the token of '%s' is too short: at least %d characters", user,
                       TOKEN_LEN_MIN);
    if (!p && !monitor)
        return err_set(e, -EINVAL, "there is no user '%s'", user);
    if (i->tokens.n == TOKENS_MAX)
        return err_set(e, -E2BIG, "too many tokens: at most %d", TOKENS_MAX);
    t = VEC_PUSH(&i->tokens);
    if (!STR_COPY(t->text, text))
        return err_set(e, -EINVAL, "the token of '%s' is too long", user);
    t->who = (struct asker){
        .known = true, .is_monitor = monitor, .uid = monitor ? (uid_t)-1 : p->pw_uid};
    t->in_group = !monitor && has_group(p, i->operators);
    STR_COPY(t->who.name, user);
    return 0;
}

static int read_token_line(struct identity *i, char *line, struct err *e)
{
    char *user = line + strspn(line, " \t"), *text, *end;

    user[strcspn(user, "\r\n")] = '\0';
    if (user[0] == '\0' || user[0] == '#')
        return 0;
    text = user + strcspn(user, " \t");
    if (*text == '\0')
        return err_set(e, -EINVAL, "a line is no 'USER TOKEN'");
    *text++ = '\0';
    text += strspn(text, " \t");
    end = text + strcspn(text, " \t");
    if (end[strspn(end, " \t")] != '\0')
        return err_set(e, -EINVAL, "a line is no 'USER TOKEN'");
    *end = '\0';
    return add_token(i, user, text, e);
}

static int read_tokens(struct identity *i, const char *path, struct err *e)
{
    _cleanup_(closep) int fd = file_open(path, e);
    _cleanup_(fclosep) FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    _cleanup_(freep) char *line = NULL;
    struct stat st;
    size_t size = 0;
    int r = 0;

    if (fd < 0)
        return fd;
    if (!f || fstat(take_fd(&fd), &st) < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        return err_set(e, -EPERM, "%s: must be a file that only its owner can read (chmod 600)",
                       path);
    while (r >= 0 && getline(&line, &size, f) >= 0)
        r = read_token_line(i, line, e);
    if (line)
        explicit_bzero(line, size);
    return r < 0 ? err_prefix(e, r, "%s", path) : 0;
}

/* Who is who */

static int find_names(struct identity *i, const struct api_config *c, struct err *e)
{
    if (c->operators && c->operators[0]) {
        const struct group *g = getgrnam(c->operators);

        if (!g)
            return err_set(e, -EINVAL, "operators: there is no group '%s'", c->operators);
        i->operators = g->gr_gid;
    }
    return 0;
}

int identity_new(const struct api_config *c, struct identity **ret, struct err *e)
{
    _cleanup_(identity_freep) struct identity *i = xnew(struct identity);
    int r;

    i->operators = (gid_t)-1;
    i->admin = (uid_t)-1;
    i->munge = c->munge;
    r = find_names(i, c, e);
    if (r >= 0 && c->token_file && c->token_file[0])
        r = read_tokens(i, c->token_file, e);
    if (r < 0)
        return r;
    *ret = TAKE(i);
    return 0;
}

struct identity *identity_free(struct identity *i)
{
    if (!i)
        return NULL;
    if (i->tokens.n > 0)
        explicit_bzero(i->tokens.v, i->tokens.n * sizeof(i->tokens.v[0]));
    VEC_DONE(&i->tokens);
    free(i);
    return NULL;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    if (a->operators != b->operators || a->munge != b->munge || a->admin != b->admin ||
        a->tokens.n != b->tokens.n)
        return false;
    for (size_t k = 0; k < a->tokens.n; k++) {
        const struct token *x = &a->tokens.v[k], *y = &b->tokens.v[k];

        if (!streq(x->text, y->text) || x->who.uid != y->who.uid || x->in_group != y->in_group)
            return false;
    }
    return true;
}

bool identity_replace(struct identity *i, struct identity *fresh)
{
    struct identity old = *i;
    bool same;

    fresh->admin = i->admin;
    same = is_same(i, fresh);
    *i = *fresh;
    *fresh = old;
    identity_free(fresh);
    return !same;
}

bool identity_set_admin(struct identity *i, uid_t admin)
{
    bool new = i->admin != admin;

    i->admin = admin;
    return new;
}

static bool peer_is_in(int fd, gid_t primary, gid_t group)
{
    gid_t groups[GROUPS_MAX];
    socklen_t len = sizeof(groups);

    if (group == (gid_t)-1)
        return false;
    if (primary == group)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
        return false;
    for (size_t k = 0; k < len / sizeof(gid_t); k++)
        if (groups[k] == group)
            return true;
    return false;
}

void identity_of_socket(const struct identity *i, int fd, struct asker *ret)
{
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    *ret = (struct asker){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid == (uid_t)-1)
        return;
    ret->known = true;
    ret->uid = cred.uid;
    ret->is_operator = is_operator_uid(i, cred.uid) || peer_is_in(fd, cred.gid, i->operators);
    name_of_uid(cred.uid, ret->name, sizeof(ret->name));
}

/* Takes as long whichever byte differs. */
static bool same_token(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char differ = n != m;

    for (size_t k = 0; k < m; k++)
        differ |= (unsigned char)(a[n > 0 ? k % n : 0] ^ b[k]);
    return differ == 0;
}

/* Credentials */

const char *identity_credential(const struct identity *i, const char *header)
{
    if (!i->munge || !header || !str_startswith(header, MUNGE))
        return NULL;
    return strspn(header + strlen(MUNGE), CREDENTIAL_CHARS) == strlen(header + strlen(MUNGE))
               ? header + strlen(MUNGE)
               : NULL;
}

static bool is_listed(const json_t *groups, gid_t group)
{
    json_t *v;
    size_t k;

    json_array_foreach (groups, k, v) {
        if (group != (gid_t)-1 && json_integer_value(v) == (json_int_t)group)
            return true;
    }
    return false;
}

void identity_of_credential(const struct identity *i, const json_t *opened, const char *claim,
                            struct asker *ret)
{
    const char *text = json_string_value(json_object_get(opened, "text"));
    const char *user = json_string_value(json_object_get(opened, "user"));
    const json_t *uid = json_object_get(opened, "uid");

    *ret = (struct asker){0};
    if (!text || !json_is_integer(uid)) {
        ret->why = "the credential cannot be opened: it is none, expired, or was used before";
        return;
    }
    if (!streq(text, claim)) {
        ret->why = "the credential is not for this request: it must be made of the method, the "
                   "path with its query, and the SHA-256 of the body (an older reknit leaves some "
                   "of that out)";
        return;
    }
    ret->known = true;
    ret->uid = (uid_t)json_integer_value(uid);
    ret->is_operator =
        is_operator_uid(i, ret->uid) || is_listed(json_object_get(opened, "groups"), i->operators);
    if (user)
        str_sanitize(ret->name, sizeof(ret->name), user, strlen(user));
    else
        STR_PRINTF(ret->name, "uid %u", (unsigned)ret->uid);
}

static void take_token(const struct identity *i, const struct token *t, struct asker *ret)
{
    *ret = t->who;
    ret->is_operator = t->in_group || (!t->who.is_monitor && is_operator_uid(i, t->who.uid));
}

void identity_of_header(const struct identity *i, const char *header, struct asker *ret)
{
    *ret = (struct asker){0};
    if (!header || !str_startswith(header, BEARER))
        return;
    VEC_FOREACH (&i->tokens, t)
        if (same_token(t->text, header + strlen(BEARER)))
            take_token(i, t, ret);
}
