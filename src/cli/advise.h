/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_ADVISE_H
#define REKNIT_CLI_ADVISE_H

/* What a person does next, at 3 a.m.: sentences, and commands to paste. What stands in them in
 * CAPITALS is to be filled in; what is put in from a log is a plain name. */

#include "cli/dossier.h"

typedef void (*advise_fn)(void *ctx, bool is_command, const char *text);

void advise(const struct dossier *d, advise_fn fn, void *ctx);

#endif
