/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_REPORT_H
#define REKNIT_CLI_REPORT_H

/* A verdict for a person, and for a program. */

#include "cli/dossier.h"

#include <stdio.h>

struct report_style {
    bool colour;
    int width; /* columns, at least 60 */
};

/* Colours only on a terminal, and not when NO_COLOR is set. */
struct report_style report_style_of(FILE *f);

void report_text(FILE *f, const struct dossier *d, const struct report_style *style);
void report_json(FILE *f, const struct dossier *d); /* one object, one line */

#endif
