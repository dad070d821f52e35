/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_TERMINAL_H
#define REKNIT_SOURCE_TERMINAL_H

/* The user's terminal on one side, the job's own pseudo-terminal on the other. The job gets one
 * when our output goes to a terminal, so that its bars and colours go on. */

#include <stdbool.h>
#include <termios.h>

struct terminal {
    int user;             /* a descriptor of the user's terminal, above 2; -1: there is none */
    bool interactive;     /* our standard input is it: keys are forwarded */
    bool raw;             /* its settings are changed at the moment */
    struct termios saved; /* its settings as we found them */
};

/* Looks at our standard streams; changes nothing. */
void terminal_init(struct terminal *t);
void terminal_done(struct terminal *t);

/* A new pseudo-terminal of the user's size and settings. 0 or negative errno. */
int terminal_open_pty(const struct terminal *t, int *ret_master, int *ret_slave);
void terminal_copy_size(const struct terminal *t, int master);

/* Takes the user's terminal over: keys arrive at once and unechoed (the job's terminal echoes and
 * edits), signal keys still signal us. Only while we are in its foreground. */
void terminal_enter(struct terminal *t);
void terminal_leave(struct terminal *t); /* gives it back as it was */
bool terminal_is_foreground(const struct terminal *t);

#endif
