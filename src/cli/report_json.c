/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "cli/json.h"

#include <assert.h>

/* The schema that scripts rely on; reknit-diagnose(1) describes it. Fields are only ever added. A
 * number that is not known is null. */

#define SCHEMA 1

static json_t *number_or_null(int64_t v, int64_t none)
{
    return v == none ? json_null() : json_integer(v);
}

static json_t *make_culprits(const struct culprits *c)
{
    json_t *nodes = json_array(), *ranks = json_array(), *devices = json_array();

    for (uint32_t i = 0; i < c->n_nodes; i++)
        json_array_append_new(nodes, cli_json_text(c->nodes[i]));
    for (uint32_t i = 0; i < c->n_ranks; i++)
        json_array_append_new(ranks, json_integer(c->ranks[i]));
    for (uint32_t i = 0; i < c->n_devices; i++)
        json_array_append_new(devices, cli_json_text(c->devices[i]));
    return json_pack("{s:o, s:o, s:o}", "nodes", nodes, "ranks", ranks, "devices", devices);
}

static const char *path_of(const struct dossier *d, uint32_t file)
{
    return file < d->files.n ? d->files.v[file].path : "";
}

static json_t *make_evidence(const struct dossier *d, const struct incident *in)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < in->n_evidence; i++) {
        const struct evidence_line *l = &in->evidence[i];
        json_t *j = json_pack("{s:o, s:I, s:I, s:s, s:s, s:o}", "file",
                              cli_json_text(path_of(d, l->file)), "line", (json_int_t)l->line,
                              "count", (json_int_t)l->count, "role", role_name(l->role),
                              "signature", l->signature, "text", cli_json_text(l->text));

        assert(j);
        json_array_append_new(list, j);
    }
    return list;
}

static json_t *make_ruled_out(const struct incident *in)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < in->n_ruled_out; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "what", cli_json_text(in->ruled_out[i].what),
                                        "why", cli_json_text(in->ruled_out[i].why)));
    return list;
}

static json_t *seconds_or_null(usec_t v)
{
    return v == NUMBER_NONE ? json_null() : json_real((double)v / (double)USEC_PER_SEC);
}

static json_t *make_progress(const struct progress_summary *p)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "first_step",
                     number_or_null(p->first_step, STEP_NONE), "last_step",
                     number_or_null(p->last_step, STEP_NONE), "total_steps",
                     number_or_null(p->total_steps, NUMBER_NONE), "checkpoint_step",
                     number_or_null(p->checkpoint_step, STEP_NONE), "median_step_s",
                     seconds_or_null(p->median_step));
}

/* What every verdict has, that of an earlier attempt too. */
static json_t *make_verdict(const struct incident *in)
{
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:o, s:s, s:s, s:o, s:o, s:I}", "class",
        incident_class_name(in->class), "cause", cause_name(in->cause), "domain",
        domain_name(cause_domain(in->cause)), "confidence", json_real(in->confidence / 100.0),
        "advice", advice_name(in->advice), "culprits", make_culprits(&in->culprits), "signature",
        in->signature, "fingerprint", in->fingerprint, "summary", cli_json_text(in->summary),
        "progress", make_progress(&in->progress), "dropped", (json_int_t)in->dropped);

    assert(j);
    return j;
}

static json_t *make_attempts(const struct dossier *d)
{
    json_t *list = json_array();

    VEC_FOREACH (&d->attempts, a) {
        json_t *v = make_verdict(&a->incident);

        json_object_set_new(v, "file", cli_json_text(path_of(d, a->file)));
        json_object_set_new(v, "first_line", json_integer((json_int_t)a->first_line));
        json_object_set_new(v, "last_line", json_integer((json_int_t)a->last_line));
        json_array_append_new(list, v);
    }
    return list;
}

void report_json(FILE *f, const struct dossier *d)
{
    json_t *root = json_pack("{s:i}", "schema", SCHEMA), *files = json_array();
    json_t *verdict = make_verdict(&d->incident);

    VEC_FOREACH (&d->files, file)
        if (file->judged)
            json_array_append_new(files, cli_json_text(file->path));
    json_object_set_new(root, "files", files);
    json_object_set_new(root, "understood", json_boolean(!dossier_is_untold(d)));
    json_object_set_new(root, "incomplete", json_boolean(dossier_is_incomplete(d)));
    json_object_update(root, verdict);
    json_decref(verdict);
    json_object_set_new(root, "evidence", make_evidence(d, &d->incident));
    json_object_set_new(root, "ruled_out", make_ruled_out(&d->incident));
    json_object_set_new(root, "attempts", make_attempts(d));
    json_object_set_new(root, "attempts_dropped", json_integer((json_int_t)d->attempts_dropped));
    json_dumpf(root, f, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(root);
    fputc('\n', f);
}
