/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_SIG_H
#define REKNIT_BASE_SIG_H

/* Signals: their names and numbers on Linux, and what a shell makes of them. */

#include <stdbool.h>
#include <stddef.h>

#define SIG_NAME_LEN 16

/* "SIGTERM"; "signal 35" of those that have no name. Returns buf. */
const char *sig_name(int sig, char buf[SIG_NAME_LEN]);

#define SIG_SENDER_LEN 64

/* Who asks a program to end with it, as far as that can be told: "the user (Ctrl-C)", "somebody or
 * the scheduler (SIGTERM)". Returns buf. */
const char *sig_sender(int sig, char buf[SIG_SENDER_LEN]);

/* Whether a key sends it: whoever sat at the terminal wanted the end. */
bool sig_is_of_key(int sig);

/* "SIGTERM", "term", or what a shell says of it, "Terminated". 0: no signal. */
int sig_from_word(const char *s, size_t len);

/* Exit status as a shell would give it, of a process that ended with `code`, or by `sig` unless 0.
 */
int sig_status(int code, int sig);

/* Whether it was `which` that ended the process, itself or behind a shell. */
bool sig_ended(int code, int sig, int which);

#endif
