/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_CLI_H
#define REKNIT_CLI_CLI_H

#include <stdbool.h>

/* The command line is a table of verbs. A verb gets its own argc/argv (argv[0] is the verb's
 * name, getopt state is fresh) and returns the exit status. */

enum exit_status {
    EXIT_OK = 0,
    EXIT_TROUBLE = 1,        /* an input could not be judged, a thing was not found, ... */
    EXIT_USAGE = 2,          /* the command line is wrong */
    EXIT_STOPPED = 75,       /* reknit run gave up: another try is pointless (EX_TEMPFAIL) */
    EXIT_NOT_RUNNABLE = 126, /* reknit run: there is such a command, but it cannot be run */
    EXIT_NOT_FOUND = 127,
};

struct option;

struct verb {
    const char *name;
    const char *summary;          /* one line, for `reknit --help` */
    const char *help;             /* all of `reknit VERB --help` */
    const struct option *options; /* ends with OPTIONS_COMMON_END */
    const char *letters; /* the short ones of them besides h, as getopt wants it; or NULL */
    bool runs_command;   /* options end at the first argument: the rest is a command's own */
    int (*run)(int argc, char **argv);
};

/* Each verb is a const object in its own file: extern const struct verb verb_NAME; listed in
 * main.c. */

/* "reknit VERB: text\nTry 'reknit VERB --help'." to stderr; returns EXIT_USAGE. */
int usage_error(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
