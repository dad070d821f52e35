/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_VEC_H
#define REKNIT_BASE_VEC_H

/* A typed growing array:
 *
 *   VEC(struct hit) hits = {0};
 *   *VEC_PUSH(&hits) = hit;
 *   VEC_FOREACH (&hits, h)           h points into the array: do not push meanwhile
 *   VEC_DONE(&hits);
 *
 * Whoever pushes keeps the limit that belongs beside every list. */

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }

#define VEC_GROW(vec, want)                                                                        \
    do {                                                                                           \
        if ((want) > (vec)->cap) {                                                                 \
            (vec)->cap = (want) < 8 ? 8 : (want) + (want) / 2;                                     \
            (vec)->v = xreallocarray((vec)->v, (vec)->cap, sizeof(*(vec)->v));                     \
        }                                                                                          \
    } while (0)

/* Adds a zeroed element and yields a pointer to it. */
#define VEC_PUSH(vec)                                                                              \
    __extension__({                                                                                \
        VEC_GROW(vec, (vec)->n + 1);                                                               \
        memset(&(vec)->v[(vec)->n], 0, sizeof(*(vec)->v));                                         \
        &(vec)->v[(vec)->n++];                                                                     \
    })

#define VEC_REMOVE(vec, i)                                                                         \
    do {                                                                                           \
        size_t _i = (i);                                                                           \
        memmove(&(vec)->v[_i], &(vec)->v[_i + 1], ((vec)->n - _i - 1) * sizeof(*(vec)->v));        \
        (vec)->n--;                                                                                \
    } while (0)

#define VEC_FOREACH(vec, p)                                                                        \
    for (__typeof__(*(vec)->v) *p = (vec)->v; (vec)->n > 0 && p < (vec)->v + (vec)->n; p++)

#define VEC_DONE(vec)                                                                              \
    do {                                                                                           \
        free((vec)->v);                                                                            \
        (vec)->v = NULL;                                                                           \
        (vec)->n = (vec)->cap = 0;                                                                 \
    } while (0)

#endif
