/* SPDX-License-Identifier: Apache-2.0 */

/* A whole log through the scanner with the built-in catalogue. The first byte says how the rest is
 * cut into pieces; the signals must be those of one piece. */

#include "base/str.h"
#include "base/vec.h"
#include "extract/scanner.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct log {
    VEC(struct signal) signals;
};

static void collect(void *ctx, const struct signal *s)
{
    struct log *l = ctx;
    char again[EXCERPT_LEN];

    assert(s->line > 0 && strlen(s->text) < sizeof(s->text) && s->message <= strlen(s->text));
    assert(str_sanitize(again, sizeof(again), s->text, strlen(s->text)) == strlen(s->text));
    *VEC_PUSH(&l->signals) = *s;
}

static struct matcher *builtin_matcher(void)
{
    static struct catalog *catalog;
    static struct matcher *matcher;

    if (!matcher &&
        (catalog_load(NULL, 0, &catalog, NULL) < 0 || matcher_new(catalog, &matcher, NULL) < 0))
        abort();
    return matcher;
}

static void scan(const char *data, size_t size, size_t piece, struct log *ret)
{
    struct scanner_options o = {.now_us = (usec_t)1781000000 * USEC_PER_SEC};
    struct scanner *s = scanner_new(builtin_matcher(), &o, collect, ret);

    for (size_t at = 0; at < size; at += piece)
        scanner_feed(s, data + at, size - at < piece ? size - at : piece);
    scanner_finish(s);
    assert(scanner_counters(s)->bytes == size && scanner_counters(s)->lines <= size);
    scanner_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log whole = {0}, pieces = {0};

    if (size < 2)
        return 0;
    scan((const char *)data + 1, size - 1, size, &whole);
    scan((const char *)data + 1, size - 1, data[0] + 1u, &pieces);
    assert(whole.signals.n == pieces.signals.n);
    for (size_t i = 0; i < whole.signals.n; i++)
        assert(memcmp(&whole.signals.v[i], &pieces.signals.v[i], sizeof(struct signal)) == 0);
    VEC_DONE(&whole.signals);
    VEC_DONE(&pieces.signals);
    return 0;
}
