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

/* Adds a zeroed element before the i-th and yields a pointer to it. */
#define VEC_INSERT(vec, i)                                                                         \
    __extension__({                                                                                \
        size_t _at = (i);                                                                          \
        VEC_GROW(vec, (vec)->n + 1);                                                               \
        memmove(&(vec)->v[_at + 1], &(vec)->v[_at], ((vec)->n - _at) * sizeof(*(vec)->v));         \
        memset(&(vec)->v[_at], 0, sizeof(*(vec)->v));                                              \
        (vec)->n++;                                                                                \
        &(vec)->v[_at];                                                                            \
    })

#define VEC_REMOVE(vec, i)                                                                         \
    do {                                                                                           \
        size_t _i = (i);                                                                           \
        memmove(&(vec)->v[_i], &(vec)->v[_i + 1], ((vec)->n - _i - 1) * sizeof(*(vec)->v));        \
        (vec)->n--;                                                                                \
    } while (0)

#define VEC_FOREACH(vec, p)                                                                        \
    for (__typeof__(*(vec)->v) *p = (vec)->v; (vec)->n > 0 && p < (vec)->v + (vec)->n; p++)

/* Of a sorted array, the position of the first element that does not come before what is sought;
 * `before` says of *p whether it does:
 *
 *   size_t i = VEC_BISECT(&jobs, j, strcmp((*j)->name, name) < 0); */
#define VEC_BISECT(vec, p, before)                                                                 \
    __extension__({                                                                                \
        size_t _lo = 0, _hi = (vec)->n;                                                            \
        while (_lo < _hi) {                                                                        \
            size_t _mid = _lo + (_hi - _lo) / 2;                                                   \
            const __typeof__(*(vec)->v) *p = &(vec)->v[_mid];                                      \
            if (before)                                                                            \
                _lo = _mid + 1;                                                                    \
            else                                                                                   \
                _hi = _mid;                                                                        \
        }                                                                                          \
        _lo;                                                                                       \
    })

#define VEC_DONE(vec)                                                                              \
    do {                                                                                           \
        free((vec)->v);                                                                            \
        (vec)->v = NULL;                                                                           \
        (vec)->n = (vec)->cap = 0;                                                                 \
    } while (0)

#endif
