/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CLI_ASK_ADAPTER_H
#define REKNIT_CLI_ASK_ADAPTER_H

/* The scheduler's adapter without a daemon: questions one after the other, each with a deadline. */

#include "base/cleanup.h"
#include "config/daemon_file.h"

#include <jansson.h>

struct ask_adapter;

/* Starts the one that reknitd would, as whoever we are, and waits until it says hello. ret_path (of
 * size bytes) is the program, also when it fails. */
int ask_adapter_new(const struct daemon_config *c, struct ask_adapter **ret, char *ret_path,
                    size_t size, struct err *e);
struct ask_adapter *ask_adapter_free(struct ask_adapter *a);
DEFINE_CLEANUP(struct ask_adapter *, ask_adapter_free);

const json_t *ask_adapter_hello(const struct ask_adapter *a); /* what it said, borrowed */

bool ask_adapter_is_up(const struct ask_adapter *a); /* it has not ended since it said hello */

/* Takes the request. The answer, borrowed until the next question; NULL: e says why not. */
const json_t *ask_adapter(struct ask_adapter *a, json_t *request, struct err *e);

#endif
