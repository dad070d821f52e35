/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_DOSSIER_H
#define REKNIT_CLI_DOSSIER_H

/* The logs of one job, read and judged. */

#include "base/err.h"
#include "base/vec.h"
#include "core/model/incident.h"
#include "extract/matcher.h"

#define ATTEMPTS_MAX 64 /* earlier ones that are remembered; the latest win */

struct dossier_file {
    const char *path;  /* as given; "-" = standard input */
    char *shown;       /* the same, printable */
    const char *node;  /* the node whose kernel log this is, NULL = it is none of --node */
    struct entity who; /* whose output it is, as options or its name tell */
    bool twin;         /* another name of an earlier file: not read again */
    uint64_t lines, bytes;
    char last_text[160]; /* its last line that is not blank, printable; "" none */
    bool bad;            /* could not be read, at least not to its end; `error` says why */
    bool judged;         /* at least a part of it */
    char error[480];
};

/* An earlier attempt, as the part of one file shows it. */
struct dossier_attempt {
    uint32_t file;
    uint64_t first_line, last_line;
    struct incident incident;
    char scene[NODE_NAME_LEN]; /* where it failed first, "" unknown */
};

struct dossier {
    VEC(struct dossier_file) files;
    VEC(struct dossier_attempt) attempts;
    uint64_t attempts_dropped; /* before those */
    uint64_t signals;          /* lines that told something */
    struct incident incident;  /* of the last attempt */
    char scene[NODE_NAME_LEN]; /* likewise */
};

/* Called now and then while reading; total 0 = not known. */
typedef void (*dossier_progress_fn)(void *ctx, const char *path, uint64_t bytes, uint64_t total);

void dossier_add(struct dossier *d, const char *path, const char *node);
void dossier_done(struct dossier *d);
/* Lines were read, and not one of them was understood: "healthy" is not known, only not refuted. */
bool dossier_is_untold(const struct dossier *d);
bool dossier_is_empty(const struct dossier *d); /* not one line was there */
/* A file, or the rest of one, could not be read. */
bool dossier_is_incomplete(const struct dossier *d);

/* Reads all files and judges. Files that cannot be read are marked; returns how many. */
size_t dossier_judge(struct dossier *d, struct matcher *m, dossier_progress_fn progress, void *ctx);

#endif
