/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SOURCE_READER_REQUEST_H
#define REKNIT_SOURCE_READER_REQUEST_H

/* What reknit-reader is asked for the logs of an attempt (reader/serve.c), without marks. */

#include "source/readers.h"

#include <jansson.h>

/* uid: whose job it is. */
json_t *reader_request_new(const char *job, uid_t uid, uint32_t attempt, const struct log_paths *p);

/* Adds the logs; those that are in it already are no more. Whether all could be. */
bool reader_request_add(json_t *request, const struct log_paths *p);

#endif
