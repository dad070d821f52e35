/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_BASE_LOG_H
#define REKNIT_BASE_LOG_H

/* Messages of the programs themselves, to stderr. Only main programs and the pump log; libraries
 * return errors. When stderr is the journal (JOURNAL_STREAM), lines carry the <N> priority. */

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
};

/* Program name in front of every line. */
void log_init(const char *program);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)

#endif
