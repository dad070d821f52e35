/* SPDX-License-Identifier: Apache-2.0 */
#include "core/state/log_names.h"

#include "base/str.h"

#include <stdlib.h>

void log_names_done(log_names *list)
{
    VEC_FOREACH (list, n)
        free(n->path);
    VEC_DONE(list);
}

static struct log_name *find(const log_names *list, uint32_t file)
{
    VEC_FOREACH (list, n)
        if (n->file == file)
            return n;
    return NULL;
}

bool log_names_lack(const log_names *list, const struct log_facts *f)
{
    const struct log_name *n = find(list, f->file);

    return n ? n->path[0] != '\0' && !streq(n->path, f->path) : list->n < LOG_NAMES_MAX;
}

bool log_names_add(log_names *list, const struct log_facts *f)
{
    struct log_name *n = find(list, f->file);

    if (n) {
        if (!streq(n->path, f->path))
            n->path[0] = '\0';
        return true;
    }
    if (list->n == LOG_NAMES_MAX)
        return false;
    *VEC_PUSH(list) = (struct log_name){.file = f->file, .path = xstrdup(f->path)};
    return true;
}

void log_names_tell(const log_names *list, struct incident *in)
{
    for (uint32_t i = 0; i < in->n_evidence && in->n_logs < EVIDENCE_LOGS_MAX; i++) {
        const struct evidence_line *l = &in->evidence[i];
        const struct log_name *n = l->line > 0 ? find(list, l->file) : NULL;
        struct evidence_log *log;

        if (!n || n->path[0] == '\0' || incident_path(in, l)[0] != '\0')
            continue;
        log = &in->logs[in->n_logs++];
        log->file = l->file;
        STR_COPY(log->path, n->path);
    }
}
