/* SPDX-License-Identifier: Apache-2.0 */

/* Draining nodes. A node that somebody else took out of service is never touched: the reason says
 * whose it is, and ours begins with a prefix of our own. */

#include "slurm/adapter.h"
#include "slurm/deadline.h"
#include "slurm/words.h"

#include <string.h>
#include <unistd.h>

#define REASON_PREFIX "reknit:"
#define REASON_MAX    256

/* Slurm's mark of who says so, "reason [root@2026-...]", is made by its commands, not stored. */
static bool is_ours(const node_info_t *n)
{
    return n->reason && str_startswith(n->reason, REASON_PREFIX);
}

static bool is_out_of_service(const node_info_t *n)
{
    return (n->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) ||
           (n->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;
}

static void send_update(update_node_msg_t *m, const node_info_t *n, struct answer *ret)
{
    m->node_names = n->name;
    deadline_acting();
    if (slurm_update_node(m) != SLURM_SUCCESS)
        answer_slurm(ret, slurm_get_errno(), true, "the update of the node");
}

static void drain(const struct request *r, const node_info_t *n, struct answer *ret)
{
    const char *reason = "";
    update_node_msg_t m;

    if (request_text(r, "reason", &reason, NULL) < 0 || !str_startswith(reason, REASON_PREFIX) ||
        strlen(reason) > REASON_MAX) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0,
                    "reason is no text that begins with " REASON_PREFIX);
        return;
    }
    if (is_out_of_service(n)) {
        answer_fail(ret, FAULT_ALREADY_DONE, 0, "it is out of service: %s",
                    n->reason ? n->reason : "no reason given");
        return;
    }
    slurm_init_update_node_msg(&m);
    m.node_state = NODE_STATE_DRAIN;
    m.reason = (char *)reason;
    m.reason_uid = geteuid();
    send_update(&m, n, ret);
}

static void undrain(const node_info_t *n, struct answer *ret)
{
    update_node_msg_t m;

    if (!(n->node_state & NODE_STATE_DRAIN)) {
        answer_fail(ret, FAULT_ALREADY_DONE, 0, "it is not drained");
        return;
    }
    if (!is_ours(n)) {
        answer_fail(ret, FAULT_NOT_ALLOWED, 0, "somebody else drained it: %s",
                    n->reason ? n->reason : "no reason given");
        return;
    }
    slurm_init_update_node_msg(&m);
    m.node_state = NODE_STATE_UNDRAIN;
    send_update(&m, n, ret);
}

/* `expect` of a node knows its reason alone. */
static bool is_expected(const struct request *r, const node_info_t *n, struct answer *ret)
{
    const json_t *expect = json_object_get(r->body, "expect");
    const json_t *reason = json_object_get(expect, "reason");

    if (!expect)
        return true;
    if (!json_is_object(expect) || json_object_size(expect) != 1 || !json_is_string(reason)) {
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "expect of a node is its reason");
        return false;
    }
    if (streq(json_string_value(reason), n->reason ? n->reason : ""))
        return true;
    answer_fail(ret, FAULT_CHANGED, 0, "its reason is another");
    ret->now = node_json(n);
    return false;
}

void node_set_answer(const struct request *r, struct answer *ret)
{
    const char *what = "";
    node_info_msg_t *list;
    node_info_t *node;

    if (!node_load(r, &list, &node, ret))
        return;
    request_text(r, "set", &what, NULL);
    if (!is_expected(r, node, ret))
        ;
    else if (streq(what, "drain"))
        drain(r, node, ret);
    else if (streq(what, "undrain"))
        undrain(node, ret);
    else
        answer_fail(ret, FAULT_INVALID_REQUEST, 0, "set is neither drain nor undrain");
    slurm_free_node_info_msg(list);
}
