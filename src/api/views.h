/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_VIEWS_H
#define REKNIT_API_VIEWS_H

/* The state as JSON. Times are microseconds since 1970, and left out where there is none. All
 * objects are the caller's. */

#include "api/store.h"

#include <jansson.h>

json_t *view_stopped(const struct nodes *n); /* rules that convicted too many nodes */

/* Sets a member, if there is anything to say. */
void view_text(json_t *j, const char *key, const char *s);
void view_time(json_t *j, const char *key, usec_t t); /* none of 0, USEC_NEVER, USEC_UNKNOWN */
void view_number(json_t *j, const char *key, int64_t v, int64_t absent);

/* Reknit holds it, and there is no note of that: should reknitd be gone, nobody frees it. */
bool view_is_held_unnoted(const struct job *j);

json_t *view_job(const struct store *store, const struct job *j);
json_t *view_past_job(const struct found_job *f); /* that only the journal knows */

/* One of an incident. */
json_t *view_incident(const struct incident *i, bool full);
json_t *view_decision(const struct decision_facts *f);

/* How a proposal stands. */
enum proposal {
    PROPOSAL_NONE, /* nothing waits for approval */
    PROPOSAL_OPEN,
    PROPOSAL_APPROVED,
    PROPOSAL_REJECTED,
    PROPOSAL_EXPIRED,
    PROPOSAL_MAX,
    PROPOSAL_INVALID = -EINVAL,
};
DECLARE_NAMES(proposal, enum proposal);
/* now: the model's own time stands still while nothing happens. */
enum proposal view_proposal(const struct model *m, const struct job *j, usec_t now);

#endif
