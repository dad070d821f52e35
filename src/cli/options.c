/* SPDX-License-Identifier: Apache-2.0 */

/* getopt_long() does the work. Its own messages are off: they are in the user's language, and not
 * in the form of our other errors. */

#include "cli/options.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static int next(const struct verb *verb, int argc, char **argv)
{
    char letters[32];

    snprintf(letters, sizeof(letters), "%s:h%s", verb->runs_command ? "+" : "",
             verb->letters ? verb->letters : "");
    opterr = 0;
    return getopt_long(argc, argv, letters, verb->options, NULL);
}

bool options_want_help(const struct verb *verb, int argc, char **argv)
{
    _cleanup_(freep) char **copy = xcalloc((size_t)argc + 1, sizeof(*copy));
    int opt;

    memcpy(copy, argv, (size_t)argc * sizeof(*copy)); /* getopt moves options to the front */
    optind = 0;                                       /* forgets what it read before */
    do {
        opt = next(verb, argc, copy);
    } while (opt != OPTION_END && opt != 'h');
    optind = 0;
    return opt == 'h';
}

static const char *name_of(const struct verb *verb, int value)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (o->val == value)
            return o->name;
    return NULL;
}

/* optopt is 0 for an unknown name, the letter for an unknown letter, else the option's value. */
static void complain(const struct verb *verb, int opt, char **argv)
{
    const char *name = optopt ? name_of(verb, optopt) : NULL, *given = argv[optind - 1];

    if (opt == ':')
        usage_error(verb->name, "--%s needs a value", name);
    else if (name)
        usage_error(verb->name, "--%s takes no value", name);
    else if (optopt)
        usage_error(verb->name, "unknown option '-%c'", optopt);
    else
        usage_error(verb->name, "unknown option '%.*s'", (int)strcspn(given, "="), given);
}

int options_next(const struct verb *verb, int argc, char **argv)
{
    int opt = next(verb, argc, argv);

    if (opt != ':' && opt != '?')
        return opt;
    complain(verb, opt, argv);
    return OPTION_WRONG;
}

int options_format(const struct verb *verb, const char *value, bool *ret_json)
{
    if (!streq(value, "text") && !streq(value, "json"))
        return usage_error(verb->name, "--format is text or json, not '%s'", value);
    *ret_json = streq(value, "json");
    return 0;
}
