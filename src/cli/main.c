/* SPDX-License-Identifier: Apache-2.0 */

/* reknit: finds the verb, answers --help and --version, leaves the rest to the verb. */

#include "action/keeper.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_approve, verb_catalog, verb_config, verb_diagnose, verb_doctor,
    verb_events, verb_explain, verb_flight_recorder, verb_freeze, verb_health, verb_incidents,
    verb_jobs, verb_mode, verb_nodes, verb_reject, verb_release_stale, verb_replay, verb_review,
    verb_run, verb_thaw;

static const struct verb *const verbs[] = {
    &verb_diagnose, &verb_run,     &verb_jobs,    &verb_explain, &verb_incidents,
    &verb_events,   &verb_review,  &verb_approve, &verb_reject,  &verb_mode,
    &verb_freeze,   &verb_thaw,    &verb_health,  &verb_nodes,   &verb_flight_recorder,
    &verb_replay,   &verb_catalog, &verb_config,  &verb_doctor,  &verb_release_stale,
    NULL,
};

static void print_help(void)
{
    puts("usage: reknit VERB [OPTION]... [ARGUMENT]...\n"
         "\n"
         "Keeps training jobs running: finds out why one failed, and restarts it or stops.\n"
         "\n"
         "verbs:");
    for (size_t i = 0; verbs[i]; i++)
        printf("  %-15s %s\n", verbs[i]->name, verbs[i]->summary);
    puts("\n"
         "'reknit VERB --help' explains a verb; 'reknit --version' names the release.");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; verbs[i]; i++)
        if (streq(verbs[i]->name, name))
            return verbs[i];
    return NULL;
}

/* The verb that was meant, most likely; NULL = no idea. */
static const char *nearest_verb(const char *name)
{
    const char *best = NULL;
    size_t least = 3; /* more slips than two are another word */

    for (size_t i = 0; verbs[i]; i++) {
        size_t d = str_distance(name, verbs[i]->name);

        if (d < least && d < strlen(verbs[i]->name) - 1) {
            least = d;
            best = verbs[i]->name;
        }
    }
    return best;
}

static int no_such_verb(const char *given)
{
    const char *meant = nearest_verb(given);
    char name[64];

    str_sanitize(name, sizeof(name), given, strlen(given));
    fprintf(stderr, "reknit: there is no verb '%s'", name);
    if (meant)
        fprintf(stderr, "; did you mean '%s'?", meant);
    fputs("\nTry 'reknit --help'.\n", stderr);
    return EXIT_USAGE;
}

int usage_error(const char *verb, const char *format, ...)
{
    char raw[512], text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(raw, sizeof(raw), format, ap);
    va_end(ap);
    str_sanitize(text, sizeof(text), raw, strlen(raw));
    fprintf(stderr, "reknit %s: %s", verb, text);
    fprintf(stderr, "\nTry 'reknit %s --help'.\n", verb);
    return EXIT_USAGE;
}

/* A standard stream that was closed at the start leaves its number to the next file that is
 * opened: a lock or a journal, which would then be written to as output and handed to the job. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            exit(EXIT_TROUBLE);
}

static int dispatch(int argc, char **argv)
{
    const struct verb *verb;

    if (argc < 2 || streq(argv[1], "--help") || streq(argv[1], "-h") || streq(argv[1], "help")) {
        print_help();
        return argc < 2 ? EXIT_USAGE : EXIT_OK;
    }
    if (streq(argv[1], "--version")) {
        puts("reknit " REKNIT_VERSION);
        return EXIT_OK;
    }
    verb = find_verb(argv[1]);
    if (!verb)
        return no_such_verb(argv[1]);
    if (options_want_help(verb, argc - 1, argv + 1)) {
        fputs(verb->help, stdout);
        return EXIT_OK;
    }
    return verb->run(argc - 1, argv + 1);
}

/* Half an answer must not look like a whole one to a script. */
static int check_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "reknit: standard output could not be written: %s\n", strerror(errno));
    return status == EXIT_OK ? EXIT_TROUBLE : status;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    log_init("reknit");
    if (argc > 1 && streq(argv[1], KEEPER_VERB))
        return keeper_main(argc - 1, argv + 1);
    return check_output(dispatch(argc, argv));
}
