/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_BUILTIN_H
#define REKNIT_EXTRACT_BUILTIN_H

/* The catalogue's YAML files, put into the program by tools/embed at build time. */

#include <stddef.h>

struct builtin_file {
    const char *name;
    const char *text;
    size_t len;
};

extern const struct builtin_file builtin_files[]; /* ends with name NULL */

#endif
