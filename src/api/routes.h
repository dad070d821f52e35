/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_API_ROUTES_H
#define REKNIT_API_ROUTES_H

/* What can be asked for: one table. docs/openapi.json describes the same to programs; a test
 * compares the two. */

#include "api/answer.h"
#include "api/store.h"

/* What stands for {..} in the path. */
struct route_params {
    char name[NODE_NAME_LEN]; /* {job} or {node} */
    uint64_t seq;
};

typedef void (*route_fn)(struct store *store, const struct api_request *r,
                         const struct route_params *p, struct api_answer *ret);

struct route {
    const char *method;
    const char *path;                                               /* "/v1/jobs/{job}/events" */
    enum route_for { FOR_USERS, FOR_OPERATORS, FOR_MONITORS } whom; /* each, also for operators */
    route_fn fn;
};

extern const struct route routes[]; /* ends with one without a method */

/* NULL: there is no such path (ret_allow "") or not with that method (the methods that there are).
 */
const struct route *route_find(const char *method, const char *path, struct route_params *ret,
                               char ret_allow[32]);

/* Asks; never fails: whatever is wrong is an answer too. */
void route_answer(struct store *store, const struct api_request *r, struct api_answer *ret);

/* For handlers: the job of that name that he may see. False, with the answer: there is none. */
bool answer_found(struct store *store, const struct api_request *r, const char *name,
                  struct found_job *ret, struct api_answer *a);
/* For handlers: the journal could not be read. */
void answer_no_journal(struct api_answer *a, const struct err *e);

/* The handlers, by the file they are in. */
#define ROUTE_HANDLER(name)                                                                        \
    void name(struct store *store, const struct api_request *r, const struct route_params *p,      \
              struct api_answer *ret)
ROUTE_HANDLER(get_jobs); /* jobs.c */
ROUTE_HANDLER(get_job);
ROUTE_HANDLER(get_attempts); /* history.c */
ROUTE_HANDLER(get_job_events);
ROUTE_HANDLER(get_events);
ROUTE_HANDLER(get_incidents);
ROUTE_HANDLER(get_decisions); /* decisions.c */
ROUTE_HANDLER(post_approve);
ROUTE_HANDLER(post_reject);
ROUTE_HANDLER(post_mode);
ROUTE_HANDLER(post_freeze);
ROUTE_HANDLER(post_thaw);
ROUTE_HANDLER(get_nodes); /* nodes.c */
ROUTE_HANDLER(get_node);
ROUTE_HANDLER(post_resume);
ROUTE_HANDLER(post_rearm);
ROUTE_HANDLER(get_fleet);         /* fleet.c */
ROUTE_HANDLER(post_alertmanager); /* ingest.c */
ROUTE_HANDLER(get_agents);        /* state.c */
ROUTE_HANDLER(get_health);
ROUTE_HANDLER(get_openapi);
ROUTE_HANDLER(get_metrics);

#endif
