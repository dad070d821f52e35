/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-post: sends JSON to a URL, for reknitd, which asks in lines of JSON on standard input:
 *
 *   {"url":"https://...","token_file":"/...","ca_cert":"/...","key":"alpha-17","body":{...}}
 *   {"status":200}                         what the server said
 *   {"status":429,"retry_after":30}        ... and when it wants to be asked again, in seconds
 *   {"error":"Couldn't connect to server"} it said nothing; whether it took the message is not
 * known
 *
 * It is a program of its own so that names are resolved, certificates verified and answers of
 * strangers read outside of reknitd, and whatever hangs is killed. Neither the URL nor the token is
 * ever in an argument, an answer or a message: both are secrets. */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CONNECT_SECONDS   10L
#define TOTAL_SECONDS     20L
#define ANSWER_MAX        ((size_t)64 << 10) /* bytes; more than that is no receiver of messages */
#define TOKEN_MAX         4096
#define RETRY_AFTER_MAX_S 86400

static const char help[] =
    "usage: reknit-post\n"
    "\n"
    "Sends JSON to a URL, as reknitd asks it to on standard input, for its webhook. There is no\n"
    "use in starting it by hand.\n"
    "\n"
    "options:\n"
    "  --version             names the release\n"
    "  --help                this text\n";

static const char *text_of(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));

    return s ? s : "";
}

/* What a server answers is not wanted, and not without end. */
static size_t discard(char *data, size_t one, size_t n, void *ctx)
{
    size_t *taken = ctx;

    *taken += n;
    return *taken > ANSWER_MAX ? 0 : n;
}

/* The first word of the file. */
static int read_token(const char *path, char *ret, size_t size)
{
    _cleanup_(closep) int fd = file_open(path, NULL);
    ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : 0;

    if (fd < 0 || n < 0)
        return fd < 0 ? fd : -errno;
    ret[n] = '\0';
    ret[strcspn(ret, " \t\r\n")] = '\0';
    return ret[0] ? 0 : -ENODATA;
}

static struct curl_slist *add(struct curl_slist *list, const char *name, const char *value)
{
    _cleanup_(freep) char *line = xasprintf("%s: %s", name, value);

    return curl_slist_append(list, line);
}

/* NULL, and why: the token cannot be read. */
static struct curl_slist *headers_of(const json_t *request, json_t **ret_answer)
{
    struct curl_slist *list = add(NULL, "Content-Type", "application/json");
    const char *file = text_of(request, "token_file");
    char token[TOKEN_MAX], value[TOKEN_MAX + 16];
    int r = *file ? read_token(file, token, sizeof(token)) : 0;

    if (r < 0) {
        *ret_answer = json_pack("{s:s+}", "error", "the token file cannot be read: ", strerror(-r));
        curl_slist_free_all(list);
        return NULL;
    }
    if (*file) {
        STR_PRINTF(value, "Bearer %s", token);
        list = add(list, "Authorization", value);
        explicit_bzero(token, sizeof(token));
        explicit_bzero(value, sizeof(value));
    }
    list = add(list, "Idempotency-Key", text_of(request, "key"));
    return add(list, "Expect", "");
}

static void set_options(CURL *c, const json_t *request, const char *body,
                        struct curl_slist *headers, size_t *taken)
{
    curl_easy_setopt(c, CURLOPT_URL, text_of(request, "url"));
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    if (*text_of(request, "ca_cert"))
        curl_easy_setopt(c, CURLOPT_CAINFO, text_of(request, "ca_cert"));
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, TOTAL_SECONDS);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "reknit/" REKNIT_VERSION);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, taken);
}

/* A receiver that has said what it thinks of it, and then talks on, has said it. */
static json_t *answer_of(CURL *c, CURLcode code)
{
    curl_off_t after = 0;
    long status = 0;
    json_t *j;

    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    if (status == 0 || (code != CURLE_OK && code != CURLE_WRITE_ERROR))
        return json_pack("{s:s}", "error", curl_easy_strerror(code));
    j = json_pack("{s:I}", "status", (json_int_t)status);
    curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &after);
    if (after > 0)
        json_object_set_new(
            j, "retry_after",
            json_integer(after < RETRY_AFTER_MAX_S ? (json_int_t)after : RETRY_AFTER_MAX_S));
    return j;
}

/* Another handle each time: connections are few and far between. */
static json_t *post(const json_t *request)
{
    _cleanup_(freep) char *body = json_dumps(json_object_get(request, "body"), JSON_COMPACT);
    struct curl_slist *headers;
    json_t *answer = NULL;
    size_t taken = 0;
    CURL *c;

    if (!body)
        return json_pack("{s:s}", "error", "there is nothing to send");
    headers = headers_of(request, &answer);
    c = headers ? curl_easy_init() : NULL;
    if (c) {
        set_options(c, request, body, headers, &taken);
        answer = answer_of(c, curl_easy_perform(c));
        curl_easy_cleanup(c);
    }
    curl_slist_free_all(headers);
    return answer ? answer : json_pack("{s:s}", "error", "libcurl does not start");
}

static int serve(void)
{
    _cleanup_(freep) char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, stdin)) > 0) {
        json_t *request = json_loadb(line, (size_t)n, 0, NULL);
        json_t *answer = request ? post(request) : json_pack("{s:s}", "error", "no JSON");

        json_decref(request);
        json_dumpf(answer, stdout, JSON_COMPACT);
        json_decref(answer);
        putchar('\n');
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    log_init("reknit-post");
    if (argc == 2 && streq(argv[1], "--help")) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && streq(argv[1], "--version")) {
        puts("reknit-post " REKNIT_VERSION);
        return 0;
    }
    if (argc > 1) {
        log_error("it takes no '%s'; see reknit-post --help", argv[1]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return 1;
    return serve();
}
