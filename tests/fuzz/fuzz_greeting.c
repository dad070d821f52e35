/* SPDX-License-Identifier: Apache-2.0 */

/* The lines by which a connection between an agent and reknitd begins: whatever one is, it is
 * refused and nothing of it is used, or what is made of it fits and can be sealed; and what is
 * taken for this connection's greeting names this connection. */

#include "base/cleanup.h"
#include "base/str.h"
#include "wire/greeting.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct greeting ours = {
    .word = "w7", .ask_with = "a1", .node = "n7", .at = "10.0.0.1 port 6821"};

static void check_line(const json_t *line, bool hello)
{
    struct greeting g = ours;
    struct err e = {0};
    int r = hello ? greeting_take_hello(line, &g, &e) : greeting_take_word(line, &g, &e);
    _cleanup_(freep) char *text = NULL;
    json_t *j;

    if (r < 0) {
        assert((r == -EBADMSG || r == -EPROTO) && strlen(e.text) > 4);
        assert(memcmp(&g, &ours, sizeof(g)) == 0);
        return;
    }
    assert(*g.word && *g.ask_with && *g.node);
    j = greeting_to_seal(&g);
    text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    assert(text && greeting_check(text, &g, &e) == 0);
    j = greeting_hello(&g);
    assert(j && greeting_take_hello(j, &g, &e) == 0);
    json_decref(j);
}

static void check_sealed(const char *text)
{
    struct err e = {0};
    json_t *j;

    if (greeting_check(text, &ours, &e) < 0) {
        assert(e.code == -EBADMSG && strlen(e.text) > 4);
        return;
    }
    j = json_loads(text, 0, NULL);
    assert(streq(json_string_value(json_object_get(j, "greeting")), ours.word));
    assert(streq(json_string_value(json_object_get(j, "ask_with")), ours.ask_with));
    assert(streq(json_string_value(json_object_get(j, "node")), ours.node));
    assert(streq(json_string_value(json_object_get(j, "at")), ours.at));
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *text = strndup((const char *)data, size);
    json_t *line = json_loadb((const char *)data, size, 0, NULL);

    check_line(line, false);
    check_line(line, true);
    check_sealed(text);
    json_decref(line);
    return 0;
}
