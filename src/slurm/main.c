/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-slurm: reads requests, one a line, and answers them, one a line. What a line may be and
 * what an answer says stands in docs/ADAPTER.md. */

#include "slurm/adapter.h"
#include "slurm/deadline.h"
#include "slurm/lines.h"
#include "slurm/text.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define READ_CHUNK 65536

static void print_help(void)
{
    puts(
        "usage: reknit-slurm [--once REQUEST]\n"
        "\n"
        "Lets reknitd see and touch the jobs of Slurm: reads requests from standard input, one "
        "JSON\n"
        "object a line, and answers each with one. SLURM_CONF names another configuration.\n"
        "\n"
        "  --once REQUEST   answers one request, for people: an operation that needs nothing else\n"
        "                   (jobs, nodes, partitions, reservations, config, ping) or the JSON of\n"
        "                   any, '{\"op\":\"job\",\"job\":\"4242\"}'; exit status 1 if it failed\n"
        "  --help           this text\n"
        "  --version        the release, and that of Slurm");
}

/* Of Slurm this was built for; the library's soname changes with every major one. */
static void slurm_release(char *buf, size_t size)
{
    str_printf(buf, size, "%d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
               SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
               SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
}

static int write_all(int fd, const char *s, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, s, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        s += n;
        len -= (size_t)n;
    }
    return 0;
}

static int say_hello(void)
{
    char release[32];
    struct strbuf line = {0};
    json_t *hello;
    int r;

    slurm_release(release, sizeof(release));
    hello = json_pack("{s:{s:i, s:s, s:s}}", "hello", "protocol", PROTOCOL_VERSION, "adapter",
                      "slurm", "version", release);
    strbuf_addc(&line, '{');
    json_add_members(&line, hello);
    strbuf_adds(&line, "}\n");
    r = write_all(STDOUT_FILENO, line.s, line.len);
    json_decref(hello);
    strbuf_done(&line);
    return r;
}

static void refuse(int64_t id, const char *why, struct strbuf *out)
{
    _cleanup_answer_ struct answer answer = {0};

    answer_fail(&answer, FAULT_INVALID_REQUEST, 0, "%s", why);
    answer_write(&answer, id, out);
}

/* Adds the answer to one line to out. */
static bool answer_line(struct adapter *a, const char *line, size_t len, struct strbuf *out)
{
    _cleanup_request_ struct request r = {.id = REQUEST_ID_NONE};
    _cleanup_answer_ struct answer answer = {0};
    struct err e = {0};

    if (request_parse(line, len, &r, &e) < 0) {
        refuse(r.id, e.text, out);
        return false;
    }
    deadline_start(r.id, r.deadline_ms);
    adapter_answer(a, &r, &answer);
    deadline_stop();
    answer_write(&answer, r.id, out);
    return answer.fault == FAULT_NONE;
}

/* Answers the lines that are there whole. */
static int answer_lines(struct adapter *a, struct lines *in)
{
    _cleanup_strbuf_ struct strbuf out = {0};
    const char *line;
    size_t len;
    int r;

    while ((r = lines_next(in, &line, &len)) != 0) {
        strbuf_reset(&out);
        if (r == -E2BIG)
            refuse(REQUEST_ID_NONE, "the line is too long", &out);
        else
            answer_line(a, line, len, &out);
        r = write_all(STDOUT_FILENO, out.s, out.len);
        if (r < 0)
            break;
    }
    return r;
}

/* Until standard input ends. 0, or negative errno. */
static int serve(struct adapter *a)
{
    _cleanup_lines_ struct lines in = {.max = REQUEST_LINE_MAX};
    static char chunk[READ_CHUNK];
    int r = 0;

    while (r == 0) {
        ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        lines_add(&in, chunk, (size_t)n);
        r = answer_lines(a, &in);
    }
    return r;
}

/* One request, which need not have an id and may be the name of an operation alone. */
static int once(struct adapter *a, const char *request)
{
    _cleanup_strbuf_ struct strbuf line = {0};
    _cleanup_strbuf_ struct strbuf out = {0};
    json_t *body = json_loads(request, JSON_REJECT_DUPLICATES, NULL), *answer;
    bool ok;

    if (!json_is_object(body)) {
        json_decref(body);
        body = json_pack("{s:o}", "op", text_json(request, TEXT_MAX));
    }
    if (!json_object_get(body, "id"))
        json_object_set_new(body, "id", json_integer(0));
    json_add(&line, body);
    json_decref(body);
    ok = answer_line(a, line.s, line.len, &out);
    answer = json_loadb(out.s, out.len, 0, NULL);
    json_object_del(answer, "id");
    json_dumpf(answer, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(answer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* libslurm would wait a minute for it to appear. */
static bool has_configuration(void)
{
    const char *path = getenv("SLURM_CONF");

    if (!path || access(path, R_OK) == 0)
        return true;
    log_error("SLURM_CONF names %s, which cannot be read: %s", path, strerror(errno));
    return false;
}

static int run(const char *request)
{
    struct adapter *a;
    int r = request ? 0 : say_hello();

    if (r < 0 || !has_configuration())
        return EXIT_FAILURE;
    slurm_init(NULL); /* may ask the network; ends the program where there is no configuration */
    deadline_init(STDOUT_FILENO);
    a = adapter_new();
    r = request ? once(a, request) : serve(a);
    adapter_free(a);
    slurm_fini();
    if (r < 0)
        log_error("standard input or output: %s", strerror(-r));
    return r < 0 ? EXIT_FAILURE : r;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"once", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    const char *request = NULL;
    char release[32];
    int c;

    log_init("reknit-slurm");
    prctl(PR_SET_DUMPABLE, 0); /* other processes of SlurmUser may not reach into it */
    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (c) {
        case 'o':
            request = optarg;
            break;
        case 'h':
            print_help();
            return EXIT_SUCCESS;
        case 'V':
            slurm_release(release, sizeof(release));
            printf("reknit-slurm %s (Slurm %s)\n", REKNIT_VERSION, release);
            return EXIT_SUCCESS;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fputs("usage: reknit-slurm [--once REQUEST]\nTry 'reknit-slurm --help'.\n", stderr);
        return EXIT_USAGE;
    }
    return run(request);
}
