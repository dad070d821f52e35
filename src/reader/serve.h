/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_READER_SERVE_H
#define REKNIT_READER_SERVE_H

/* Follows the logs that it is asked to, over a pair of descriptors, until they are closed. */

#include "base/err.h"
#include "extract/matcher.h"

/* 0, or a negative errno with text. */
int serve(struct matcher *m, int in, int out, struct err *e);

#endif
