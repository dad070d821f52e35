/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/greeting.h"

#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

static int check_protocol(const json_t *line, struct err *e)
{
    json_int_t protocol = json_integer_value(json_object_get(line, "reknit"));

    if (protocol <= 0)
        return err_set(e, -EBADMSG, "it does not greet as it should");
    if (protocol != AGENT_PROTOCOL)
        return err_set(e, -EPROTO,
                       "it speaks protocol %lld and this side %d: one of them is too old",
                       (long long)protocol, AGENT_PROTOCOL);
    return 0;
}

static bool is_word(const char *text)
{
    return text && *text && strlen(text) < WORD_LEN;
}

int greeting_take_word(const json_t *line, struct greeting *g, struct err *e)
{
    const char *word = json_string_value(json_object_get(line, "word"));
    int r = check_protocol(line, e);

    if (r < 0)
        return r;
    if (!is_word(word))
        return err_set(e, -EBADMSG, "it does not greet as it should");
    STR_COPY(g->word, word);
    return 0;
}

int greeting_take_hello(const json_t *line, struct greeting *g, struct err *e)
{
    const char *ask_with = json_string_value(json_object_get(line, "ask_with"));
    const char *node = json_string_value(json_object_get(line, "node"));
    int r = check_protocol(line, e);

    if (r < 0)
        return r;
    if (!is_word(ask_with) || !node || !*node || strlen(node) >= NODE_NAME_LEN)
        return err_set(e, -EBADMSG, "it does not greet as it should");
    STR_COPY(g->ask_with, ask_with);
    STR_COPY(g->node, node);
    return 0;
}

json_t *greeting_hello(const struct greeting *g)
{
    return json_pack("{s:i, s:s, s:s}", "reknit", AGENT_PROTOCOL, "ask_with", g->ask_with, "node",
                     g->node);
}

json_t *greeting_to_seal(const struct greeting *g)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s}", "v", AGENT_PROTOCOL, "greeting", g->word,
                     "ask_with", g->ask_with, "node", g->node, "at", g->at);
}

static bool says(const json_t *j, const char *key, const char *text)
{
    const char *s = json_string_value(json_object_get(j, key));

    return s && *text && streq(s, text);
}

int greeting_check(const char *text, const struct greeting *g, struct err *e)
{
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *at = json_string_value(json_object_get(j, "at"));
    int r = 0;

    if (json_integer_value(json_object_get(j, "v")) != AGENT_PROTOCOL ||
        !says(j, "greeting", g->word) || !says(j, "ask_with", g->ask_with) ||
        !says(j, "node", g->node))
        r = err_set(e, -EBADMSG, "its greeting was sealed for another connection");
    else if (!says(j, "at", g->at))
        r = err_set(e, -EBADMSG,
                    "reknitd's greeting was sealed at %.80s, and this connection goes to %s: "
                    "something between passes it on",
                    at ? at : "?", g->at);
    json_decref(j);
    return r;
}

bool greeting_place(int fd, bool here, char ret[GREETING_PLACE_LEN])
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    char host[64], port[8];
    int r = here ? getsockname(fd, (struct sockaddr *)&at, &len)
                 : getpeername(fd, (struct sockaddr *)&at, &len);

    if (r < 0 || getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
                             NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    host[strcspn(host, "%")] = '\0'; /* an interface is called differently on either side */
    str_printf(ret, GREETING_PLACE_LEN, "%s port %s",
               host + (str_startswith(host, "::ffff:") ? strlen("::ffff:") : 0), port);
    return true;
}
