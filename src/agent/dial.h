/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_DIAL_H
#define REKNIT_AGENT_DIAL_H

/* A connection that is about to be: it can be written to once it is, or has failed (SO_ERROR).
 * address and port are numbers. Owned by the caller; negative errno. */
int dial(const char *address, const char *port);

/* It is there: 0, or why not. */
int dial_done(int fd);

#endif
