/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_EXTRACT_TRACEBACK_H
#define REKNIT_EXTRACT_TRACEBACK_H

/* Python tracebacks, of several processes at once: which line is the exception, and where in the
 * user's own code it came from. */

#include "base/cleanup.h"
#include "extract/line.h"

#define FRAME_TEXT_MAX 120

enum traceback_part {
    TRACEBACK_NONE,      /* the line belongs to none */
    TRACEBACK_BODY,      /* header, frame, source line, or what links two tracebacks */
    TRACEBACK_EXCEPTION, /* the line that names the exception */
    TRACEBACK_IGNORED,   /* any line of one that the interpreter prints and then goes on */
};

struct tracebacks;

struct tracebacks *tracebacks_new(void);
struct tracebacks *tracebacks_free(struct tracebacks *t);
DEFINE_CLEANUP(struct tracebacks *, tracebacks_free);

/* Feeds the lines of a log in order. For an exception, ret_frame is the deepest frame outside of
 * installed packages, "train.py:71 in step", or "". */
enum traceback_part tracebacks_feed(struct tracebacks *t, const struct line *line,
                                    char ret_frame[FRAME_TEXT_MAX]);

/* Whether the message is an exception as the end of a traceback prints it, "package.SomeError:
 * why", wherever its traceback went: many collectors keep only the last line. */
bool line_is_bare_exception(const struct line *line);

#endif
