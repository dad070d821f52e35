/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_WIRE_NODE_MESSAGE_H
#define REKNIT_WIRE_NODE_MESSAGE_H

/* What a compute node tells: the datagrams of spank_reknit.so, and what reknit-agent makes of them
 * and adds. docs/AGENT.md has the JSON. Parsed from hostile text: every field is bounded. */

#include "base/err.h"
#include "core/model/node.h"

#include <jansson.h>
#include <sys/types.h>

#define AGENT_PROTOCOL 2 /* "reknit" of a greeting, "v" of what is sealed; of datagrams it is 1 */

#define NODE_STEP_LEN          16   /* "0", "batch", "extern", "interactive" */
#define NODE_PATH_LEN          1024 /* of a file that is told; one of a longer path is not */
#define NODE_PATHS_LEN         1856 /* of several: their JSON has at most twice as many bytes */
#define NODE_DATAGRAM_MAX      512  /* bytes of the plugin's JSON */
#define NODE_MESSAGE_BYTES_MAX 4096 /* bytes of any message's JSON */

enum node_message_kind {
    NODE_MESSAGE_START,     /* a task was started */
    NODE_MESSAGE_EXIT,      /* a task has ended */
    NODE_MESSAGE_ACTIVITY,  /* what an attempt's processes do on this node */
    NODE_MESSAGE_LOGS,      /* the attempt's processes write their output to these files */
    NODE_MESSAGE_GONE,      /* no process of the attempt is left on this node */
    NODE_MESSAGE_READER,    /* the answer to reknitd's wish for a reader of logs here */
    NODE_MESSAGE_FACT,      /* what a privileged witness saw on the node, whatever runs there */
    NODE_MESSAGE_HEARTBEAT, /* the agent lives */
    NODE_MESSAGE_KIND_MAX,
    NODE_MESSAGE_INVALID = -EINVAL,
};
DECLARE_NAMES(node_message_kind, enum node_message_kind);

struct node_task {
    uint32_t rank, tasks; /* in the step */
    int32_t local;        /* on the node; -1 unknown */
    int64_t pid;
    int32_t status; /* as wait(2) gives it, of NODE_MESSAGE_EXIT */
};

struct node_heartbeat {
    char version[32]; /* of the agent */
    int64_t dropped;  /* messages it had to give up since it started */
    int64_t refused;  /* datagrams that were none, or not root's */
    int64_t watched;  /* steps whose processes it watches */
    int64_t missed;   /* steps that it could not watch, since it started */
    /* Of the kernel's log, since it started: */
    int64_t kernel_records;
    int64_t kernel_gaps, kernel_lost; /* places where the kernel has overwritten what was to be
                                         read, and how many records that were */
    int64_t kernel_untold;            /* facts for which there was no room */
    char kernel_trouble[128];         /* why it cannot be read, "" = it is */
};

struct node_reader {
    int64_t question;
    char trouble[128]; /* "" = this connection goes on as that reader's, else why there is none */
};

/* Absolute ones in which str_sanitize() changes nothing. */
struct node_paths {
    char text[NODE_PATHS_LEN]; /* each with its NUL */
    uint32_t len;
};

struct node_message {
    enum node_message_kind kind;
    char node[NODE_NAME_LEN]; /* as the sender says; "" unknown */
    usec_t time_us;           /* the node's clock */
    usec_t mono_us;           /* the same on reknitd's monotonic clock, by source/agents.c */
    uint32_t job;             /* the scheduler's number; 0 in a heartbeat, of a reader and a fact */
    uint32_t restart;         /* START, EXIT: see docs/AGENT.md, the user may have changed it */
    uint32_t uid;             /* whose processes they are; not in those that have no job */
    char step[NODE_STEP_LEN]; /* START, EXIT */
    union {
        struct node_task task;
        struct node_heartbeat heartbeat;
        struct signal signal;    /* ACTIVITY: SIGNAL_ACTIVITY, of all processes or one rank, or
                                    SIGNAL_EXIT of one that lies dead */
        struct node_fact fact;   /* FACT: of this node, by a witness that an agent may vouch for */
        struct node_paths paths; /* LOGS */
        struct node_reader reader; /* READER */
    };
};

/* Whether a log of that path can be told. */
bool node_path_is_good(const char *path, size_t len);
/* A good one; whether there is room for it. */
bool node_paths_add(struct node_paths *p, const char *path);
/* The one behind `last`, the first behind NULL; NULL = that was all. */
const char *node_paths_next(const struct node_paths *p, const char *last);

/* -EBADMSG and what is wrong, ret untouched. Members that are not known are ignored. */
int node_message_from_json(const json_t *j, struct node_message *ret, struct err *e);
/* The same from text. */
int node_message_parse(const char *text, size_t len, struct node_message *ret, struct err *e);

/* Owned by the caller. */
json_t *node_message_to_json(const struct node_message *m);

#endif
