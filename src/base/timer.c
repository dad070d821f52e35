/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer.h"

#include <assert.h>

#define ACCURACY USEC_PER_MSEC

int timer_new(sd_event *event, sd_event_time_handler_t fn, void *ctx, sd_event_source **ret)
{
    sd_event_source *timer;
    int r = sd_event_add_time(event, &timer, CLOCK_MONOTONIC, 0, ACCURACY, fn, ctx);

    if (r < 0)
        return r;
    timer_stop(timer);
    *ret = timer;
    return 0;
}

void timer_arm(sd_event_source *timer, usec_t due)
{
    assert(timer);
    sd_event_source_set_time(timer, due > 0 ? (uint64_t)due : 0);
    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

void timer_stop(sd_event_source *timer)
{
    sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

bool timer_is_armed(sd_event_source *timer)
{
    return sd_event_source_get_enabled(timer, NULL) > 0;
}
