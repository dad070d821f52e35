/* SPDX-License-Identifier: Apache-2.0 */

/* Datagrams and messages of nodes: whatever is in one, it is refused with a text and nothing of it
 * is used, or it says the same again when it is written down, and a journal may hold it. */

#include "base/cleanup.h"
#include "core/model/event.h"
#include "wire/node_message.h"

#include <assert.h>
#include <string.h>
#include <sys/wait.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_signal(const struct signal *s)
{
    static struct event e;

    e = (struct event){.kind = EVENT_SIGNAL, .job = "4711-1", .attempt = 1, .signal = *s};
    assert(event_is_sane(&e));
}

static void check_fact(const struct node_message *m)
{
    static struct event e;

    e = (struct event){.kind = EVENT_NODE_FACT, .fact = m->fact};
    assert(event_is_sane(&e) && strcmp(m->fact.node, m->node) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node_message m, again, untouched;
    _cleanup_(freep) char *text = NULL, *text_again = NULL;
    struct err e = {0};
    json_t *j;

    m = untouched = (struct node_message){.job = 4711};
    if (node_message_parse((const char *)data, size, &m, &e) < 0) {
        assert(e.code == -EBADMSG && strlen(e.text) > 4);
        assert(memcmp(&m, &untouched, sizeof(m)) == 0);
        return 0;
    }
    assert(node_message_kind_name(m.kind));
    if (m.kind == NODE_MESSAGE_ACTIVITY)
        check_signal(&m.signal);
    if (m.kind == NODE_MESSAGE_FACT)
        check_fact(&m);
    if (m.kind == NODE_MESSAGE_EXIT)
        assert(WIFEXITED(m.task.status) || WTERMSIG(m.task.status) <= SIGNAL_NUMBER_MAX);
    for (const char *p = NULL; m.kind == NODE_MESSAGE_LOGS && (p = node_paths_next(&m.paths, p));)
        assert(node_path_is_good(p, strlen(p)));
    j = node_message_to_json(&m);
    text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(j);
    assert(text && node_message_parse(text, strlen(text), &again, &e) == 0);
    j = node_message_to_json(&again);
    text_again = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(j);
    assert(strcmp(text, text_again) == 0);
    return 0;
}
