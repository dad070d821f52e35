/* SPDX-License-Identifier: Apache-2.0 */

/* A message has a "text", which is what notifications and simple receivers show, and "blocks" with
 * the same in parts. All blocks are plain text, where nothing is marked up; but receivers that only
 * resemble Slack may look for mentions and links everywhere. So all text of others is escaped as
 * Slack wants it (& < >), every @ is followed by a space of no width, without which "@channel"
 * calls nobody, and what would mark up in "text" is replaced by marks that look alike. */

#include "action/notice.h"

#include "base/str.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX  5              /* jobs that are named of many */
#define WORST_MAX 3              /* nodes, likewise */
#define BLOCK_MAX 2900           /* bytes; Slack takes 3,000 characters */
#define HEAD_MAX  140            /* of 150 */
#define NO_WIDTH  "\xe2\x80\x8b" /* U+200B */

static const char *harmless(const char *at)
{
    switch (*at) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '@':
        return "@" NO_WIDTH;
    case ':':
        return at[1] == '/' ? ":" NO_WIDTH : NULL;
    case '`':
        return "'";
    case '*':
        return "\xe2\x88\x97";
    case '~':
        return "\xe2\x88\xbc";
    case '[':
        return "(";
    case ']':
        return ")";
    default:
        return NULL;
    }
}

void notice_escape(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        const char *as = harmless(text);

        if (as)
            strbuf_adds(out, as);
        else
            strbuf_addc(out, *text);
    }
}

/* A text that is valid UTF-8 and not too long: cut where that harms nothing. */
static json_t *text_json(const char *s, size_t max)
{
    char cut[BLOCK_MAX + 1], *mark;

    if (max > BLOCK_MAX)
        max = BLOCK_MAX;
    str_copy(cut, max + 1, s);
    mark = strlen(s) > max ? strrchr(cut, '&') : NULL;
    if (mark && !strchr(mark, ';'))
        *mark = '\0';
    return json_string(cut);
}

static json_t *plain(const char *s, size_t max)
{
    json_t *text = text_json(s, max);

    return json_pack("{s:s, s:o, s:b}", "type", "plain_text", "text",
                     text ? text : json_string("?"), "emoji", 0);
}

static void add_block(json_t *blocks, const char *type, const char *s, size_t max)
{
    if (*s)
        json_array_append_new(blocks, json_pack("{s:s, s:o}", "type", type, "text", plain(s, max)));
}

static json_t *message(const struct strbuf *head, const struct strbuf *body)
{
    _cleanup_strbuf_ struct strbuf text = {0};
    json_t *blocks = json_array(), *all;

    strbuf_addf(&text, "%s\n%s", strbuf_str(head), strbuf_str(body));
    add_block(blocks, "header", strbuf_str(head), HEAD_MAX);
    add_block(blocks, "section", strbuf_str(body), BLOCK_MAX);
    all = text_json(strbuf_str(&text), BLOCK_MAX);
    return json_pack("{s:o, s:o}", "text", all ? all : json_string("?"), "blocks", blocks);
}

/* One */

static const char *id_of(const struct notice *n)
{
    return n->label[0] ? n->label : n->job;
}

static void add_nodes(struct strbuf *out, const struct notice *n)
{
    for (uint32_t i = 0; i < n->n_nodes; i++) {
        strbuf_adds(out, i == 0 ? " without " : ", ");
        notice_escape(out, n->nodes[i]);
    }
}

/* A decision that follows a start which was ordered and did not come about. */
static bool is_of_failed_start(const struct notice *n)
{
    static const char *const rules[] = {"start-failed", "start-refused", "start-unknown"};

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (n->kind == NOTICE_DECISION && streq(n->rule, rules[i]))
            return true;
    return false;
}

/* "is restarted without n7", "would be stopped" */
static void add_deed(struct strbuf *out, const struct notice *n)
{
    const char *what = n->action == ACTION_STOP ? "stopped" : "restarted";

    if (is_of_failed_start(n))
        strbuf_addf(out, "could not be restarted%s",
                    n->action == ACTION_STOP ? "" : ", and is tried again");
    else if (n->mode <= MODE_OBSERVE)
        strbuf_addf(out, "would be %s", what);
    else if (n->lapsed)
        strbuf_addf(out, "could have been %s, but nobody approved", what);
    else if (n->proposal_life > 0)
        strbuf_addf(out, "may be %s, if somebody approves", what);
    else
        strbuf_addf(out, "is %s", what);
    if (n->action != ACTION_STOP)
        add_nodes(out, n);
}

static void add_whose(struct strbuf *out, const struct notice *n)
{
    notice_escape(out, n->name);
    strbuf_adds(out, ", ");
    notice_escape(out, n->user);
    if (n->partition[0]) {
        strbuf_adds(out, ", ");
        notice_escape(out, n->partition);
    }
    strbuf_addf(out, ", attempt %" PRIu32 "\n", n->attempt);
}

static void add_about(struct strbuf *out, const struct notice *n)
{
    char life[DURATION_TEXT_MAX];

    add_whose(out, n);
    strbuf_addf(out, "%s (%s)", cause_name(n->cause), incident_class_name(n->class));
    strbuf_adds(out, n->summary[0] ? "\n" : "");
    notice_escape(out, n->summary);
    strbuf_adds(out, "\n");
    if (n->path[0] && n->line > 0) {
        notice_escape(out, n->path);
        strbuf_addf(out, ", line %" PRIu64 "\n", n->line);
    }
    notice_escape(out, n->why);
    strbuf_addf(out, " (rule %s)\nreknit explain %s", n->rule, id_of(n));
    if (n->proposal_life > 0)
        strbuf_addf(out, "\nreknit approve %s, or reject, within %s", id_of(n),
                    duration_format(n->proposal_life, life));
}

static json_t *one_decision(const char *cluster, const struct notice *n)
{
    _cleanup_strbuf_ struct strbuf head = {0}, body = {0};

    notice_escape(&head, cluster);
    strbuf_adds(&head, " - job ");
    notice_escape(&head, id_of(n));
    strbuf_addc(&head, ' ');
    add_deed(&head, n);
    add_about(&body, n);
    return message(&head, &body);
}

static json_t *one_failure(const char *cluster, const struct notice *n)
{
    _cleanup_strbuf_ struct strbuf head = {0}, body = {0};

    notice_escape(&head, cluster);
    strbuf_adds(&head, " - job ");
    notice_escape(&head, id_of(n));
    strbuf_addf(&head, " %s",
                n->failed == INTENT_REQUEUE  ? "was not restarted"
                : n->failed == INTENT_START  ? "was not seen to run again"
                : n->failed == INTENT_AMEND  ? "is restarted, but not"
                : n->failed == INTENT_CANCEL ? "could not be stopped"
                                             : "could not be held for people to look at");
    if (n->failed == INTENT_AMEND)
        add_nodes(&head, n);
    add_whose(&body, n);
    notice_escape(&body, n->why);
    strbuf_addf(&body, "\nreknit explain ");
    notice_escape(&body, id_of(n));
    return message(&head, &body);
}

static json_t *one_request(const char *cluster, const struct notice *n)
{
    _cleanup_strbuf_ struct strbuf head = {0}, body = {0};
    bool freeze = n->request == REQUEST_FREEZE;

    notice_escape(&head, cluster);
    strbuf_addf(&head, " - Reknit is %s by ", freeze ? "frozen" : "thawed");
    notice_escape(&head, n->who);
    notice_escape(&body, n->why);
    strbuf_adds(&body, freeze ? "\nIt does nothing for any job until 'reknit thaw'." : "");
    return message(&head, &body);
}

/* What was judged; whether it is drained yet, `reknit nodes` says. */
static json_t *one_node(const char *cluster, const struct notice *n)
{
    _cleanup_strbuf_ struct strbuf head = {0}, body = {0};

    notice_escape(&head, cluster);
    if (n->n_nodes == 0) {
        strbuf_adds(&head, " - nodes: ");
        notice_escape(&head, n->rule);
    } else {
        strbuf_adds(&head, " - node ");
        notice_escape(&head, n->nodes[0]);
        strbuf_adds(&head, n->mode == MODE_ACT ? " is to be drained" : " would be drained");
    }
    notice_escape(&body, n->why);
    strbuf_adds(&body, "\nreknit nodes ");
    notice_escape(&body, n->n_nodes > 0 ? n->nodes[0] : "");
    return message(&head, &body);
}

/* Many */

struct tally {
    char word[64];
    size_t n;
};
typedef VEC(struct tally) tallies;

static void count_word(tallies *list, const char *word)
{
    VEC_FOREACH (list, t)
        if (streq(t->word, word)) {
            t->n++;
            return;
        }
    STR_COPY(VEC_PUSH(list)->word, word); /* as many as notices at most */
    list->v[list->n - 1].n = 1;
}

static int most_first(const void *x, const void *y)
{
    const struct tally *a = x, *b = y;

    return a->n != b->n ? (a->n > b->n ? -1 : 1) : strcmp(a->word, b->word);
}

static void add_tallies(struct strbuf *out, const char *lead, tallies *list, size_t most)
{
    if (list->n > 0)
        qsort(list->v, list->n, sizeof(list->v[0]), most_first);
    for (size_t i = 0; i < list->n && i < most; i++) {
        strbuf_adds(out, i == 0 ? lead : ", ");
        notice_escape(out, list->v[i].word);
        strbuf_addf(out, " %zu", list->v[i].n);
    }
    if (list->n > most)
        strbuf_addf(out, " and %zu others", list->n - most);
    if (list->n > 0)
        strbuf_addc(out, '\n');
    VEC_DONE(list);
}

static const char *deed_word(const struct notice *n)
{
    if (n->kind == NOTICE_REQUEST)
        return request_name(n->request);
    if (n->kind == NOTICE_NODE)
        return n->n_nodes > 0 ? "node to drain" : "nodes";
    if (n->kind == NOTICE_FAILURE)
        return n->failed == INTENT_REQUEUE  ? "restart failed"
               : n->failed == INTENT_START  ? "not seen to run again"
               : n->failed == INTENT_AMEND  ? "nodes not kept out"
               : n->failed == INTENT_CANCEL ? "stop failed"
                                            : "hold failed";
    if (is_of_failed_start(n))
        return n->action == ACTION_STOP ? "restart failed" : "restart tried again";
    if (n->mode <= MODE_OBSERVE)
        return n->action == ACTION_STOP ? "stop (observed only)" : "restart (observed only)";
    if (n->lapsed)
        return "not approved";
    if (n->proposal_life > 0)
        return "for approval";
    return n->action == ACTION_STOP ? "stop" : "restart";
}

static bool is_failure(const struct notice *n)
{
    return n->kind == NOTICE_FAILURE || (is_of_failed_start(n) && n->action == ACTION_STOP);
}

static bool is_decision(const struct notice *n)
{
    return n->kind == NOTICE_DECISION && !is_failure(n);
}

static void add_first(struct strbuf *out, const char *lead, bool (*is)(const struct notice *),
                      const struct notice *n, size_t count)
{
    size_t told = 0;

    for (size_t i = 0; i < count && told < TOLD_MAX; i++) {
        if (!is(&n[i]))
            continue;
        strbuf_adds(out, told++ == 0 ? lead : ", ");
        notice_escape(out, id_of(&n[i]));
        strbuf_adds(out, " (");
        notice_escape(out, n[i].user);
        strbuf_addc(out, ')');
    }
    strbuf_adds(out, told > 0 ? "\n" : "");
}

static json_t *many(const char *cluster, const struct notice *n, size_t count, uint64_t more)
{
    _cleanup_strbuf_ struct strbuf head = {0}, body = {0};
    tallies causes = {0}, deeds = {0}, partitions = {0}, nodes = {0};
    const char *things = "decisions";
    char span[DURATION_TEXT_MAX];

    for (size_t i = 0; i < count; i++) {
        count_word(&deeds, deed_word(&n[i]));
        if (n[i].kind != NOTICE_DECISION)
            things = "events";
        if (n[i].kind == NOTICE_NODE)
            count_word(&nodes, n[i].n_nodes > 0 ? n[i].nodes[0] : "-");
        if (n[i].kind != NOTICE_DECISION)
            continue;
        count_word(&causes, cause_name(n[i].cause));
        count_word(&partitions, n[i].partition[0] ? n[i].partition : "-");
        for (uint32_t k = 0; k < n[i].n_nodes; k++)
            count_word(&nodes, n[i].nodes[k]);
    }
    notice_escape(&head, cluster);
    strbuf_addf(&head, " - %" PRIu64 " %s within %s", (uint64_t)count + more, things,
                duration_format(n[count - 1].at - n[0].at, span));
    add_tallies(&body, "decided: ", &deeds, SIZE_MAX);
    add_tallies(&body, "causes: ", &causes, SIZE_MAX);
    add_tallies(&body, "partitions: ", &partitions, WORST_MAX);
    add_tallies(&body, "nodes at fault: ", &nodes, WORST_MAX);
    add_first(&body, "failed: ", is_failure, n, count);
    add_first(&body, "first of them: ", is_decision, n, count);
    strbuf_adds(&body, "reknit incidents, reknit jobs --cluster");
    return message(&head, &body);
}

json_t *notice_message(const char *cluster, const struct notice *n, size_t count, uint64_t more)
{
    if (count > 1 || more > 0)
        return many(cluster, n, count, more);
    if (n->kind == NOTICE_REQUEST)
        return one_request(cluster, n);
    if (n->kind == NOTICE_NODE)
        return one_node(cluster, n);
    return n->kind == NOTICE_FAILURE ? one_failure(cluster, n) : one_decision(cluster, n);
}
