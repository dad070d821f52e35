/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environs.h"

#include "base/aside.h"

struct asking {
    environs_fn fn;
    void *ctx;
};

static int read_environ(pid_t pid, struct strbuf *ret)
{
    struct proc_environ env = {0};
    int r = proc_environ_read(pid, &env);

    *ret = env.text;
    return r;
}

static void on_text(void *ctx, size_t i, const struct strbuf *text)
{
    const struct asking *a = ctx;
    struct proc_environ env = {0};

    if (text)
        env.text = *text;
    a->fn(a->ctx, i, text ? &env : NULL);
}

void environs_read(const pid_t *pids, size_t n, environs_fn fn, void *ctx)
{
    struct asking a = {fn, ctx};

    aside_read(pids, n, read_environ, on_text, &a);
}
