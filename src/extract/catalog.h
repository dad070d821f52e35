/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_CATALOG_H
#define REKNIT_EXTRACT_CATALOG_H

/* The failure catalogue in memory: what docs/CATALOG.md describes, loaded and checked. Immutable
 * once loaded; a matcher is built from it and refers to it. */

#include "base/cleanup.h"
#include "base/err.h"
#include "core/model/node.h"

#define CATALOG_SITE_DIR "/etc/reknit/catalog.d"

/* A list of strings out of the YAML. */
struct string_list {
    char **v;
    unsigned n;
};

struct entry {
    char id[SIGNATURE_MAX];
    enum layer layer;
    enum role role;
    enum cause cause;
    enum blame blame;
    enum advice advice;       /* ADVICE_NONE: what the cause implies */
    int32_t confidence;       /* percent */
    enum isolation isolation; /* of a failure of layer kernel: what it asks for about its node;
                                 ISOLATION_INVALID: it is no fact about one */
    enum phase phase;         /* role phase */
    enum edge edge;           /* roles phase and checkpoint */
    bool skipped;             /* role progress: the optimizer left the update out */
    bool hang;                /* the line tells of waiting, not of dying */
    bool straggler;           /* ... of being slow */
    const char *clears;       /* role noise: id or family whose trouble is over, "" none */
    struct string_list patterns;
    struct string_list fields;                    /* for values only */
    struct string_list yields_to, hides;          /* ids, families, "*" */
    struct string_list match, captures, no_match; /* examples; captures[i] belongs to match[i] */
    const char *source;                           /* where the format is documented, "" none */
    const char *file;                             /* of the entry, for messages */
    unsigned line;
    unsigned rank;          /* of its folder: 0 = built in, more = read later */
    struct entry *replaced; /* the one of that id that it stands for, NULL = none */
};

struct xid_entry {
    int32_t code;
    enum role role;
    enum cause cause;
    enum blame blame;
    enum advice advice;
    int32_t confidence;
    enum isolation isolation; /* as above */
    const char *name;
};

struct catalog;

/* The built-in files, then *.yaml of the site's folder (may be absent), then of each extra folder
 * (must exist). A later entry replaces one of the same id from an earlier folder. Errors name file
 * and line: -EINVAL, or what opening a file said. */
int catalog_load(const char *const *dirs, size_t n_dirs, struct catalog **ret, struct err *e);

/* From one text alone; `name` stands for the file. */
int catalog_load_text(const char *name, const char *text, size_t len, struct catalog **ret,
                      struct err *e);

/* Leaves the entries of that layer alone, and the codes: for who reads nothing else, and is to be
 * small. */
void catalog_keep(struct catalog *c, enum layer layer);

struct catalog *catalog_free(struct catalog *c);
DEFINE_CLEANUP(struct catalog *, catalog_free);

size_t catalog_size(const struct catalog *c);
const struct entry *catalog_entry(const struct catalog *c, size_t i);
const struct entry *catalog_find(const struct catalog *c, const char *id); /* NULL: none */
const struct xid_entry *catalog_xid(const struct catalog *c, int64_t code);

bool entry_tells_of_failure(const struct entry *e); /* by its role */

/* What docs/CATALOG.md says about two entries that match one line. */
bool entry_hides(const struct entry *e, const struct entry *other);
bool entry_yields_to(const struct entry *e, const struct entry *other);

#endif
