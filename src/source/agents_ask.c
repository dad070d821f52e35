/* SPDX-License-Identifier: Apache-2.0 */

/* Agents can be asked to start readers of logs. What is asked is sealed, with a word of the agent's
 * own, for we are asked to prove who we are as they are. The answer is another connection, which
 * begins like all others: with a message of that node, under its seal, for this connection. That
 * it was believed is said to it, and then it is no agent's any more, but the reader's
 * (agents_take.c). */

#include "source/agents_inside.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>

struct asking {
    struct agents *agents;
    char node[NODE_NAME_LEN];
    char ask_with[WORD_LEN];
    int64_t question;
};

static void on_question_sealed(void *ctx, const json_t *answer)
{
    struct asking *q = ctx;
    struct agents *a = q->agents;
    const char *sealed = json_string_value(json_object_get(answer, "sealed"));
    const struct agent_node *n = agents_node(a, q->node);
    struct agent_link *c = n ? n->link : NULL;

    if (a->ending || !a->handlers.reader)
        ;
    else if (!sealed)
        a->handlers.reader(a->ctx, q->node, q->question, -1, "what it is asked cannot be sealed");
    else if (!c || !c->lines || !streq(c->words.ask_with, q->ask_with))
        a->handlers.reader(a->ctx, q->node, q->question, -1, "its agent is not connected");
    else
        lines_send(c->lines, json_pack("{s:s}", "sealed", sealed));
    free(q);
}

int agents_ask(struct agents *a, const char *node, int64_t question, uid_t uid, gid_t gid)
{
    const struct agent_node *n = agents_node(a, node);
    struct agent_link *c = n ? n->link : NULL;
    _cleanup_(freep) char *text = NULL;
    struct asking *q;
    json_t *j;
    int r;

    if (!c || !c->lines)
        return -ENOTCONN;
    j = json_pack("{s:i,s:s,s:s,s:I,s:{s:I}}", "v", AGENT_PROTOCOL, "ask_with", c->words.ask_with,
                  "node", n->name, "question", (json_int_t)question, "reader", "uid",
                  (json_int_t)uid);
    if (gid != (gid_t)-1)
        json_object_set_new(json_object_get(j, "reader"), "gid", json_integer(gid));
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    q = xnew(struct asking);
    *q = (struct asking){.agents = a, .question = question};
    STR_COPY(q->node, n->name);
    STR_COPY(q->ask_with, c->words.ask_with);
    r = helper_ask(a->opener, json_pack("{s:s, s:i}", "seal", text, "for", 0), on_question_sealed,
                   q);
    if (r < 0)
        free(q);
    return r;
}
