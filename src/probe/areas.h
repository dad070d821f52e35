/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_PROBE_AREAS_H
#define REKNIT_PROBE_AREAS_H

/* What can be looked at on a node. Each function runs in a child of its own, because it may hang,
 * and tells each thing as soon as it has seen it. */

#include "probe/observation.h"

struct probe {
    const char *root; /* stands in front of /sys, /proc and /dev; "" = nothing */
    const char *nvml; /* NVIDIA's library */
};

struct report {
    void (*tell)(struct report *r, const struct observation *o);
    char why[160]; /* of an area that is absent or failed */
    int fd;
};

/* What is left to say of an area that was looked at to its end: DONE, ABSENT, FAILED. */
typedef enum ended (*area_look_fn)(const struct probe *p, const char *subject, struct report *r);

enum ended area_gpu(const struct probe *p, const char *subject, struct report *r);
enum ended area_nic(const struct probe *p, const char *subject, struct report *r);
enum ended area_disk(const struct probe *p, const char *subject, struct report *r);
enum ended area_mount(const struct probe *p, const char *path, struct report *r);
enum ended area_memory(const struct probe *p, const char *subject, struct report *r);
enum ended area_clock(const struct probe *p, const char *subject, struct report *r);
enum ended area_processes(const struct probe *p, const char *subject, struct report *r);

/* Files of /sys and /proc: their first `size - 1` bytes without the newline at the end; 0, negative
 * errno. The name is made like by printf, below the root. */
int node_file(const struct probe *p, char *ret, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The number that such a file holds or begins with, if it does. */
bool node_number(const struct probe *p, int64_t *ret, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same into an item; a file that is not there or says no number leaves it unknown. */
void node_item(const struct probe *p, struct observation *o, enum item i, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The names in that folder, sorted, without those that begin with a dot; at most
 * PROBE_SUBJECTS_MAX. */
struct names {
    char (*name)[64];
    size_t n;
};
#define _cleanup_names_ __attribute__((cleanup(names_done)))
int node_names(const struct probe *p, struct names *ret, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void names_done(struct names *n);

#endif
