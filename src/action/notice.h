/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_ACTION_NOTICE_H
#define REKNIT_ACTION_NOTICE_H

/* What people are told of, and in which words: JSON as Slack takes it, and what understands Slack.
 * Names and texts of jobs are hostile: they can mention nobody, link nowhere and mark up nothing.
 */

#include "core/model/event.h"

#include <jansson.h>

#define NOTICE_NODES_MAX 4

enum notice_kind {
    NOTICE_DECISION,
    NOTICE_REQUEST, /* somebody froze or thawed everything */
    NOTICE_NODE, /* one is sick; without nodes: what several share is, or a rule of ours is stopped
                  */
    NOTICE_FAILURE, /* what was ordered did not come about, and is not tried again */
};

struct notice {
    enum notice_kind kind;
    uint64_t seq; /* of the event that it is about */
    usec_t at;
    char job[JOB_NAME_LEN]; /* key */
    char label[32], name[64], user[64], partition[64];
    uint32_t attempt;
    enum incident_class class; /* as the cause: of the verdict, if that is known */
    enum cause cause;
    char summary[320];
    char path[LOG_PATH_LEN]; /* where the decisive line stands; "" = not known */
    uint64_t line;
    enum action action;
    enum mode mode;
    char rule[48], why[256];
    uint32_t n_nodes; /* that the job is kept away from; of a failure: that it is not */
    char nodes[NOTICE_NODES_MAX][NODE_NAME_LEN];
    usec_t proposal_life; /* 0: it does not wait for approval */
    bool lapsed;          /* it was proposed, and nobody has approved it */
    enum intent failed;   /* of a failure: REQUEUE, START (not seen), AMEND (the nodes),
                             CANCEL, HOLD */
    enum request request;
    char who[64];
};

/* One message about all of them, in which they are counted if they are more than one. The caller's.
 * more: how many there were besides, that are not known any more. */
json_t *notice_message(const char *cluster, const struct notice *n, size_t count, uint64_t more);

/* Adds text so that it means nothing but itself. */
struct strbuf;
void notice_escape(struct strbuf *out, const char *text);

#endif
