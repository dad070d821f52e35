/* SPDX-License-Identifier: Apache-2.0 */

/* Its word → our word, and our name → both under its seal → opened, and compared.
 *
 * An answer of the opener's may come when the connection is long gone: then what waits for it is an
 * orphan, which frees itself. */

#include "agent/greet.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

#define NOT_REKNITD "whoever answers there is not reknitd"
#define NOT_PROVEN  "whoever answers there does not prove to be reknitd: "

enum step {
    STEP_WORD,   /* awaited */
    STEP_SEALED, /* ... */
    STEP_OPENING,
    STEP_DONE,
};

struct greet {
    struct helper *opener;
    char *asker;
    struct lines *lines;
    void (*done)(void *ctx, const char *why);
    void *ctx;
    enum step step;
    bool asked; /* the opener */
    bool orphan;
    struct greeting words;
    uid_t uid;
};

static void finish(struct greet *g, const char *why)
{
    g->step = STEP_DONE;
    g->done(g->ctx, why);
}

bool greet_is_askers(const char *asker, const json_t *opened)
{
    json_int_t uid = json_integer_value(json_object_get(opened, "uid"));
    const char *user = json_string_value(json_object_get(opened, "user"));
    char number[24];

    if (!json_is_integer(json_object_get(opened, "uid")))
        return false;
    STR_PRINTF(number, "%lld", (long long)uid);
    return uid == 0 || streq(asker, number) || (user && streq(asker, user));
}

static void take_opened(struct greet *g, const json_t *answer, const char *text)
{
    json_int_t uid = json_integer_value(json_object_get(answer, "uid"));
    struct err e;
    char why[160];

    if (!greet_is_askers(g->asker, answer)) {
        STR_PRINTF(why, NOT_REKNITD ", but uid %lld: see --asker (%.32s)", (long long)uid,
                   g->asker);
        finish(g, why);
    } else if (greeting_check(text, &g->words, &e) < 0) {
        finish(g, e.text);
    } else {
        g->uid = (uid_t)uid;
        finish(g, NULL);
    }
}

static void on_opened(void *ctx, const json_t *answer)
{
    struct greet *g = ctx;
    const char *text = json_string_value(json_object_get(answer, "text"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    char why[200];

    g->asked = false;
    if (g->orphan) {
        free(g);
        return;
    }
    if (g->step != STEP_OPENING) /* it went on speaking */
        return;
    STR_PRINTF(why, "%sits greeting cannot be opened: %s",
               json_is_true(json_object_get(answer, "bad")) ? NOT_PROVEN : "",
               error ? error : "reknit-seal does not answer");
    if (text)
        take_opened(g, answer, text);
    else
        finish(g, why);
}

static void answer_with_our_word(struct greet *g, const json_t *line)
{
    struct err e;

    int r = greeting_take_word(line, &g->words, &e);

    if (r == -EBADMSG) {
        finish(g, NOT_REKNITD ": it does not greet as reknitd does");
    } else if (r < 0) {
        finish(g, e.text);
    } else if (word_make(g->words.ask_with) < 0) {
        finish(g, "the kernel has no random numbers");
    } else {
        g->step = STEP_SEALED;
        lines_send(g->lines, greeting_hello(&g->words));
    }
}

static void open_greeting(struct greet *g, const char *sealed)
{
    g->step = STEP_OPENING;
    g->asked = helper_ask(g->opener, json_pack("{s:s,s:b}", "open", sealed, "names", 1), on_opened,
                          g) == 0;
    if (!g->asked)
        finish(g, "its greeting cannot be opened now");
}

static void say_refused(struct greet *g, const char *refused)
{
    char clean[160], why[200];

    str_sanitize(clean, sizeof(clean), refused, strlen(refused));
    STR_PRINTF(why, "it refuses us: %s", clean);
    finish(g, why);
}

void greet_take(struct greet *g, const json_t *line)
{
    const char *refused = json_string_value(json_object_get(line, "refused"));
    const char *sealed = json_string_value(json_object_get(line, "sealed"));

    if (g->step == STEP_DONE)
        return;
    if (refused)
        say_refused(g, refused);
    else if (g->step == STEP_WORD)
        answer_with_our_word(g, line);
    else if (g->step == STEP_SEALED && sealed)
        open_greeting(g, sealed);
    else
        finish(g, NOT_REKNITD ": it does not say what reknitd would");
}

const struct greeting *greet_words(const struct greet *g)
{
    return &g->words;
}

uid_t greet_uid(const struct greet *g)
{
    return g->uid;
}

struct greet *greet_new(const struct greet_config *c, struct lines *lines, int fd,
                        void (*done)(void *ctx, const char *why), void *ctx)
{
    struct greet *g = xnew(struct greet);

    *g = (struct greet){.opener = c->opener, .lines = lines, .done = done, .ctx = ctx};
    g->asker = xstrdup(c->asker);
    STR_COPY(g->words.node, c->node);
    greeting_place(fd, false, g->words.at); /* else nothing matches it */
    return g;
}

struct greet *greet_free(struct greet *g)
{
    if (!g)
        return NULL;
    free(g->asker);
    g->orphan = true;
    if (!g->asked)
        free(g);
    return NULL;
}
