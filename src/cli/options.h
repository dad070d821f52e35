/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_OPTIONS_H
#define REKNIT_CLI_OPTIONS_H

/* What all verbs do alike with their options: where they may stand, --help, and what is said of a
 * wrong one. */

#include "cli/cli.h"

#include <getopt.h>
#include <stdbool.h>

/* Values of the options in a verb's table. Those without a letter begin at OPTION_FIRST: a value
 * must not look like a letter that the verb does not have. */
enum { OPTION_END = -1, OPTION_WRONG = '?', OPTION_FORMAT = 256, OPTION_FIRST };

/* The last rows of every verb's table. */
#define OPTIONS_COMMON_END                                                                         \
    {"help", no_argument, NULL, 'h'},                                                              \
    {                                                                                              \
        0                                                                                          \
    }

/* Whether --help is among the verb's options, wherever they may stand. Leaves argv as it is. */
bool options_want_help(const struct verb *verb, int argc, char **argv);

/* The value of the next option (its own value is in getopt's optarg), or OPTION_END: then the
 * arguments are argv[optind] and on. OPTION_WRONG: what is wrong with it has been said. */
int options_next(const struct verb *verb, int argc, char **argv);

/* --format text|json. 0, or EXIT_USAGE after the error. */
int options_format(const struct verb *verb, const char *value, bool *ret_json);

#endif
