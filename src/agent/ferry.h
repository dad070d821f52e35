/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_AGENT_FERRY_H
#define REKNIT_AGENT_FERRY_H

/* Carries bytes between two sockets, both ways, with a bounded buffer for each: a side that takes
 * nothing holds the other up. What came before a side's end is still carried over. */

#include <systemd/sd-event.h>

struct ferry;

/* Both sockets are its own from now on, whatever happens; `ended` is called once, from the loop,
 * and may free it. NULL when the loop refuses. */
struct ferry *ferry_new(sd_event *event, int a, int b, void (*ended)(void *ctx), void *ctx);
struct ferry *ferry_free(struct ferry *f);

#endif
