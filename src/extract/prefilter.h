/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_PREFILTER_H
#define REKNIT_EXTRACT_PREFILTER_H

/* Many words sought at once in a block of bytes (vectorscan). Each word has owners: numbers that
 * mean something to the caller, who is told of each place where a word of theirs ends. */

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct prefilter;

struct prefilter *prefilter_new(void);
struct prefilter *prefilter_ref(struct prefilter *p);  /* one thread alone searches */
struct prefilter *prefilter_free(struct prefilter *p); /* one reference */
DEFINE_CLEANUP(struct prefilter *, prefilter_free);

/* Before prefilter_compile(). */
void prefilter_add(struct prefilter *p, const char *s, size_t len, bool caseless, unsigned owner);
int prefilter_compile(struct prefilter *p, struct err *e);
/* All words. */
void prefilter_each(const struct prefilter *p, void (*fn)(void *ctx, const char *s, size_t len),
                    void *ctx);
/* Whether the set was compiled with the program and only loaded. */
bool prefilter_is_prebuilt(const struct prefilter *p);

/* The compiled set, for prebuilt.h: allocated with malloc(). -ENOMEM is the only error. */
int prefilter_serialize(const struct prefilter *p, uint64_t *ret_words, char **ret,
                        size_t *ret_len);

/* fn returns whether to go on. Words may be found in any order of their ends within a few bytes;
 * len is below 2^31. */
typedef bool (*prefilter_fn)(void *ctx, unsigned owner, size_t end);
void prefilter_scan(const struct prefilter *p, const char *data, size_t len, prefilter_fn fn,
                    void *ctx);

#endif
