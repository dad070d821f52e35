/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_LISTEN_H
#define REKNIT_API_LISTEN_H

#include "base/err.h"

#include <stdbool.h>

/* Sockets that listen, not blocking: a descriptor or a negative errno. */

/* Everybody may connect. One that a daemon left is replaced; -EADDRINUSE: one is alive there. */
int listen_unix(const char *path, struct err *e);
/* "127.0.0.1:6820", "[::1]:6820", "host:6820". */
int listen_tcp(const char *address, bool *ret_loopback, struct err *e);

#endif
