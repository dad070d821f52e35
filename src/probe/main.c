/* SPDX-License-Identifier: Apache-2.0 */

/* reknit-probe: looks at this node once and says what it has seen. */

#include "probe/judge.h"
#include "probe/look.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXIT_USAGE 2

static const char help[] =
    "usage: reknit-probe [option]...\n"
    "\n"
    "Looks once at this node: its GPUs, network ports, disks, mounts, memory, clock and "
    "processes.\n"
    "Says what it has seen, one JSON object a line, and how looking at each area ended: done,\n"
    "absent, hung, failed.\n"
    "\n"
    "options:\n"
    "  --human              for people: a table, and what of it looks like a trouble\n"
    "  --only AREA[,AREA]   gpu, nic, disk, mounts, memory, clock, processes (default: all)\n"
    "  --deadline DURATION  an area, or a mount, that has not answered by then hangs\n"
    "                       (default: 20s)\n"
    "  --nvml LIBRARY       NVIDIA's management library (default: libnvidia-ml.so.1)\n"
    "  --mounts PATH[,...]  these in place of what is mounted from other hosts\n"
    "  --locks FOLDER       where it stands who hangs still from an earlier look: nobody else is "
    "sent\n"
    "                       there\n"
    "  --root FOLDER        stands in front of /sys, /proc and /dev\n"
    "  --version            names the release\n"
    "  --help               this text\n";

static const struct option options[] = {
    {"human", no_argument, NULL, 'u'},          {"only", required_argument, NULL, 'o'},
    {"deadline", required_argument, NULL, 'd'}, {"nvml", required_argument, NULL, 'n'},
    {"mounts", required_argument, NULL, 'm'},   {"locks", required_argument, NULL, 'l'},
    {"root", required_argument, NULL, 'r'},     {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},           {NULL},
};

static bool take_areas(const char *text, bool areas[AREA_MAX])
{
    char list[128];
    char *rest = list, *word;

    memset(areas, 0, AREA_MAX * sizeof(*areas));
    if (!STR_COPY(list, text))
        return false;
    while ((word = strsep(&rest, ","))) {
        enum area a = area_from_name(word);

        if (a < 0)
            return false;
        areas[a] = true;
    }
    return true;
}

static bool take_option(int c, struct look_config *l, bool *human)
{
    switch (c) {
    case 'u':
        *human = true;
        return true;
    case 'o':
        return take_areas(optarg, l->areas);
    case 'd':
        return duration_parse(optarg, &l->deadline) == 0 && l->deadline > 0;
    case 'n':
        l->probe.nvml = optarg;
        return true;
    case 'm':
        l->mounts = optarg;
        return true;
    case 'l':
        l->locks = optarg;
        return true;
    case 'r':
        l->probe.root = optarg;
        return true;
    default:
        return false;
    }
}

static void print_line(void *ctx, const char *line)
{
    puts(line);
    fflush(stdout);
}

#define ITEMS_A_LINE 4

static void print_observation(const struct observation *o)
{
    size_t n = 0;

    printf("%-9s  %s%s%s\n", area_name(o->area), o->subject, o->subject[0] ? "  " : "", o->label);
    for (int i = 0; i < ITEM_MAX; i++) {
        if (!observation_has(o, (enum item)i))
            continue;
        fputs(n % ITEMS_A_LINE > 0 ? "  " : n > 0 ? "\n           " : "           ", stdout);
        printf("%s %" PRId64, item_name((enum item)i), o->value[i]);
        n++;
    }
    if (n > 0)
        putchar('\n');
}

static void print_ending(const struct ending *e)
{
    if (e->how != ENDED_DONE)
        printf("%-9s  %s%s%s: %s\n", area_name(e->area), e->subject, e->subject[0] ? " " : "",
               ended_name(e->how), e->why);
}

struct showing {
    struct judge *judge;
    struct probe_line line;
};

static void show_line(void *ctx, const char *text)
{
    struct showing *s = ctx;

    if (probe_line_parse(text, strlen(text), &s->line) < 0)
        return;
    judge_take(s->judge, &s->line);
    if (s->line.is_ending)
        print_ending(&s->line.ending);
    else
        print_observation(&s->line.observation);
    fflush(stdout);
}

static void print_trouble(void *ctx, const struct change *c)
{
    size_t *n = ctx;

    printf("%s%s\n           %s\n", *n == 0 ? "\nLooks like a trouble:\n" : "", c->text,
           c->signature);
    (*n)++;
}

static void show(const struct look_config *l)
{
    struct showing s = {.judge = judge_new()};
    size_t n = 0;

    judge_begin(s.judge, mono_us());
    look(l, show_line, &s);
    judge_now(s.judge, print_trouble, &n);
    if (n == 0)
        puts("\nNothing that looks like a trouble.");
    judge_free(s.judge);
}

int main(int argc, char **argv)
{
    struct look_config l = {
        .probe = {.root = "", .nvml = NVML_LIBRARY},
        .deadline = LOOK_DEADLINE,
    };
    bool human = false;
    int c;

    log_init("reknit-probe");
    for (int a = 0; a < AREA_MAX; a++)
        l.areas[a] = true;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h' || c == 'v') {
            fputs(c == 'h' ? help : "reknit-probe " REKNIT_VERSION "\n", stdout);
            return 0;
        }
        if (!take_option(c, &l, &human)) {
            if (c != '?')
                log_error("%s: not understood; see --help", optarg);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        log_error("%s: not understood; see --help", argv[optind]);
        return EXIT_USAGE;
    }
    if (human)
        show(&l);
    else
        look(&l, print_line, NULL);
    return ferror(stdout) ? 1 : 0;
}
