/* SPDX-License-Identifier: Apache-2.0 */

/* reknitd's configuration: what is said, what is left out, what is wrong and where; and on which
 * terms a job is watched then. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "config/keys.h"
#include "config/terms.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int add(struct daemon_config *c, const char *name, const char *text, struct err *e)
{
    struct form_text t = {name, text, strlen(text)};

    return daemon_config_add(c, &t, e);
}

static struct daemon_config *parse(const char *text)
{
    struct daemon_config *c = daemon_config_new();
    struct err e = {0};

    if (add(c, "d.yaml", text, &e) < 0 || daemon_config_check(c, &e) < 0)
        fail_msg("'%s': %s", text, e.text);
    return c;
}

static void assert_same(const struct daemon_config *a, const struct daemon_config *b)
{
    _cleanup_strbuf_ struct strbuf one = {0}, two = {0};

    daemon_config_format(a, &one);
    daemon_config_format(b, &two);
    assert_string_equal(strbuf_str(&one), strbuf_str(&two));
}

static void the_shipped_file_is_the_default(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = NULL, *built_in = daemon_config_new();
    struct err e = {0};

    if (daemon_config_load(DAEMON_YAML, NULL, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_same(c, built_in);
    assert_int_equal(c->mode, MODE_OBSERVE);
}

/* "Every key below": so that the file is also the manual of the keys. */
static void the_shipped_file_names_every_key(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = daemon_config_new();
    _cleanup_strbuf_ struct strbuf shipped = {0}, text = {0};
    unsigned n = 0;

    assert_int_equal(file_read(DAEMON_YAML, DAEMON_FILE_MAX, &shipped, NULL), 0);
    daemon_config_format(c, &text);
    for (char *save, *line = strtok_r(text.s, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char key[64];

        if (streq(line, "policies:")) /* what follows is a policy's */
            break;
        STR_PRINTF(key, "\n%.*s:", (int)strcspn(line, ":"), line);
        if (!strstr(strbuf_str(&shipped), key))
            fail_msg("conf/reknitd.yaml lacks '%s'", line);
        n++;
    }
    assert_true(n > 40);
}

static const char everything[] =
    "mode: act\nopt_in: true\npolicy: big\nwatch_all: false\n"
    "aps_comments: false\ncluster: alpha\nstate_dir: /srv/it's\npoll: 1500ms\nspawner: ''\n"
    "operators: hpc-ops\nfence: [/sbin/fence, -n, '{node}']\nlog_level: debug\n"
    "adapter: {command: [/usr/libexec/x, --fake], timeout: 2s}\n"
    "api: {socket: /tmp/s, listen: '[::]:99', tls_cert: /c, tls_key: /k, token_file: /t, munge: "
    "true}\n"
    "agents: {listen: '10.0.0.1:7', auth: key, key_file: /key, munge_socket: /munge}\n"
    "webhook: {url: 'https://hooks.example/x', token_file: /w, ca_cert: /c, mode: act}\n"
    "brakes: {actions_per_hour: 1, actions_per_partition_hour: 2, actions_per_user_hour: 8, "
    "exclusions_per_node_hour: 3, storm_jobs: 5, storm_window: 6s, storm_per_minute: 7, "
    "proposal_life: 20m, early_start: 9s, "
    "exclusion_life: 36h}\nmax_excluded: 4\n"
    "nodes: {mode: act, max_drained: 3, drains_per_hour: 2, breaker_share: 20, check: "
    "[/sbin/check, "
    "'{node}']}\n"
    "readers: {max_processes: 8, stall: 10s, read_at: nodes}\n"
    "journal: {keep: 40d, detail: 2d, newest: 20000}\n"
    "rules:\n"
    "  - {partition: 'gpu*', account: a, qos: q, user: u, mode: observe, opt_in: false, "
    "policy: standard}\n"
    "  - {}\n"
    "policies:\n"
    "  - {name: big, users: true, policy: {max_restarts: 99, keep_place: reservation, "
    "hold_on_stop: true, hang: {enabled: false}, "
    "causes: {network: {retries: 7}}}}\n";

static void what_is_written_is_read_again(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = parse(everything), *again = NULL;
    _cleanup_(daemon_config_freep) struct daemon_config *built_in = daemon_config_new();
    _cleanup_strbuf_ struct strbuf text = {0}, def = {0};

    daemon_config_format(c, &text);
    assert_null(strstr(strbuf_str(&text), "hooks.example")); /* a secret */
    again = parse(strbuf_str(&text));
    STR_COPY(again->webhook.url, c->webhook.url);
    assert_same(c, again);

    /* no value is that of the default, so that none was passed over */
    daemon_config_format(built_in, &def);
    for (char *save, *line = strtok_r(text.s, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char whole[512];

        if (streq(line, "rules:"))
            break;
        STR_PRINTF(whole, "\n%s\n", line);
        if (line[strlen(line) - 1] != ':' && strstr(strbuf_str(&def), whole))
            fail_msg("%s: nothing was read", line);
    }
    assert_string_equal(c->fence.argv[2], "{node}");
    assert_int_equal(c->rules[0].mode, MODE_OBSERVE);
    assert_int_equal(c->rules[0].opt_in, 0);
    assert_int_equal(c->rules[1].opt_in, -1);
    assert_int_equal(c->policies[1].policy.cause[CAUSE_NETWORK].retries, 7);
    assert_string_equal(c->policies[1].policy.name, "big");
}

static void a_file_that_says_nothing_is_the_default(void **state)
{
    static const char *const nothing[] = {
        "", "# x\n", "{}\n", "api:\nbrakes: {}\n", "rules: []\n", "rules:\npolicies:\n"};
    _cleanup_(daemon_config_freep) struct daemon_config *built_in = daemon_config_new();

    for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
        _cleanup_(daemon_config_freep) struct daemon_config *c = parse(nothing[i]);

        assert_same(c, built_in);
    }
}

static void faults_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"mode: obsreve\n", "d.yaml:1: mode: 'obsreve' is none of off, observe, propose, act; did "
                            "you mean 'observe'?"},
        {"mode: 3\n", "d.yaml:1: mode: '3' is none of off, observe, propose, act"},
        {"\nbrakes:\n  strom_jobs: 3\n",
         "d.yaml:3: brakes: there is no key 'strom_jobs'; did you mean 'storm_jobs'? Keys: "
         "actions_per_hour, actions_per_partition_hour, actions_per_user_hour, "
         "exclusions_per_node_hour, storm_jobs, storm_window, storm_per_minute, proposal_life, "
         "early_start, exclusion_life"},
        {"poll: 5\n", "d.yaml:1: poll: '5' is no duration: write a number with its unit, as 90s, "
                      "5m, 1h 30m"},
        {"poll: 1ms\n", "d.yaml:1: poll: must lie between 100ms and 10min 00s"},
        {"max_excluded: 101\n", "d.yaml:1: max_excluded: must lie between 0 and 100"},
        {"brakes: {actions_per_hour: 1025}\n",
         "d.yaml:1: brakes.actions_per_hour: must lie between 0 and 1024"},
        {"brakes: {storm_per_minute: 1025}\n",
         "d.yaml:1: brakes.storm_per_minute: must lie between 1 and 1024"},
        {"readers: {max_processes: 1025}\n",
         "d.yaml:1: readers.max_processes: must lie between 1 and 1024"},
        {"state_dir: var\n", "d.yaml:1: state_dir: 'var' is no absolute path"},
        {"state_dir: ''\n", "d.yaml:1: state_dir: '' is no absolute path"},
        {"state_dir: \"/a\\nb\"\n", "d.yaml:1: state_dir: holds a character that cannot be shown"},
        {"spawner: /0123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "90123456789012345678901234567890\n",
         "d.yaml:1: spawner: longer than 107 bytes, which is all a socket may have"},
        {"opt_in: yes\n", "d.yaml:1: opt_in: 'yes' is neither true nor false"},
        {"api:\n  listen: localhost:80\n",
         "d.yaml:2: api.listen: 'localhost:80' is no address with a port: write it as "
         "0.0.0.0:6820 or [::]:6820"},
        {"agents:\n  listen: 1.2.3.4:99999\n",
         "d.yaml:2: agents.listen: '1.2.3.4:99999' is no address with a port: write it as "
         "0.0.0.0:6820 or [::]:6820"},
        {"webhook:\n  url: hooks.example\n",
         "d.yaml:2: webhook.url: does not begin with https:// or http://"},
        {"nodes: {mode: propose}\n",
         "d.yaml:1: nodes.mode: is off, observe or act: nobody is asked about a node"},
        {"nodes:\n  check: [/sbin/check]\n",
         "d.yaml:2: nodes.check: no argument holds {node}: the program would not know which"},
        {"fence: [fence, '{node}']\n", "d.yaml:1: fence: 'fence' is no absolute path of a program"},
        {"fence:\n- /sbin/fence\n",
         "d.yaml:1: fence: no argument holds {node}: the program would not know which"},
        {"fence: /sbin/fence\n", "d.yaml:1: fence: wants a list (- item), not a single value"},
        {"operators: 'a b'\n", "d.yaml:1: operators: 'a b' is no name of a group"},
        {"rules:\n- partition: a\n  mode: act\n# - x\n\n- partition: b\n  mode: atc\n",
         "d.yaml:7: rules[2].mode: 'atc' is none of off, observe, propose, act; did you mean "
         "'act'?"},
        {"rules:\n  - {partition: a, modus: act}\n",
         "d.yaml:2: rules[1]: there is no key 'modus'; did you mean 'mode'? Keys: partition, "
         "account, qos, user, mode, opt_in, policy"},
        {"policies:\n  - users: true\n", "d.yaml:2: policies[1]: 'name' is missing"},
        {"policies:\n  - name: x\n", "d.yaml:2: policies[1]: a new policy needs 'policy' (its "
                                     "keys) or 'file' (where they stand)"},
        {"policies:\n  - {name: act, policy: {}}\n",
         "d.yaml:1: policies: 'act' cannot be the name of a policy: letters, digits, and . _ - "
         "between them, but none of off, observe, propose, act"},
        {"policies:\n  - name: a\n    policy: {max_restarts: 1}\n"
         "  - name: b\n    policy:\n      max_restarts: x\n",
         "d.yaml:6: policies[2].policy.max_restarts: 'x' is no whole number"},
        {"policies:\n  - name: a\n    policy:\n      hang: {factor: 0}\n",
         "d.yaml:4: policies[1].policy.hang.factor must lie between 1 and 1000"},
        {"policies:\n  - name: a\n    file: /nonexistent/a.yaml\n",
         "d.yaml:3: policies[1].file: /nonexistent/a.yaml: No such file or directory"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(daemon_config_freep) struct daemon_config *c = daemon_config_new();
        struct err e = {0};

        assert_int_equal(add(c, "d.yaml", cases[i].text, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
}

static void faults_of_the_whole_are_named(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"policy: standrad\n", "the configuration: policy: there is none called 'standrad'; did "
                               "you mean 'standard'?"},
        {"rules:\n- mode: act\n- policy: big\n",
         "d.yaml:3: policy: none called 'big' is defined under 'policies'"},
        {"api: {listen: '0.0.0.0:80'}\n",
         "api.listen: nobody could be told from anybody else: it needs token_file, or munge: true"},
        {"api: {listen: '0.0.0.0:80', token_file: /t}\n",
         "api.listen: other hosts reach 0.0.0.0:80, and tokens would pass in the clear: it needs "
         "tls_cert and tls_key, or an address of this host"},
        {"api: {tls_cert: /c}\n", "api.tls_key is missing: the other half of TLS is there"},
        {"agents: {listen: '0.0.0.0:80', auth: key}\n",
         "agents.key_file is missing: auth is 'key'"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(daemon_config_freep) struct daemon_config *c = daemon_config_new();
        struct err e = {0};

        assert_int_equal(add(c, "d.yaml", cases[i].text, &e), 0);
        assert_int_equal(daemon_config_check(c, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
    daemon_config_free(parse("api: {listen: '127.0.0.1:80', token_file: /t}\n"));
    daemon_config_free(parse("api: {listen: '[::1]:80', token_file: /t}\n"));
    daemon_config_free(
        parse("api: {listen: '0.0.0.0:80', token_file: /t, tls_cert: /c, tls_key: /k}"));
}

/* ---- files ---- */

struct folder {
    char path[64];
};

static void put(const struct folder *f, const char *name, const char *text)
{
    char path[128];
    _cleanup_(fclosep) FILE *file = NULL;

    STR_PRINTF(path, "%s/%s", f->path, name);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
}

static void empty(const struct folder *f, const char *const *names)
{
    char path[128];

    for (; *names; names++) {
        STR_PRINTF(path, "%s/%s", f->path, *names);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(f->path), 0);
}

static void drop_ins_come_in_order(void **state)
{
    static const char *const names[] = {"main",       "20-b.yaml", "10-a.yaml",
                                        "30-c.yaml~", ".x.yaml",   NULL};
    struct folder f = {"/tmp/reknit-daemon-XXXXXX"};
    _cleanup_(daemon_config_freep) struct daemon_config *c = NULL;
    struct err e = {0};
    char path[128];

    assert_non_null(mkdtemp(f.path));
    put(&f, "main",
        "mode: propose\npoll: 7s\nrules: [{partition: main}]\n"
        "fence: [/a, '{node}', x]\n"
        "policies: [{name: p, policy: {max_restarts: 1, kill_grace: 3s}}]\n");
    put(&f, "20-b.yaml",
        "mode: act\nrules: [{partition: b}]\npolicies: [{name: p, users: true}]\n");
    put(&f, "10-a.yaml",
        "mode: 'off'\nrules:\n# me\n- partition: a\nfence: [/b, '{node}']\n"
        "brakes: {early_start: 3s}\n");
    put(&f, "30-c.yaml~", "broken");
    put(&f, ".x.yaml", "broken");
    STR_PRINTF(path, "%s/main", f.path);
    if (daemon_config_load(path, f.path, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(c->mode, MODE_ACT);
    assert_int_equal(c->poll, 7 * USEC_PER_SEC);
    assert_int_equal(c->n_rules, 3);
    assert_string_equal(c->rules[0].partition, "main");
    assert_string_equal(c->rules[1].partition, "a");
    assert_string_equal(c->rules[2].partition, "b");
    assert_true(str_endswith(c->rules[1].from, "/10-a.yaml:4"));
    assert_int_equal(c->fence.n, 2);
    assert_int_equal(c->brakes.early_start, 3 * USEC_PER_SEC);
    assert_int_equal(c->brakes.storm_jobs, 8);
    assert_true(c->policies[1].users);
    assert_int_equal(c->policies[1].policy.max_restarts, 1);

    put(&f, "10-a.yaml", "\nmodes: act\n");
    c = daemon_config_free(c);
    assert_int_equal(daemon_config_load(path, f.path, &c, &e), -EINVAL);
    assert_null(c);
    assert_non_null(strstr(e.text, "/10-a.yaml:2: there is no key 'modes'"));
    empty(&f, names);
}

static void files_that_are_missing_are_no_fault(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = NULL, *built_in = daemon_config_new();
    struct daemon_config *none = NULL;
    struct err e = {0};

    assert_int_equal(daemon_config_load(NULL, "/nonexistent/b", &c, &e), 0);
    assert_int_equal(daemon_config_load("/nonexistent/a", NULL, &none, &e), -ENOENT);
    assert_string_equal(e.text, "/nonexistent/a: No such file or directory");
    assert_same(c, built_in);
    assert_int_equal(daemon_config_load("/dev/zero", NULL, &none, &e), -EINVAL);
    assert_string_equal(e.text, "/dev/zero: is no regular file");
    assert_int_equal(daemon_config_load("/", NULL, &none, &e), -EISDIR);
    assert_int_equal(daemon_config_load(NULL, "/dev/null", &none, &e), -ENOTDIR);
}

static void collect(void *ctx, const char *text)
{
    strbuf_addf(ctx, "%s\n", text);
}

static void values_that_are_not_meant_are_named(void **state)
{
    static const struct {
        const char *text, *doubts;
    } cases[] = {
        {"", ""},
        {"policies: [{name: p, policy: {max_restarts: 5}}]\n",
         "policy p: no rule names it, and users may not (users: false)\n"},
        {"policies: [{name: p, users: true, policy: {same_step_retries: 9}}]\n",
         "policy p: same_step_retries (9) is above max_without_progress (3), which stops before\n"},
        {"rules: [{partition: p}]\n",
         "d.yaml:1: the rule changes nothing: it has none of mode, opt_in, "
         "policy\n"},
        {"rules:\n- {partition: p, mode: act}\n- {mode: observe}\n",
         "d.yaml:3: the rule holds for every job, whatever rules before it say\n"},
        {"rules: [{partition: p, mode: act}]\n"
         "brakes: {actions_per_hour: 0, actions_per_partition_hour: 0}\n",
         "brakes: nothing limits the actions of an hour\n"},
        {"webhook: {url: 'http://x/', token_file: /nonexistent/t}\n",
         "webhook.token_file: /nonexistent/t: No such file or directory\n"
         "webhook.url: what is sent there can be read on the way (http)\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(daemon_config_freep) struct daemon_config *c = parse(cases[i].text);
        _cleanup_strbuf_ struct strbuf b = {0};

        daemon_config_doubts(c, collect, &b);
        assert_string_equal(strbuf_str(&b), cases[i].doubts);
    }
}

/* ---- terms ---- */

static const char rules[] = "mode: propose\n"
                            "rules:\n"
                            "  - {partition: 'gpu*', mode: act, opt_in: true, policy: big}\n"
                            "  - {partition: gpu-debug, mode: 'off'}\n"
                            "  - {account: 'llm?', opt_in: true, policy: long}\n"
                            "  - {qos: low, user: anna, mode: observe}\n"
                            "policies:\n"
                            "  - {name: big, policy: {max_restarts: 50}}\n"
                            "  - {name: patient, users: true, policy: {max_restarts: 40}}\n"
                            "  - {name: long, policy: {continue_after_time_limit: true}}\n";

static void terms_follow_rules_and_comment(void **state)
{
    static const struct {
        struct job_labels job;
        enum mode mode;
        bool opted_in, continues;
        const char *policy;
        uint32_t max_restarts;
        const char *notes;
    } cases[] = {
        /* nobody asked for it: observed */
        {{"cpu", "x"}, MODE_OBSERVE, false, false, "standard", 20, ""},
        {{NULL}, MODE_OBSERVE, false, false, "standard", 20, ""},
        {{"cpu", .comment = "reknit"}, MODE_PROPOSE, true, false, "standard", 20, ""},
        /* rules */
        {{"gpu1"}, MODE_ACT, true, false, "big", 50, ""},
        {{"gpu-debug"}, MODE_OFF, true, false, "big", 50, ""},
        {{"gpu1,gpu2"}, MODE_ACT, true, false, "big", 50, ""},
        {{"gpu1,cpu"}, MODE_OBSERVE, false, false, "standard", 20, ""},
        {{"cpu", "llm1"}, MODE_PROPOSE, true, true, "long", 20, ""},
        {{"cpu", "llm"}, MODE_OBSERVE, false, false, "standard", 20, ""},
        {{"gpu1", .qos = "low", .user = "anna"}, MODE_OBSERVE, true, false, "big", 50, ""},
        {{"gpu1", .qos = "low", .user = "bert"}, MODE_ACT, true, false, "big", 50, ""},
        /* less than the rules allow */
        {{"gpu1", .comment = "reknit:observe"}, MODE_OBSERVE, true, false, "big", 50, ""},
        {{"gpu1", .comment = "reknit:off"}, MODE_OFF, true, false, "big", 50, ""},
        {{"gpu1", .comment = "{\"reknit\":false}"}, MODE_OFF, true, false, "big", 50, ""},
        {{"gpu1", .comment = "{\"reknit\":{\"max_restarts\":2}}"},
         MODE_ACT,
         true,
         false,
         "big",
         2,
         ""},
        {{"gpu1", .comment = "reknit:patient"}, MODE_ACT, true, false, "patient", 40, ""},
        {{"cpu", .comment = "{\"APS\":{\"auto_resume_mode\":\"requeue\",\"max_requeue_times\":1}}"},
         MODE_PROPOSE,
         true,
         false,
         "standard",
         1,
         ""},
        {{"cpu", .comment = "{\"reknit\":{\"continue_after_time_limit\":true}}"},
         MODE_PROPOSE,
         true,
         true,
         "standard",
         20,
         ""},
        {{"cpu", "llm1", .comment = "{\"reknit\":{\"continue_after_time_limit\":false}}"},
         MODE_PROPOSE,
         true,
         false,
         "long",
         20,
         ""},
        /* not more */
        {{"cpu", .comment = "reknit:act"},
         MODE_PROPOSE,
         true,
         false,
         "standard",
         20,
         "mode act is not allowed here: it stays propose"},
        {{"gpu-debug", .comment = "reknit:observe"},
         MODE_OFF,
         true,
         false,
         "big",
         50,
         "mode observe is not allowed here: it stays off"},
        {{"cpu", .comment = "reknit:big"},
         MODE_PROPOSE,
         true,
         false,
         "standard",
         20,
         "policy big is not for users to choose: standard holds"},
        {{"gpu1", .comment = "reknit:big"}, MODE_ACT, true, false, "big", 50, ""},
        {{"gpu1", .comment = "reknit:standard"},
         MODE_ACT,
         true,
         false,
         "big",
         50,
         "policy standard is not for users to choose: big holds"},
        {{"cpu", .comment = "{\"reknit\":{\"max_restarts\":21}}"},
         MODE_PROPOSE,
         true,
         false,
         "standard",
         20,
         "max_restarts 21 is more than the 20 of policy standard, which hold"},
        /* what is not understood lowers */
        {{"gpu1", .comment = "{\"reknit\":{\"mode\":\"of\"}}"},
         MODE_OBSERVE,
         true,
         false,
         "big",
         50,
         "comment: mode is none of off, observe, propose, act"},
        {{"gpu1", .comment = "reknit:obsreve"},
         MODE_OBSERVE,
         true,
         false,
         "big",
         50,
         "there is no mode or policy obsreve: big holds"},
        {{"gpu1", .comment = "{\"reknit\":{\"policy\":\"nope\"}}"},
         MODE_OBSERVE,
         true,
         false,
         "big",
         50,
         "there is no mode or policy nope: big holds"},
        {{"gpu1", .comment = "{\"reknit\":{\"polcy\":\"patient\"}}"},
         MODE_OBSERVE,
         true,
         false,
         "big",
         50,
         "comment: 'polcy' means nothing here"},
        {{"gpu1", .comment = "{\"reknit\":{\"continue_after_time_limit\":\"no\"}}"},
         MODE_OBSERVE,
         true,
         false,
         "big",
         50,
         "comment: continue_after_time_limit is neither true nor false"},
    };
    _cleanup_(daemon_config_freep) struct daemon_config *c = parse(rules);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_terms t;

        daemon_config_for_job(c, &cases[i].job, &t);
        if (t.mode != cases[i].mode || t.opted_in != cases[i].opted_in ||
            t.policy.continue_after_time_limit != cases[i].continues ||
            !streq(t.policy.name, cases[i].policy) ||
            t.policy.max_restarts != cases[i].max_restarts || !streq(t.notes, cases[i].notes))
            fail_msg("case %zu: %s, %s, %s, policy %s, %u restarts: %s", i, mode_name(t.mode),
                     t.opted_in ? "in" : "out",
                     t.policy.continue_after_time_limit ? "continues" : "ends", t.policy.name,
                     t.policy.max_restarts, t.notes);
    }
}

static void the_mode_has_its_reason(void **state)
{
    static const struct {
        struct job_labels job;
        const char *why;
    } cases[] = {
        {{"cpu"}, "not opted in"},
        {{"cpu", .comment = "reknit"}, "opted in, and more is not allowed"},
        {{"gpu1"}, "opted in"},
        {{"gpu1", .comment = "reknit:observe"}, "its comment asks for it"},
        {{"cpu", .comment = "reknit:off"}, "its comment asks for it"},
        {{"gpu1", .comment = "reknit:obsreve"}, "its comment is not understood"},
        {{"gpu1", .comment = "{\"reknit\":{\"mod\":\"observe\"}}"},
         "its comment is not understood"},
    };
    _cleanup_(daemon_config_freep) struct daemon_config *c = parse(rules);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_terms t;

        daemon_config_for_job(c, &cases[i].job, &t);
        assert_string_equal(t.why, cases[i].why);
    }
}

static void others_are_left_alone_if_wanted(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c =
        parse("mode: act\nwatch_all: false\naps_comments: false\n");
    struct job_labels nobody = {.partition = "p"}, asks = {.comment = "reknit"},
                      aps = {.comment = "{\"APS\":{\"auto_resume_mode\":\"requeue\"}}"};
    struct job_terms t;

    daemon_config_for_job(c, &nobody, &t);
    assert_int_equal(t.mode, MODE_OFF);
    daemon_config_for_job(c, &aps, &t);
    assert_int_equal(t.mode, MODE_OFF);
    assert_string_equal(t.notes, "");
    daemon_config_for_job(c, &asks, &t);
    assert_int_equal(t.mode, MODE_ACT);
}

static void interactive_jobs_are_only_observed(void **state)
{
    _cleanup_(daemon_config_freep) struct daemon_config *c = parse("mode: act\n");
    struct job_labels job = {.comment = "reknit", .interactive = true};
    struct job_terms t;

    daemon_config_for_job(c, &job, &t);
    assert_int_equal(t.mode, MODE_OBSERVE);
    assert_true(t.opted_in);
    assert_string_equal(t.why, "interactive jobs are only observed");
    job.comment = "reknit:off";
    daemon_config_for_job(c, &job, &t);
    assert_int_equal(t.mode, MODE_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interactive_jobs_are_only_observed),
        cmocka_unit_test(the_shipped_file_is_the_default),
        cmocka_unit_test(the_shipped_file_names_every_key),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_file_that_says_nothing_is_the_default),
        cmocka_unit_test(faults_are_named_with_their_line),
        cmocka_unit_test(faults_of_the_whole_are_named),
        cmocka_unit_test(drop_ins_come_in_order),
        cmocka_unit_test(files_that_are_missing_are_no_fault),
        cmocka_unit_test(values_that_are_not_meant_are_named),
        cmocka_unit_test(terms_follow_rules_and_comment),
        cmocka_unit_test(the_mode_has_its_reason),
        cmocka_unit_test(others_are_left_alone_if_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
