/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd's end of the agents alone, for tests: usage: agents_listener ADDRESS:PORT NODES SEAL...
 * Every node is at that address, or, with NODES "own", where its name says.
 * Says what it hears in lines of JSON; the first says its port. Ends with its standard input. */

#include "source/agents.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(json_t *j)
{
    json_dumpf(j, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(j);
}

static const char *own_address = "127.0.0.1";

static const char *address_of(void *ctx, const char *node)
{
    return strcmp(node, "stranger") == 0 ? NULL : own_address ? own_address : node;
}

static enum agent_taken on_message(void *ctx, const struct node_message *m,
                                   const struct agent_receipt *r)
{
    say(json_pack("{s:o}", "message", node_message_to_json(m)));
    return AGENT_TAKEN;
}

static void on_node(void *ctx, const char *node, const char *trouble)
{
    say(json_pack("{s:s, s:s?}", "node", node, "trouble", trouble));
}

static void on_refused(void *ctx, const char *address, const char *why)
{
    say(json_pack("{s:s, s:s}", "refused", why, "from", address));
}

static int on_stdin(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
    char buffer[64];

    return read(fd, buffer, sizeof(buffer)) <= 0 ? sd_event_exit(userdata, 0) : 0;
}

int main(int argc, char **argv)
{
    static const struct agents_handlers handlers = {address_of, on_message, on_node, on_refused};
    struct agents_config c;
    struct agents *agents;
    struct agents_counts counts;
    sd_event *event;
    struct err e;

    if (argc < 4 || sd_event_default(&event) < 0)
        return 2;
    if (strcmp(argv[2], "own") == 0)
        own_address = NULL;
    c = (struct agents_config){.listen = argv[1], .seal = (const char *const *)argv + 3};
    if (agents_new(event, &c, &handlers, NULL, &agents, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, event);
    say(json_pack("{s:i}", "port", agents_port(agents)));
    sd_event_loop(event);
    agents_counts(agents, &counts);
    say(json_pack("{s:I, s:I, s:I}", "messages", (json_int_t)counts.messages, "duplicates",
                  (json_int_t)counts.duplicates, "refused", (json_int_t)counts.refused));
    agents_free(agents);
    sd_event_unref(event);
    return 0;
}
