/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask_adapter.h"

#include "base/alloc.h"
#include "base/siblings.h"
#include "source/adapter.h"

#include <errno.h>
#include <string.h>

#define DEADLINE (12 * USEC_PER_SEC) /* libslurm itself gives up after 9 */
#define TURN     (200 * USEC_PER_MSEC)

struct ask_adapter {
    sd_event *event;
    struct children *children; /* NULL = it is started by us */
    struct adapter *adapter;
    json_t *hello, *answer; /* NULL = none */
    bool answered;
    enum adapter_outcome outcome;
    char text[256]; /* what is wrong, "" = nothing */
};

static void on_hello(void *ctx, const json_t *hello)
{
    struct ask_adapter *a = ctx;

    json_decref(a->hello);
    a->hello = json_incref((json_t *)hello);
}

static void on_down(void *ctx, const char *text)
{
    struct ask_adapter *a = ctx;

    STR_COPY(a->text, text);
}

static void on_reply(void *ctx, enum adapter_outcome outcome, const json_t *answer,
                     const char *text)
{
    struct ask_adapter *a = ctx;

    a->answered = true;
    a->outcome = outcome;
    a->answer = json_incref((json_t *)answer);
    if (*text)
        STR_COPY(a->text, text);
}

/* One that ends before it has said hello will not do better when it is started again. */
static int await_hello(struct ask_adapter *a)
{
    usec_t deadline = mono_us() + DEADLINE;

    while (!a->hello && !*a->text) {
        if (mono_us() > deadline)
            STR_COPY(a->text, "it does not say hello");
        else if (sd_event_run(a->event, (uint64_t)TURN) < 0)
            return -EIO;
    }
    return a->hello ? 0 : -EIO;
}

int ask_adapter_new(const struct daemon_config *c, struct ask_adapter **ret, char *ret_path,
                    size_t size, struct err *e)
{
    static const struct adapter_handlers handlers = {.hello = on_hello, .down = on_down};
    _cleanup_(ask_adapter_freep) struct ask_adapter *a = xnew(struct ask_adapter);
    const struct command *command = &c->adapter.command;
    const char *argv[COMMAND_ARGS_MAX + 1] = {ret_path};

    if (sd_event_new(&a->event) < 0)
        return err_set(e, -ENOMEM, "no event loop");
    for (unsigned i = 0; i < command->n; i++)
        argv[i] = command->argv[i];
    if (command->n > 0)
        str_copy(ret_path, size, argv[0]);
    else if (*c->spawner && access(c->spawner, W_OK) == 0)
        a->children = children_new(a->event, &(struct children_config){.spawner = c->spawner});
    else if (sibling_find("reknit-slurm", ret_path, size) < 0)
        return err_set(e, -ENOENT, "there is no %s", ret_path);
    if (a->children)
        str_printf(ret_path, size, "the one that the spawner starts");
    a->adapter = adapter_new(a->event, a->children ? NULL : argv, a->children, &handlers, a);
    if (!a->adapter)
        return err_set(e, -ENOMEM, "no event loop");
    if (await_hello(a) < 0)
        return err_set(e, -EIO, "%s: %s", ret_path, a->text);
    *ret = TAKE(a);
    return 0;
}

struct ask_adapter *ask_adapter_free(struct ask_adapter *a)
{
    if (a) {
        adapter_free(a->adapter);
        children_free(a->children);
        json_decref(a->hello);
        json_decref(a->answer);
        sd_event_unref(a->event);
        free(a);
    }
    return NULL;
}

const json_t *ask_adapter_hello(const struct ask_adapter *a)
{
    return a->hello;
}

bool ask_adapter_is_up(const struct ask_adapter *a)
{
    return adapter_is_up(a->adapter);
}

const json_t *ask_adapter(struct ask_adapter *a, json_t *request, struct err *e)
{
    json_decref(a->answer);
    a->answer = NULL;
    a->answered = false;
    STR_COPY(a->text, "");
    adapter_ask(a->adapter, request, DEADLINE, on_reply, a);
    while (!a->answered && sd_event_run(a->event, UINT64_MAX) >= 0)
        ;
    if (a->answered && a->outcome == ADAPTER_DONE)
        return a->answer;
    err_set(e, -EIO, "%s", *a->text ? a->text : "no answer");
    return NULL;
}
