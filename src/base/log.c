/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *log_program = "reknit";

void log_init(const char *program)
{
    log_program = program;
}

void log_write(enum log_level level, const char *format, ...)
{
    static const struct {
        int syslog;
        const char *label;
    } levels[] = {
        [LOG_LEVEL_ERROR] = {3, "error: "},
        [LOG_LEVEL_WARNING] = {4, "warning: "},
    };
    char line[1024], text[900];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (getenv("JOURNAL_STREAM"))
        snprintf(line, sizeof(line), "<%d>%s%s\n", levels[level].syslog, levels[level].label, text);
    else
        snprintf(line, sizeof(line), "%s: %s%s\n", log_program, levels[level].label, text);
    fputs(line, stderr);
}
