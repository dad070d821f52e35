/* SPDX-License-Identifier: Apache-2.0 */

/* usage: prebuild FILE.c
 *
 * Writes the word sets of the built-in catalogue, compiled (prebuilt.h). Runs during the build. */

#include "base/alloc.h"
#include "base/err.h"
#include "base/str.h"
#include "extract/catalog.h"
#include "extract/matcher.h"
#include "extract/prefilter.h"
#include "extract/trigger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BYTES_PER_LINE 32

struct set {
    char *db;
    size_t len;
    uint64_t words;
};

static void write_set(FILE *f, unsigned index, const struct set *set)
{
    fprintf(f, "static const char set_%u[] =", index);
    for (size_t i = 0; i < set->len; i++) {
        if (i % BYTES_PER_LINE == 0)
            fputs(i == 0 ? "\n    \"" : "\"\n    \"", f);
        fprintf(f, "\\%03o", (unsigned)(unsigned char)set->db[i]);
    }
    fputs("\";\n\n", f);
}

static int write_file(const char *path, const struct set *sets, unsigned n)
{
    FILE *f = fopen(path, "w");
    bool failed;

    if (!f)
        return -1;
    fputs("/* Made by prebuild.c: do not edit. */\n#include \"extract/prebuilt.h\"\n\n", f);
    for (unsigned i = 0; i < n; i++)
        write_set(f, i, &sets[i]);
    fputs("const struct prebuilt prebuilt_sets[] = {\n", f);
    for (unsigned i = 0; i < n; i++)
        fprintf(f, "    {UINT64_C(0x%016" PRIx64 "), set_%u, sizeof(set_%u) - 1},\n", sets[i].words,
                i, i);
    fputs("    {0},\n};\n", f);
    failed = ferror(f);
    return fclose(f) != 0 || failed ? -1 : 0;
}

static int take_set(const struct prefilter *p, struct set *ret)
{
    return prefilter_serialize(p, &ret->words, &ret->db, &ret->len);
}

int main(int argc, char **argv)
{
    _cleanup_(catalog_freep) struct catalog *catalog = NULL;
    _cleanup_(matcher_freep) struct matcher *matcher = NULL, *of_kernel = NULL;
    _cleanup_(trigger_set_freep) struct trigger_set *triggers = NULL;
    struct set sets[3] = {{0}};
    struct err e = {0};
    int r = 1;

    if (argc != 2 || catalog_load(NULL, 0, &catalog, &e) < 0 ||
        matcher_new(catalog, &matcher, &e) < 0 || !(triggers = trigger_set_new(matcher, NULL))) {
        fprintf(stderr, "prebuild: %s\n", argc == 2 ? e.text : "usage: prebuild FILE.c");
        return 1;
    }
    if (take_set(matcher_words(matcher), &sets[0]) == 0 &&
        take_set(trigger_set_words(triggers), &sets[1]) == 0)
        r = 0;
    triggers = trigger_set_free(triggers);
    matcher = matcher_free(matcher); /* it is of all entries, and most go */
    catalog_keep(catalog, LAYER_KERNEL);
    if (r == 0 &&
        (matcher_new(catalog, &of_kernel, &e) < 0 ||
         take_set(matcher_words(of_kernel), &sets[2]) < 0 || write_file(argv[1], sets, 3) < 0))
        r = 1;
    if (r != 0)
        fprintf(stderr, "prebuild: cannot write %s %s\n", argv[1], e.text);
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        free(sets[i].db);
    return r;
}
