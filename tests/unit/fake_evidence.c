/* SPDX-License-Identifier: Apache-2.0 */

/* A judge that believes whatever it is told, in place of core/attribute: the last HIT with
 * ROLE_ROOT is the verdict and its evidence, its signature the fingerprint, and a node without a
 * name is the only one. So tests of the loop say exactly which verdict they want. */

#include "core/attribute/attribute.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct evidence {
    bool any, finished;
    struct signal root;
    struct exit_fact exit;
    bool exited;
};

struct evidence *evidence_new(void)
{
    return xnew(struct evidence);
}

struct evidence *evidence_free(struct evidence *e)
{
    free(e);
    return NULL;
}

void evidence_add(struct evidence *e, const struct signal *s)
{
    if (s->kind == SIGNAL_HIT && s->role == ROLE_ROOT) {
        e->any = true;
        e->root = *s;
    }
    e->finished |= s->role == ROLE_FINISH;
    if (s->kind == SIGNAL_EXIT) {
        e->exited = true;
        e->exit = s->exit;
    }
}

static void set_fingerprint(struct incident *i, const char *text)
{
    snprintf(i->fingerprint, sizeof(i->fingerprint), "%016" PRIx64,
             hash_bytes(HASH_INIT, text, strlen(text)));
}

static void blame_nodes(const struct signal *root, const char *only, struct culprits *ret)
{
    bool unnamed = root->blame == BLAME_NODE && !root->who.node[0];

    STR_COPY(ret->nodes[0], unnamed ? only : root->who.node);
    ret->n_nodes = ret->nodes[0][0] != '\0';
}

void attribute_on_node(const struct evidence *e, enum ending ending, const char *node,
                       struct incident *ret)
{
    char text[64];

    memset(ret, 0, sizeof(*ret));
    ret->class = ending == ENDING_HUNG        ? CLASS_HANG
                 : ending == ENDING_REQUESTED ? CLASS_INTERRUPTED
                 : ending == ENDING_BY_USER   ? CLASS_INTERRUPTED
                                              : CLASS_CRASH;
    ret->finished = e->finished;
    ret->cause = CAUSE_UNKNOWN;
    ret->advice = ADVICE_RESTART;
    ret->confidence = 30;
    snprintf(text, sizeof(text), "ending %d, code %d, signal %d", ending, e->exit.code,
             e->exit.signal);
    if (e->any) {
        ret->cause = e->root.cause;
        ret->advice = e->root.advice;
        ret->confidence = e->root.confidence;
        STR_COPY(ret->signature, e->root.signature);
        if (ret->cause == CAUSE_NONE)
            ret->class = CLASS_HEALTHY;
        if (cause_domain(ret->cause) == DOMAIN_SCHEDULER)
            ret->class = CLASS_INTERRUPTED;
        snprintf(text, sizeof(text), "%s", e->root.signature);
        if (e->root.who.rank != RANK_NONE)
            ret->culprits.ranks[ret->culprits.n_ranks++] = e->root.who.rank;
        ret->n_evidence = 1;
        ret->evidence[0] = (struct evidence_line){.file = e->root.file, .line = e->root.line};
        blame_nodes(&e->root, node, &ret->culprits);
        if (e->root.who.device[0]) {
            ret->culprits.n_devices = 1;
            STR_COPY(ret->culprits.devices[0], e->root.who.device);
        }
    }
    set_fingerprint(ret, text);
    STR_COPY(ret->summary, text);
}
