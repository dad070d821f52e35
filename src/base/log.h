/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_LOG_H
#define REKNIT_BASE_LOG_H

/* Messages of the programs themselves, to stderr. Only main programs and the pump log; libraries
 * return errors. When stderr is the journal (JOURNAL_STREAM), lines carry the <N> priority. */

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

/* Program name in front of every line, and the most verbose level shown. */
void log_init(const char *program, enum log_level max);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
