/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_TIMER_H
#define REKNIT_BASE_TIMER_H

/* Timers of an event loop. What can fail, the lack of memory or descriptors, fails when a timer is
 * made; so it is made where an error can be returned, and armed where none can. */

#include "base/time.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

/* Negative errno. Not armed yet. Ends with sd_event_source_disable_unref(). */
int timer_new(sd_event *event, sd_event_time_handler_t fn, void *ctx, sd_event_source **ret);

/* Goes off once, a moment after `due` (of mono_us()), in place of whenever it was to. */
void timer_arm(sd_event_source *timer, usec_t due);
void timer_stop(sd_event_source *timer);
bool timer_is_armed(sd_event_source *timer);

#endif
