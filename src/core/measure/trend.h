/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CORE_MEASURE_TREND_H
#define REKNIT_CORE_MEASURE_TREND_H

/* What a series means: has the loss diverged for good, has the job become slower and stayed so. */

#include "core/measure/series.h"

enum divergence {
    DIVERGENCE_NONE,
    DIVERGENCE_NAN,  /* nan or inf up to the end */
    DIVERGENCE_RISE, /* left its level within tens of lines and stays up there */
    DIVERGENCE_CLIMB /* has been climbing for a long time */
};

/* collapsing: the optimizer skips nearly every update of late, so less rise is needed. */
/* The first of the last values that left the band, however few; NULL: the last one is within it. */
const struct sample *series_last_onset(const struct series *s);

enum divergence loss_diverged(const struct series *loss, bool collapsing);

/* Whether steps take longer than before and have done so long enough to be no hiccup. rate: the
 * throughput of the same lines, NULL = none is printed; equal throughput with longer steps is a
 * larger batch. */
bool steps_slowed(const struct series *time, const struct series *rate);

/* The same for programs that print a throughput and no times. */
bool rate_fell(const struct series *rate);

#endif
