/* SPDX-License-Identifier: Apache-2.0 */

/* What a client may send to an adapter. Whatever the bytes are: lines are found the same however
 * they are cut into pieces, each has one answer, which is one line of valid JSON with the request's
 * id; a precondition or comment in it is understood or refused with a reason, never half. */

#include "base/str.h"
#include "slurm/comment.h"
#include "slurm/lines.h"
#include "slurm/expect.h"
#include "slurm/protocol.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE_LIMIT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct request *r, const struct err *e)
{
    _cleanup_answer_ struct answer a = {0};
    _cleanup_strbuf_ struct strbuf out = {0};
    json_t *back;

    if (e->code < 0)
        answer_fail(&a, FAULT_INVALID_REQUEST, 0, "%s", e->text);
    answer_write(&a, r->id, &out);
    assert(memchr(out.s, '\n', out.len) == out.s + out.len - 1);
    back = json_loadb(out.s, out.len, JSON_REJECT_DUPLICATES, NULL);
    assert(back);
    if (r->id != REQUEST_ID_NONE)
        assert(json_integer_value(json_object_get(back, "id")) == r->id);
    json_decref(back);
}

static void check_expect(const struct request *r)
{
    const struct job_look look = {.submit = 1, .state = SLURM_STATE_FAILED, .name = "train"};
    const json_t *expect = json_object_get(r->body, "expect");
    struct err e = {0};
    int result = expect_holds(&look, expect, true, &e);

    assert(result == 0 || result == -EINVAL || result == -ESTALE);
    assert((result == 0) == (e.text[0] == '\0'));
    if (result == 0)
        assert(json_object_get(expect, "submit") && json_object_get(expect, "states"));
}

static void check_comment(const struct request *r)
{
    const char *there = NULL;
    struct err e = {0};
    char *merged;
    json_t *all;

    if (request_text(r, "there", &there, &e) < 0 ||
        comment_merge(there, json_object_get(r->body, "comment"), &merged, &e) < 0)
        return;
    if (!merged) /* nothing of ours is there, and the comment stays as it is */
        return;
    all = json_loads(merged, JSON_REJECT_DUPLICATES, NULL);
    assert(merged[0] == '\0' || json_is_object(all));
    json_decref(all);
    free(merged);
}

static void check_line(const char *line, size_t len)
{
    _cleanup_request_ struct request r = {0};
    struct err e = {0};

    if (request_parse(line, len, &r, &e) == 0) {
        check_expect(&r);
        check_comment(&r);
    }
    check_answer(&r, &e);
}

/* Lines and those left out, of bytes that come in pieces of that size. */
static unsigned count_lines(const uint8_t *data, size_t size, size_t piece, bool check)
{
    _cleanup_lines_ struct lines l = {.max = LINE_LIMIT};
    unsigned n = 0;

    for (size_t at = 0; at < size; at += piece) {
        const char *line;
        size_t len;
        int r;

        lines_add(&l, (const char *)data + at, size - at < piece ? size - at : piece);
        while ((r = lines_next(&l, &line, &len)) != 0) {
            n += r < 0 ? 65536 : 1;
            assert(r == -E2BIG || (len <= LINE_LIMIT && !memchr(line, '\n', len)));
            if (r == 1 && check)
                check_line(line, len);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned whole = count_lines(data, size, size ? size : 1, true);

    assert(whole == count_lines(data, size, 7, false));
    return 0;
}
