/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "wire/request_claim.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_MUNGE
#include <munge.h>
#endif

#define ANSWER_MAX   ((size_t)64 << 20)
#define PATIENCE_S   30L
#define LINE_MAX_LEN ((size_t)1 << 20) /* of a stream */

struct transfer {
    struct strbuf text;
    bool too_much;
    /* Of a stream: */
    bool (*fn)(void *ctx, const char *data);
    void *ctx;
    bool enough;
};

static const char *socket_path(void)
{
    const char *s = getenv("REKNIT_SOCKET");

    return s && s[0] ? s : CLIENT_SOCKET;
}

/* Another host's daemon: "http://controller:6820"; "" = the one on this host. */
static const char *server(void)
{
    const char *s = getenv("REKNIT_SERVER");

    return s ? s : "";
}

static const char *where(void)
{
    return *server() ? server() : socket_path();
}

bool client_has_socket(void)
{
    const char *named = getenv("REKNIT_SOCKET");

    return *server() || (named && *named) || access(socket_path(), F_OK) == 0;
}

void client_escape(const char *text, char *ret, size_t size)
{
    size_t n = 0;

    ret[0] = '\0';
    for (; *text && n + 4 < size; text++)
        if (isalnum((unsigned char)*text) || strchr("._-+@", *text))
            n += (size_t)snprintf(ret + n, size - n, "%c", *text);
        else
            n += (size_t)snprintf(ret + n, size - n, "%%%02X", (unsigned)(unsigned char)*text);
}

static size_t take(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;

    if (t->text.len + n > ANSWER_MAX) {
        t->too_much = true;
        return 0;
    }
    strbuf_add(&t->text, data, n);
    return n;
}

/* Lines of a stream; only those that begin with "data: " matter. */
static size_t take_stream(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    char *line, *end;
    size_t used = 0;

    strbuf_add(&t->text, data, n);
    line = t->text.s;
    while ((end = memchr(line, '\n', t->text.len - used))) {
        *end = '\0';
        if (str_startswith(line, "data: ") && !t->fn(t->ctx, line + strlen("data: "))) {
            t->enough = true;
            return 0;
        }
        used += (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(t->text.s, line, t->text.len - used);
    t->text.len -= used;
    t->text.s[t->text.len] = '\0';
    t->too_much = t->text.len > LINE_MAX_LEN;
    return t->too_much ? 0 : n;
}

static int no_answer(CURLcode code, struct err *e)
{
    if (*server() && code != CURLE_OPERATION_TIMEDOUT)
        return err_set(e, code == CURLE_COULDNT_CONNECT ? -ECONNREFUSED : -EIO,
                       "no reknitd answers at %s (%s), which REKNIT_SERVER names", server(),
                       curl_easy_strerror(code));
    if (code == CURLE_COULDNT_CONNECT)
        return err_set(e, -ECONNREFUSED,
                       "no reknitd answers at %s (%s). Does it run (systemctl status reknitd)? "
                       "REKNIT_SOCKET names another socket",
                       socket_path(),
                       access(socket_path(), F_OK) == 0
                           ? "nobody listens there, or you may not connect"
                           : "there is no such socket");
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, -ETIMEDOUT, "reknitd at %s did not answer in time", where());
    return err_set(e, -EIO, "reknitd at %s: %s", where(), curl_easy_strerror(code));
}

static int status_errno(long status)
{
    switch (status) {
    case 404:
        return -ENOENT;
    case 401:
    case 403:
        return -EACCES;
    case 409:
        return -EBUSY;
    default:
        return -EIO;
    }
}

static int read_answer(const struct transfer *t, long status, json_t **ret, struct err *e)
{
    json_t *j = json_loadb(strbuf_str(&t->text), t->text.len, 0, NULL);
    const char *why = json_string_value(json_object_get(j, "error"));
    int r = 0;

    if (status != 200 && (!why || status >= 500))
        r = err_set(e, status_errno(status), "%s answers with HTTP status %ld: %s", where(), status,
                    why ? why : "it says not why");
    else if (status != 200)
        r = err_set(e, status_errno(status), "%s", why);
    else if (!json_is_object(j))
        r = err_set(e, -EBADMSG, "reknitd's answer is no JSON object; is it another release?");
    if (r < 0)
        json_decref(j);
    else
        *ret = j;
    return r;
}

#define TOKEN_MAX 4096

/* The first word of the file; "" = none. */
static void read_token(char ret[TOKEN_MAX])
{
    const char *path = getenv("REKNIT_TOKEN_FILE");
    _cleanup_(closep) int fd = path && *path ? file_open(path, NULL) : -1;
    ssize_t n = fd >= 0 ? read(fd, ret, TOKEN_MAX - 1) : 0;

    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, " \t\r\n")] = '\0';
}

/* For this one request. NULL: MUNGE does not work here. */
static char *make_credential(const char *method, const char *path, const char *body)
{
#ifdef HAVE_MUNGE
    const char *munged = getenv("REKNIT_MUNGE_SOCKET");
    munge_ctx_t ctx = munge_ctx_create();
    _cleanup_(freep) char *text = request_claim(method, path, body, body ? strlen(body) : 0);
    char *credential = NULL;

    if (munged && *munged)
        munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munged);
    munge_encode(&credential, ctx, text, (int)strlen(text));
    munge_ctx_destroy(ctx);
    return credential;
#else
    return NULL;
#endif
}

/* Who we are, for a daemon that no kernel tells. */
static struct curl_slist *add_proof(const char *method, const char *path, const char *body,
                                    struct curl_slist *headers)
{
    _cleanup_(freep) char *credential = NULL, *line = NULL;
    char token[TOKEN_MAX];

    if (!*server())
        return headers;
    read_token(token);
    if (!*token)
        credential = make_credential(method, path, body);
    if (!*token && !credential)
        log_warning("MUNGE does not work here, and REKNIT_TOKEN_FILE names no token");
    if (*token || credential)
        line = xasprintf("Authorization: %s %s", *token ? "Bearer" : "MUNGE",
                         *token ? token : credential);
    return line ? curl_slist_append(headers, line) : headers;
}

/* body NULL: GET */
static CURL *prepare(const char *path, const char *body, struct transfer *t,
                     struct curl_slist **headers)
{
    _cleanup_(freep) char *url = xasprintf("%s%s", *server() ? server() : "http://reknitd", path);
    const char *ca = getenv("REKNIT_CA_CERT");
    CURL *c = curl_easy_init();

    if (!c)
        return NULL;
    *headers = add_proof(body ? "POST" : "GET", path, body, *headers);
    if (!*server())
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, socket_path());
    if (ca && *ca)
        curl_easy_setopt(c, CURLOPT_CAINFO, ca);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* as the credential says */
    curl_easy_setopt(c, CURLOPT_PROXY, "");      /* whatever the environment says */
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, *headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, t->fn ? take_stream : take);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    return c;
}

static int ask(const char *path, const char *body, json_t **ret, struct err *e)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    struct transfer t = {0};
    CURL *c = prepare(path, body, &t, &headers);
    CURLcode code = c ? CURLE_OK : CURLE_FAILED_INIT;
    long status = 0;
    int r;

    if (c) {
        curl_easy_setopt(c, CURLOPT_TIMEOUT, PATIENCE_S);
        if (body)
            curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
        code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    }
    if (code == CURLE_OK || status >= 400) /* what refuses need not hear the question out */
        r = read_answer(&t, status, ret, e);
    else
        r = no_answer(code, e);
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    strbuf_done(&t.text);
    return r;
}

int client_get(const char *path, json_t **ret, struct err *e)
{
    return ask(path, NULL, ret, e);
}

int client_post(const char *path, json_t *body, json_t **ret, struct err *e)
{
    _cleanup_(freep) char *text = json_dumps(body, JSON_COMPACT);
    int r = ask(path, text ? text : "{}", ret, e);

    json_decref(body);
    return r;
}

int client_follow(const char *path, bool (*fn)(void *ctx, const char *data), void *ctx,
                  struct err *e)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: text/event-stream");
    struct transfer t = {.fn = fn, .ctx = ctx};
    CURL *c = prepare(path, NULL, &t, &headers);
    CURLcode code = c ? CURLE_OK : CURLE_FAILED_INIT;
    long status = 0;
    int r;

    if (c) {
        code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    }
    if (t.enough || (code == CURLE_OK && status == 200))
        r = 0;
    else if (status != 0 && status != 200)
        r = read_answer(&t, status, NULL, e);
    else
        r = no_answer(code, e);
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    strbuf_done(&t.text);
    return r;
}
