/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_CODEC_H
#define REKNIT_WIRE_CODEC_H

/* What an event carries, as canonical JSON and back, by the field tables of the model: keys
 * sorted, no blanks, what is absent left out. Equal events give equal text. */

#include "base/err.h"
#include "core/model/event.h"

#include <jansson.h>

/* The body alone (seq, parent, time, kind, job and attempt are columns); "{}" when the kind
 * carries nothing. The caller frees it. */
char *codec_encode(const struct event *e);

/* Fills the body of ret, whose kind is set. -EBADMSG names the member. */
int codec_decode(const char *json, struct event *ret, struct err *e);

/* The whole event for people and programs: header and body in one object. Owned by the caller. */
json_t *codec_event_json(const struct event *e);

/* The other way: a whole event from such an object. -EBADMSG names the member. */
int codec_json_event(const json_t *j, struct event *ret, struct err *e);

/* For events of a program that is not trusted: its texts become what may be stored and shown. */
void codec_sanitize(struct event *e);

/* The complaint about an event that is not sane (event_is_sane()): -EBADMSG. */
int codec_refuse_numbers(struct err *e);

#endif
