/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *log_program = "reknit";
static enum log_level most = LOG_LEVEL_WARNING;

static const char *const log_level_names[LOG_LEVEL_MAX] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};
DEFINE_NAMES(log_level, enum log_level, log_level_names);

void log_init(const char *program)
{
    log_program = program;
}

void log_set_level(enum log_level level)
{
    most = level;
}

void log_write(enum log_level level, const char *format, ...)
{
    static const struct {
        int syslog;
        const char *label;
    } levels[LOG_LEVEL_MAX] = {
        [LOG_LEVEL_ERROR] = {3, "error: "},
        [LOG_LEVEL_WARNING] = {4, "warning: "},
        [LOG_LEVEL_INFO] = {6, ""},
        [LOG_LEVEL_DEBUG] = {7, "debug: "},
    };
    char line[1024], text[900];
    va_list ap;

    if (level > most)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (getenv("JOURNAL_STREAM"))
        snprintf(line, sizeof(line), "<%d>%s%s\n", levels[level].syslog, levels[level].label, text);
    else
        snprintf(line, sizeof(line), "%s: %s%s\n", log_program, levels[level].label, text);
    fputs(line, stderr);
}
