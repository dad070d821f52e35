/* SPDX-License-Identifier: Apache-2.0 */

/* Alerts of other systems become facts of nodes, once each: an Alertmanager repeats them as long as
 * they last. What one asks for, the configuration says; without a word of it, for nothing. */

#include "daemon/daemon.h"

#include "base/str.h"
#include "source/sched_nodes.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define SIGNATURE_PREFIX "alert."
#define SOFT             40 /* confidence of what the configuration says nothing of */
#define CONFIGURED       80

static const struct alert_rule *rule_of(const struct daemon_config *c, const char *name)
{
    for (unsigned i = 0; i < c->n_alerts; i++)
        if (fnmatch(c->alerts[i].alert, name, 0) == 0)
            return &c->alerts[i];
    return NULL;
}

static void name_signature(const char *name, char *ret, size_t size)
{
    size_t n = strlen(SIGNATURE_PREFIX);

    str_copy(ret, size, SIGNATURE_PREFIX);
    for (; *name && n + 1 < size; name++)
        ret[n++] = isalnum((unsigned char)*name) || strchr("_-", *name) ? *name : '_';
    ret[n] = '\0';
}

/* What it asks for may be configured otherwise since: then it is news, unless it is over. */
static bool stands(const struct daemon *d, const struct node_fact *f)
{
    const struct node_ledger *l = nodes_find(&pump_model(d->pump)->nodes, f->node);

    if (l)
        VEC_FOREACH (&l->troubles, t)
            if (streq(t->signature, f->signal.signature) &&
                streq(t->device, f->signal.who.device) &&
                (f->cleared || t->isolation == f->isolation))
                return true;
    return false;
}

int ingest_alert(struct daemon *d, const struct api_alert *a)
{
    const struct alert_rule *rule = rule_of(d->config, a->name);
    struct event e = {.kind = EVENT_NODE_FACT};
    struct node_fact *f = &e.fact;
    struct sched_node_word word;

    if (!sched_watch_word(d->sched, a->node, &word))
        return -ENOENT;
    STR_COPY(f->node, a->node);
    f->count = 1;
    f->cleared = a->over;
    f->isolation = rule ? rule->isolation : ISOLATION_NONE;
    f->signal = signal_make(SIGNAL_HIT, PROVENANCE_MONITOR);
    f->signal.role = rule ? ROLE_ROOT : ROLE_SYMPTOM;
    f->signal.layer = LAYER_KERNEL;
    f->signal.cause = rule ? rule->cause : CAUSE_UNKNOWN;
    f->signal.blame = BLAME_NODE;
    f->signal.confidence = rule ? CONFIGURED : SOFT;
    name_signature(a->name, f->signal.signature, sizeof(f->signal.signature));
    str_sanitize(f->signal.text, sizeof(f->signal.text), a->text, strlen(a->text));
    str_sanitize(f->signal.who.device, sizeof(f->signal.who.device), a->device, strlen(a->device));
    STR_COPY(f->signal.who.node, a->node);
    if (stands(d, f) != a->over)
        return 0;
    return pump_input(d->pump, &e) > 0 ? 1 : -EINVAL;
}
