/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_PREBUILT_H
#define REKNIT_EXTRACT_PREBUILT_H

/* Sets of words that were compiled when the program was built, by prebuild.c: compiling those of
 * the built-in catalogue takes 0.1 s, most of what a short log costs. They fit every processor;
 * what another release of vectorscan does not accept is compiled again. */

#include <stddef.h>
#include <stdint.h>

struct prebuilt {
    uint64_t words; /* hash over the words */
    const void *db; /* as hs_serialize_database() writes it */
    size_t len;     /* bytes */
};

extern const struct prebuilt prebuilt_sets[]; /* ends with len 0 */

#endif
