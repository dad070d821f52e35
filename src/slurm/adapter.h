/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_SLURM_ADAPTER_H
#define REKNIT_SLURM_ADAPTER_H

/* The requests, each answered by one function. Everything here blocks as long as slurmctld does;
 * deadline.h ends that. */

#include "slurm/expect.h"
#include "slurm/protocol.h"

#include <slurm/slurm.h>

/* What is kept between requests: what the client was told, what Slurm said last. */
struct adapter;
struct adapter *adapter_new(void);
struct adapter *adapter_free(struct adapter *a);

/* Answers one request, whatever it is. */
void adapter_answer(struct adapter *a, const struct request *r, struct answer *ret);

/* Reads of lists (jobs.c, nodes.c). They keep the last list, which Slurm says not to have changed
 * more often than not. */
struct jobs;
struct jobs *jobs_new(void);
struct jobs *jobs_free(struct jobs *j);
void jobs_answer(struct jobs *j, const struct request *r, struct answer *ret);
struct nodes;
struct nodes *nodes_new(void);
struct nodes *nodes_free(struct nodes *n);
void nodes_answer(struct nodes *n, const struct request *r, struct answer *ret);

/* The rest (jobs.c, nodes.c, partitions.c, reservations.c, steps.c, conf.c, act_job.c, act_node.c).
 */
void job_answer(const struct request *r, struct answer *ret);
void node_answer(const struct request *r, struct answer *ret);
void partitions_answer(const struct request *r, struct answer *ret);
void reservations_answer(const struct request *r, struct answer *ret);
void config_answer(const struct request *r, struct answer *ret);
void ping_answer(const struct request *r, struct answer *ret);
void steps_answer(const struct request *r, struct answer *ret);
void layout_answer(const struct request *r, struct answer *ret);
void requeue_answer(const struct request *r, struct answer *ret);
void update_answer(const struct request *r, struct answer *ret);
void cancel_answer(const struct request *r, struct answer *ret);
void node_set_answer(const struct request *r, struct answer *ret);
void reserve_answer(const struct request *r, struct answer *ret);
void unreserve_answer(const struct request *r, struct answer *ret);

/* One job or node as it is now (jobs.c, nodes.c); false: ret tells why not. The record is within
 * *ret_list, for job_list_free() or slurm_free_node_info_msg(). */
bool job_load(const struct request *r, job_info_msg_t **ret_list, job_info_t **ret_job,
              struct answer *ret);
bool node_load(const struct request *r, node_info_msg_t **ret_list, node_info_t **ret_node,
               struct answer *ret);
void job_list_free(job_info_msg_t *list);
json_t *node_json(const node_info_t *node);

/* What is known of a job (job_record.c). */
json_t *job_json(const job_info_t *job);
void job_look(const job_info_t *job, struct job_look *ret);
bool job_is_array_task(const job_info_t *job);
bool job_is_array_rest(const job_info_t *job); /* those that have no record of their own yet */

/* The member "job" of the request as a number (jobs.c); false: ret tells why not. */
bool job_id_of(const struct request *r, uint32_t *ret_id, struct answer *ret);

/* Slurm's errno after a call that failed (adapter.c). acting: it might have changed something. */
void answer_slurm(struct answer *ret, int slurm_errno, bool acting, const char *what);

#endif
