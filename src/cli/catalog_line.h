/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_CATALOG_LINE_H
#define REKNIT_CLI_CATALOG_LINE_H

/* What the catalogue makes of one line, for `reknit catalog explain`. */

#include "extract/matcher.h"

#include <stdio.h>

void catalog_line_text(FILE *f, struct matcher *m, const char *raw, size_t len);
void catalog_line_json(FILE *f, struct matcher *m, const char *raw, size_t len); /* one object */

#endif
