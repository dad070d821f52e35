/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REKNIT_CONFIG_DAEMON_FILE_H
#define REKNIT_CONFIG_DAEMON_FILE_H

/* reknitd's configuration: YAML, one file and drop-ins. A later file wins key by key; the entries
 * of its lists (rules, policies) are added. conf/reknitd.yaml shows every key with its default. */

#include "base/cleanup.h"
#include "base/form.h"
#include "base/log.h"
#include "base/str.h"
#include "config/comment.h"
#include "core/model/node.h"
#include "core/model/policy.h"
#include "core/model/sched.h"

#define DAEMON_CONFIG_PATH     "/etc/reknit/reknitd.yaml"
#define DAEMON_CONFIG_DROP_INS "/etc/reknit/reknitd.d"
#define DAEMON_FILE_MAX        (256 * 1024) /* bytes, each */
#define DAEMON_FILES_MAX       64
#define CONFIG_TEXT_MAX        256 /* paths, addresses, patterns; with their end */
#define COMMAND_ARGS_MAX       16
#define RULES_MAX              256
#define POLICIES_MAX           64
#define ALERT_RULES_MAX        256
#define POLICY_STANDARD        "standard" /* always there */

enum agent_auth {
    AGENT_AUTH_MUNGE,
    AGENT_AUTH_KEY,
    AGENT_AUTH_MAX,
    AGENT_AUTH_INVALID = -EINVAL,
};
DECLARE_NAMES(agent_auth, enum agent_auth);

/* Where logs of jobs are read. */
enum read_at {
    READ_AT_AUTO, /* here, and on a node of the job where this host lacks its file system */
    READ_AT_CONTROLLER,
    READ_AT_NODES,
    READ_AT_MAX,
    READ_AT_INVALID = -EINVAL,
};
DECLARE_NAMES(read_at, enum read_at);

struct command {
    unsigned n; /* 0 = none */
    char argv[COMMAND_ARGS_MAX][CONFIG_TEXT_MAX];
};

/* Those that match a job are applied in order: a later one wins key by key. */
struct job_rule {
    char partition[CONFIG_TEXT_MAX]; /* shell patterns; "" = any */
    char account[CONFIG_TEXT_MAX];
    char qos[CONFIG_TEXT_MAX];
    char user[CONFIG_TEXT_MAX];
    enum mode mode;                 /* MODE_INVALID = not said */
    int opt_in;                     /* -1 = not said */
    char policy[64];                /* "" = not said */
    char from[CONFIG_TEXT_MAX + 8]; /* "file:line" */
};

/* What an alert of another system asks for: the first that matches. */
struct alert_rule {
    char alert[CONFIG_TEXT_MAX]; /* a shell pattern of its name */
    enum isolation isolation;
    enum cause cause;
};

struct named_policy {
    char name[64];
    char file[CONFIG_TEXT_MAX]; /* where it was read from; "" = written into the configuration */
    bool users;                 /* may be asked for in a job's comment */
    struct policy policy;
};

struct daemon_config {
    enum mode mode; /* of jobs that no rule says otherwise of */
    bool opt_in;    /* ... as are this and the policy */
    char policy[64];
    bool watch_all;    /* jobs that nobody opted in are observed too */
    bool aps_comments; /* NVIDIA's {"APS": ...} opts in too */
    char cluster[64];  /* "" = as the scheduler says */
    char state_dir[CONFIG_TEXT_MAX];
    usec_t poll;
    char spawner[CONFIG_TEXT_MAX]; /* socket; "" = children run as reknitd does */
    char operators[64];            /* group; "" = root and SlurmUser alone */
    struct command fence;          /* "{node}" in it is the node; exit status 0 = it is fenced */
    enum log_level log_level;
    struct {
        struct command command; /* none: the spawner starts it */
        usec_t timeout;         /* later than this an answer is unknown */
    } adapter;
    struct {
        char socket[CONFIG_TEXT_MAX];
        char listen[CONFIG_TEXT_MAX]; /* address:port; "" = not on TCP */
        char tls_cert[CONFIG_TEXT_MAX], tls_key[CONFIG_TEXT_MAX], token_file[CONFIG_TEXT_MAX];
        bool munge; /* credentials are taken on TCP */
    } api;
    struct {
        char listen[CONFIG_TEXT_MAX]; /* address:port; "" = no agents */
        enum agent_auth auth;
        char key_file[CONFIG_TEXT_MAX];
        char munge_socket[CONFIG_TEXT_MAX]; /* "" = MUNGE's usual one */
    } agents;
    struct {
        char url[CONFIG_TEXT_MAX]; /* a secret; "" = none */
        char token_file[CONFIG_TEXT_MAX];
        char ca_cert[CONFIG_TEXT_MAX]; /* "" = whom this host trusts */
        enum mode mode;                /* decisions in this mode or above are told */
        bool exposed;                  /* everybody can read the file that has the URL */
    } webhook;
    struct {
        enum mode mode;       /* never PROPOSE */
        uint32_t max_drained; /* percent of the cluster's nodes, by us, at once */
        uint32_t drains_per_hour;
        uint32_t breaker_share; /* percent of them that one rule may convict within an hour */
        struct command check;   /* "{node}" in it is the node; status 0: well, 1: not well */
    } nodes;
    struct brakes brakes;
    uint32_t max_excluded; /* percent of the cluster's nodes, all exclusions together */
    struct {
        uint32_t max_processes; /* all together */
        usec_t stall;           /* silent for so long, one is replaced */
        enum read_at read_at;
    } readers;
    struct {
        usec_t keep;     /* jobs that ended longer ago are forgotten */
        usec_t detail;   /* older signals are thinned out */
        uint32_t newest; /* events; beyond them signals are, however young */
    } journal;
    struct job_rule *rules;
    unsigned n_rules;
    struct alert_rule *alerts;
    unsigned n_alerts;
    struct named_policy *policies; /* the first is POLICY_STANDARD */
    unsigned n_policies;
};

/* The built-in default: observe mode. */
struct daemon_config *daemon_config_new(void);
struct daemon_config *daemon_config_free(struct daemon_config *c);
DEFINE_CLEANUP(struct daemon_config *, daemon_config_free);

/* main_path and the *.yaml of drop_in_dir in the order of their names. Either may be NULL; the
 * folder, and the file that nobody had to name, DAEMON_CONFIG_PATH, need not be there. -EINVAL,
 * -EFBIG, or why one cannot be read; e says "file:line: key: what". */
int daemon_config_load(const char *main_path, const char *drop_in_dir, struct daemon_config **ret,
                       struct err *e);
/* One text on top of what c says already; on failure c is good for nothing but _free. What only
 * the whole can tell, daemon_config_check() does. */
int daemon_config_add(struct daemon_config *c, const struct form_text *text, struct err *e);
int daemon_config_check(const struct daemon_config *c, struct err *e);

/* Where the drop-ins of the file at path are: "x/reknitd.yaml" has them in "x/reknitd.d". Whether
 * it may have any. */
bool daemon_config_drop_ins(const char *path, char *ret, size_t size);

/* Whether a text, or else the file's name, looks like this rather than like a policy. */
bool daemon_config_is_meant(const struct form_text *text);

/* Calls fn for each thing that is sound, but surely not meant. */
void daemon_config_doubts(const struct daemon_config *c, void (*fn)(void *ctx, const char *text),
                          void *ctx);

/* As YAML that daemon_config_add() understands, but without secrets. */
void daemon_config_format(const struct daemon_config *c, struct strbuf *out);
/* Of that YAML: the same for configurations that say the same. */
uint64_t daemon_config_hash(const struct daemon_config *c);

#endif
