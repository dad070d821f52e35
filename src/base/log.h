/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_LOG_H
#define REKNIT_BASE_LOG_H

#include "base/names.h"

/* Messages of the programs themselves, to stderr. Only main programs and the pump log; libraries
 * return errors. When stderr is the journal (JOURNAL_STREAM), lines carry the <N> priority. */

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_MAX,
    LOG_LEVEL_INVALID = -EINVAL,
};
DECLARE_NAMES(log_level, enum log_level);

/* Program name in front of every line. */
void log_init(const char *program);
/* What is less urgent is left out; LOG_LEVEL_WARNING unless said. */
void log_set_level(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
