/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_GREETING_H
#define REKNIT_WIRE_GREETING_H

/* How a connection between an agent and reknitd begins: each makes up a word, and reknitd seals
 * both, with whom and where the connection is, before the agent says anything that matters.
 *
 *   reknitd: {"reknit":2,"word":"..."}
 *   agent:   {"reknit":2,"ask_with":"...","node":"n7"}
 *   reknitd: {"sealed":"..."}  of {"v":2,"greeting":"...","ask_with":"...","node":"n7","at":"..."}
 *
 * `greeting` is reknitd's word. It is not called "word" there, so that what reknitd seals for
 * whoever asks is never taken for a message of an agent's, whose seal may be the same key.
 *
 * `at` is where the connection ends at reknitd, as either side sees it. So a stranger who answers
 * somewhere else, and passes the words on to reknitd, has nothing that an agent believes. */

#include "wire/node_message.h"
#include "wire/word.h"

#define GREETING_PLACE_LEN 80

struct greeting {
    char word[WORD_LEN];     /* reknitd's */
    char ask_with[WORD_LEN]; /* the agent's */
    char node[NODE_NAME_LEN];
    char at[GREETING_PLACE_LEN]; /* "10.0.0.1 port 6821" */
};

/* -EPROTO: its protocol is another one; -EBADMSG: it is no such line. g is untouched then. */
int greeting_take_word(const json_t *line, struct greeting *g, struct err *e);
int greeting_take_hello(const json_t *line, struct greeting *g, struct err *e);

json_t *greeting_hello(const struct greeting *g);
json_t *greeting_to_seal(const struct greeting *g);
/* Whether what was sealed is the greeting of this connection: 0, or -EBADMSG. */
int greeting_check(const char *text, const struct greeting *g, struct err *e);

/* Where the socket ends: here, or there. False = the kernel does not say. */
bool greeting_place(int fd, bool here, char ret[GREETING_PLACE_LEN]);

#endif
