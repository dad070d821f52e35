/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_NODES_H
#define REKNIT_CLI_NODES_H

#include <stdbool.h>

/* Whether reknitd knows something of a node of that name that we may see. */
bool nodes_know(const char *node);
/* All that it knows. An exit status. */
int nodes_explain(const char *node, bool json);

#endif
