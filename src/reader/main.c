/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-reader: runs as the owner of jobs, follows their logs, and speaks on its standard input
 * and output. What it may not read, its owner may not read. */

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/serve.h"

#include <getopt.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const char help[] =
    "usage: reknit-reader [--catalog DIR]...\n"
    "\n"
    "Follows log files and tells what they say, as reknitd asks it to on standard input.\n"
    "reknit-spawner starts it, as the owner of the jobs; there is no use in running it by\n"
    "hand.\n"
    "\n"
    "options:\n"
    "  --catalog DIR   more signatures (*.yaml), beside the built-in ones and those of\n"
    "                  /etc/reknit/catalog.d\n"
    "  --version       names the release\n"
    "  --help          this text\n";

static const struct option options[] = {
    {"catalog", required_argument, NULL, 'c'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL},
};

#define CATALOGS_MAX 16

/* Each file that is followed is open. */
static void raise_limit(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
}

/* A scanner has room for the longest lines, and hardly ever needs it: what the kernel hands out
 * page by page costs nothing until it is used, what malloc() recycles has to be cleared. */
static void set_up_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 16 << 10);
}

/* To whoever runs it by hand; and to reknitd, as by the spawner there is no standard error. */
static void tell_failure(const char *text)
{
    json_t *j = json_pack("{s:s,s:s}", "kind", "failed", "text", text);
    _cleanup_(freep) char *line = json_dumps(j, JSON_COMPACT);

    log_error("%s", text);
    if (line)
        dprintf(STDOUT_FILENO, "%s\n", line);
    json_decref(j);
}

static int run(const char *const *dirs, size_t n)
{
    _cleanup_(catalog_freep) struct catalog *catalog = NULL;
    _cleanup_(matcher_freep) struct matcher *matcher = NULL;
    struct err e = {0};

    if (catalog_load(dirs, n, &catalog, &e) < 0 || matcher_new(catalog, &matcher, &e) < 0 ||
        serve(matcher, STDIN_FILENO, STDOUT_FILENO, &e) < 0) {
        tell_failure(e.text);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *dirs[CATALOGS_MAX];
    size_t n = 0;
    int c;

    log_init("reknit-reader");
    prctl(PR_SET_DUMPABLE, 0); /* other processes of its user may not reach into it */
    signal(SIGPIPE, SIG_IGN);
    raise_limit();
    set_up_memory();
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h' || c == 'v') {
            fputs(c == 'h' ? help : "reknit-reader " REKNIT_VERSION "\n", stdout);
            return 0;
        }
        if (c != 'c' || n == CATALOGS_MAX)
            return 2;
        dirs[n++] = optarg;
    }
    return run(dirs, n);
}
