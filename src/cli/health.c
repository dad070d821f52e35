/* SPDX-License-Identifier: Apache-2.0 */

/* reknit health: the nodes of a cluster all together. */

#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

extern const struct verb verb_health;

static const json_t *part(const json_t *v, const char *key)
{
    return json_object_get(v, key);
}

static int64_t count(const json_t *v, const char *key)
{
    return cluster_number(v, key, 0);
}

__attribute__((format(printf, 2, 3))) static void entry(const char *name, const char *format, ...)
{
    va_list ap;

    printf("%-10s ", name);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
}

static void print_nodes(const json_t *n)
{
    entry("nodes",
          "%" PRId64 ": %" PRId64 " usable, %" PRId64 " drained by Reknit, %" PRId64
          " out of service by others",
          count(n, "known"), count(n, "usable"), count(n, "out_by_reknit"),
          count(n, "out_by_others"));
}

/* "a, b": names of a list; nothing where it is empty. */
static void print_names(const char *name, const json_t *list)
{
    json_t *v;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    printf("%-10s ", name);
    json_array_foreach (list, i, v)
        printf("%s%s", i > 0 ? ", " : "", json_string_value(v));
    putchar('\n');
}

static void print_agents(const json_t *a, int64_t nodes)
{
    if (!json_is_true(part(a, "listening"))) {
        entry("agents", "none are heard: what nodes see of themselves is not known");
        return;
    }
    entry("agents", "%" PRId64 " of %" PRId64 " nodes are heard", count(a, "connected"), nodes);
    print_names("silent", part(a, "gone_nodes"));
    if (count(a, "kernel_unread") > 0)
        entry("", "%" PRId64 " cannot read their kernel's log: reknit doctor",
              count(a, "kernel_unread"));
}

/* "gpu-hardware 2, network 1", without those of none. */
static void print_counts(const char *name, const json_t *counts, const char *none)
{
    const char *key, *sep = "";
    json_t *v;

    printf("%-10s ", name);
    json_object_foreach ((json_t *)counts, key, v) {
        if (json_integer_value(v) == 0)
            continue;
        printf("%s%s %" JSON_INTEGER_FORMAT, sep, key, json_integer_value(v));
        sep = ", ";
    }
    puts(*sep ? "" : none);
}

static void print_limit(int64_t most)
{
    if (most > 0)
        printf(" of at most %" PRId64, most);
}

static void print_isolation(const json_t *i)
{
    printf("%-10s mode %s%s: %" PRId64, "isolation", cluster_text(i, "mode"),
           json_is_true(part(i, "frozen")) ? ", frozen" : "", count(i, "drained"));
    print_limit(count(i, "max_drained"));
    printf(" drained, %" PRId64, count(i, "drained_within_hour"));
    print_limit(count(i, "drains_per_hour"));
    puts(" within the hour");
    print_names("stopped", part(i, "stopped"));
    if (json_array_size(part(i, "stopped")) > 0)
        entry("", "rules that convicted too many nodes; 'reknit nodes rearm' lets them again");
}

static void print_fleet(const json_t *v)
{
    print_nodes(part(v, "nodes"));
    print_agents(part(v, "agents"), count(part(v, "nodes"), "known"));
    print_counts("trouble", part(v, "trouble"), "none is known");
    print_counts("asks for", part(v, "asks_for"), "nothing");
    print_names("lemons", part(v, "lemons"));
    if (count(v, "kept_out") > 0)
        entry("kept out", "%" PRId64 " pairs of a job and a node that it is kept away from",
              count(v, "kept_out"));
    print_isolation(part(v, "isolation"));
    if (json_object_size(part(v, "trouble")) > 0)
        puts("'reknit nodes' lists them, 'reknit explain NODE' tells of one");
}

static const struct option options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    OPTIONS_COMMON_END,
};

static int run(int argc, char **argv)
{
    bool json = false;
    int opt;

    while ((opt = options_next(&verb_health, argc, argv)) != OPTION_END)
        if (opt == OPTION_WRONG || options_format(&verb_health, optarg, &json) != 0)
            return EXIT_USAGE;
    if (optind < argc)
        return usage_error("health", "wants no argument; of one node: reknit explain NODE");
    return cluster_show("/v1/fleet", json, print_fleet);
}

const struct verb verb_health = {
    .name = "health",
    .summary = "the nodes of a cluster all together: usable, sick, drained",
    .help = "usage: reknit health [--format text|json]\n"
            "\n"
            "Shows how many nodes can be used and who keeps the others out, how many agents\n"
            "are heard, what stands against nodes, which fail far more often than others\n"
            "(lemons), and what room is left to drain more. For operators.\n"
            "'reknit nodes' lists the nodes, 'reknit explain NODE' tells of one.\n"
            "\n"
            "Asks reknitd, at $REKNIT_SOCKET or " CLIENT_SOCKET ".\n"
            "\n"
            "  --format text|json   json: one object\n"
            "\n"
            "Exit status: 0, or 1 when no daemon answers, or you are no operator.\n",
    .options = options,
    .run = run,
};
