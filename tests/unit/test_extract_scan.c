/* SPDX-License-Identifier: Apache-2.0 */

/* Whole logs through the scanner, with a small catalogue of its own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/vec.h"
#include "extract/counter.h"
#include "extract/scanner.h"
#include "extract/shuffle.h"

#include <stdio.h>
#include <string.h>

static const char catalogue[] =
    "signatures:\n"
    "  - {id: t.value, role: root, cause: user-code, yields_to: [t.oom],\n"
    "     patterns: ['\\b(?:ValueError|TypeError)(?::|$)']}\n"
    "  - {id: t.oom, role: root, cause: gpu-oom, patterns: ['OutOfMemoryError']}\n"
    "  - {id: t.ecc, role: root, cause: gpu-hardware, patterns: ['uncorrectable ECC error']}\n"
    "  - {id: t.exit, role: confirm, patterns: ['exited with code (?<code>-?\\d+)']}\n"
    "  - {id: t.saved, role: checkpoint, edge: end, patterns: ['saved checkpoint (?<step>\\d+)']}\n"
    "  - {id: t.quiet, role: noise, hides: ['t.*'], patterns: ['ignored on purpose']}\n"
    "  - {id: t.step, role: progress, patterns: ['step (?<step>\\d+)/(?<total>\\d+)\\b'],\n"
    "     fields: ['loss (?<loss>[0-9.]+|nan)', '(?<seconds>[0-9.]+) s/it'],\n"
    "     examples: {match: ['step 12/3456 | loss 2.345 | 0.812 s/it | lr 1.5e-04']}}\n"
    "  - {id: python.exception, role: symptom, cause: user-code,\n"
    "     patterns: ['^[a-z.]+ThingError: ']}\n";

struct world {
    struct catalog *catalog;
    struct matcher *matcher;
    struct scanner_options options;
    VEC(struct signal) signals;
};

static int open_world(void **state)
{
    struct world *w = xnew(struct world);
    struct err e = {0};

    w->options.now_us = USEC_UNKNOWN;
    if (catalog_load_text("test.yaml", catalogue, sizeof(catalogue) - 1, &w->catalog, &e) < 0 ||
        matcher_new(w->catalog, &w->matcher, &e) < 0)
        fail_msg("%s", e.text);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;

    VEC_DONE(&w->signals);
    matcher_free(w->matcher);
    catalog_free(w->catalog);
    free(w);
    return 0;
}

static void collect(void *ctx, const struct signal *s)
{
    struct world *w = ctx;

    *VEC_PUSH(&w->signals) = *s;
}

/* In pieces of `chunk` bytes. */
static void scan_bytes(struct world *w, const char *text, size_t len, size_t chunk)
{
    struct scanner *s = scanner_new(w->matcher, &w->options, collect, w);

    w->signals.n = 0;
    for (size_t at = 0; at < len; at += chunk)
        scanner_feed(s, text + at, len - at < chunk ? len - at : chunk);
    scanner_finish(s);
    assert_int_equal(scanner_counters(s)->bytes, len);
    scanner_free(s);
}

static void scan(struct world *w, const char *text)
{
    scan_bytes(w, text, strlen(text), 4096);
}

static size_t count(const struct world *w, const char *signature)
{
    size_t n = 0;

    VEC_FOREACH (&w->signals, s)
        n += streq(s->signature, signature);
    return n;
}

static const struct signal *find(const struct world *w, const char *signature)
{
    VEC_FOREACH (&w->signals, s)
        if (streq(s->signature, signature))
            return s;
    fail_msg("no signal %s", signature);
    return NULL;
}

static void bars_that_rewrite_themselves_are_records(void **state)
{
    struct world *w = *state;
    const struct signal *s;

    scan(w,
         "start\n[rank5]: \r step 1/9 | loss 2.5\r step 2/9 | loss nan\rstep 3/9 ValueError: x\n");
    assert_int_equal(count(w, "t.step"), 3);
    s = find(w, "t.value");
    assert_int_equal(s->line, 2);
    assert_int_equal(s->who.rank, 5); /* of the beginning of the line */
    assert_int_equal(w->signals.v[1].step.step, 1);
    assert_true(w->signals.v[2].step.loss == METRIC_NAN);
}

static void collectors_spell_control_codes(void **state)
{
    struct world *w = *state;

    scan(w, "[1,3]<stdout>:#015step 1/9 | x#015step 2/9 #033[A\n[1,4]<stderr>:#033[31mValue"
            "#033[0mError: x\n");
    assert_int_equal(count(w, "t.step"), 2);
    assert_int_equal(find(w, "t.step")->who.rank, 3);
    assert_int_equal(find(w, "t.value")->who.rank, 4);
}

static void a_message_glued_to_a_bar_is_found(void **state)
{
    struct world *w = *state;

    scan(w, "step 7/9 | 1.5 s/it[rank2]: torch.OutOfMemoryError: CUDA[rank6]: ValueError: y\n");
    assert_int_equal(count(w, "t.step"), 1);
    assert_int_equal(find(w, "t.step")->step.duration, 1500000);
    assert_int_equal(find(w, "t.oom")->who.rank, 2);
}

static void long_lines_hold_many_messages(void **state)
{
    struct world *w = *state;
    struct strbuf b = {0};

    for (int i = 0; i < 40; i++) {
        strbuf_addf(&b, "[rank%d]: ", i);
        for (int j = 0; j < 600; j++)
            strbuf_adds(&b, "filler text ");
        strbuf_adds(&b, i % 2 ? "ValueError: x " : "x OutOfMemoryError ");
    }
    scan_bytes(w, b.s, b.len, 1000);
    assert_int_equal(count(w, "t.value"), 20);
    assert_int_equal(count(w, "t.oom"), 20);
    for (int i = 0; i < 40; i++)
        assert_int_equal(w->signals.v[i].who.rank, i);
    strbuf_done(&b);
}

/* 100 MB without a line end: memory stays what it is, and what it says is found. */
static void an_endless_line_is_read_in_pieces(void **state)
{
    struct world *w = *state;
    struct scanner *s = scanner_new(w->matcher, &w->options, collect, w);
    static char filler[1 << 16];

    memset(filler, 'x', sizeof(filler));
    for (int i = 0; i < 1600; i++) {
        scanner_feed(s, filler, sizeof(filler));
        if (i == 800)
            scanner_feed(s, " ValueError: x ", 15);
    }
    scanner_feed(s, "\nstep 4/9 \n", 11);
    scanner_finish(s);
    assert_int_equal(count(w, "t.value"), 1);
    assert_int_equal(count(w, "t.step"), 1);
    assert_int_equal(find(w, "t.step")->line, 2);
    scanner_free(s);
}

/* Wherever a piece ends, the message on the border is told once. */
static void a_message_on_the_border_of_a_piece_is_told_once(void **state)
{
    struct world *w = *state;
    enum { LEN = 70000 };
    static char line[LEN + 40];

    for (size_t at = 63000; at < 66000; at += 61) {
        memset(line, 'x', LEN);
        memcpy(line + at, " uncorrectable ECC error ", 25);
        line[LEN] = '\n';
        scan_bytes(w, line, LEN + 1, 70000);
        assert_int_equal(w->signals.n, 1);
    }
}

static void nul_and_invalid_bytes_are_read_over(void **state)
{
    static const char text[] = "\0\0step 1/9 \n\xff\xfe\0V\0a\0l\0u\0e\0E\0r\0r\0o\0r\0:\0\n";
    struct world *w = *state;

    scan_bytes(w, text, sizeof(text) - 1, 3);
    assert_int_equal(count(w, "t.step"), 1);
    assert_int_equal(count(w, "t.value"), 1);
    assert_string_equal(find(w, "t.value")->text, "\xef\xbf\xbd\xef\xbf\xbdValueError:");
}

static void the_end_may_be_cut_in_a_word(void **state)
{
    struct world *w = *state;

    scan(w, "step 1/9 \nRuntimeError: CUDA error: uncorrectable EC");
    assert_int_equal(count(w, "t.ecc"), 1);
    assert_non_null(strstr(find(w, "t.ecc")->text, "cut short"));
    scan(w, "step 1/9 \nRuntimeError: CUDA error: uncorrectable EC\n");
    assert_int_equal(count(w, "t.ecc"), 0);
    scan(w, "step 1/9 \nCUDA error: uncorr");
    assert_int_equal(count(w, "t.ecc"), 0); /* it could be anything */
}

static void exceptions_carry_the_frame_of_the_user(void **state)
{
    struct world *w = *state;
    const struct signal *s;

    scan(w, "[rank1]: Traceback (most recent call last):\n"
            "[rank0]: Traceback (most recent call last):\n"
            "[rank1]:   File \"/home/u/train.py\", line 71, in step\n"
            "[rank1]:     loss = model(x)\n"
            "[rank0]:   File \"/home/u/eval.py\", line 5, in run\n"
            "[rank1]:   File \"/opt/lib/python3.11/site-packages/torch/nn.py\", line 9, in call\n"
            "[rank1]: ValueError: x\n"
            "[rank0]: lab.Oddity: never seen before\n");
    s = find(w, "t.value");
    assert_int_equal(s->who.rank, 1);
    assert_string_equal(s->text + s->message, "ValueError: x  (train.py:71 in step)");
    s = find(w, "python.exception");
    assert_int_equal(s->who.rank, 0);
    assert_string_equal(s->text + s->message, "lab.Oddity: never seen before  (eval.py:5 in run)");
}

/* Two ranks without prefix, as Python writes its parts: line by line, and parts of lines. */
static void interleaved_tracebacks_give_both_exceptions(void **state)
{
    struct world *w = *state;

    scan(w, "Traceback (most recent call last):\n"
            "  File \"/home/u/train.py\", line 71, in step\n"
            "Traceback (most recent call last):\n"
            "    loss = model(x)  File \"/home/u/train.py\", line 71, in step\n"
            "    loss = model(x)\n"
            "lab.lab.Oddity: Oddity: never\n"
            "lab.Oddity: never\n"
            "lab.Oddity: never\n"
            "lab.Oddity: outside of any traceback\n");
    assert_int_equal(count(w, "python.exception"), 2);
}

/* Many collectors keep the last line of a traceback only, behind their own prefix. */
static void bare_exceptions_were_raised(void **state)
{
    struct world *w = *state;

    scan(w, "2026-01-02 03:04:05 [rank3]: ValueError: bad batch\n"
            "torch.OutOfMemoryError\n"
            "worker 4 saw a TypeError: retried\n"
            "Warning: ValueError: ignored\n"
            "uncorrectable ECC error\n");
    assert_int_equal(count(w, "t.value"), 3);
    VEC_FOREACH (&w->signals, s)
        assert_int_equal(s->raised, s->line <= 2);
}

/* What `copies` processes leave that write the text at the same time, in bursts of at most `burst`
 * characters; none gets more than a few characters ahead. */
static void shuffle(struct strbuf *out, const char *text, unsigned copies, unsigned burst,
                    uint32_t seed)
{
    size_t at[8] = {0}, len = strlen(text), left = copies * len;

    strbuf_reset(out);
    while (left > 0) {
        unsigned who, n;

        seed = seed * 1664525 + 1013904223;
        who = (seed >> 24) % copies;
        n = 1 + (seed >> 16) % burst;
        for (unsigned i = 0; i < copies; i++)
            who = at[i] + 6 < at[who] ? i : who;
        for (; n > 0 && at[who] < len; n--, left--)
            strbuf_addc(out, text[at[who]++]);
    }
}

static void words_written_over_each_other_are_read(void **state)
{
    static const char text[] = "Traceback (most recent call last):\n"
                               "  File \"a.py\", line 3, in <module>\n"
                               "    run(batch)\n"
                               "ValueError: bad batch\n";
    struct world *w = *state;
    struct strbuf b = {0};
    unsigned read = 0, tried = 0;

    for (unsigned copies = 2; copies <= 4; copies++)
        for (unsigned burst = 1; burst <= 3; burst++)
            for (uint32_t seed = 1; seed <= 20; seed++) {
                shuffle(&b, text, copies, burst, seed);
                scan_bytes(w, b.s, b.len, 4096);
                tried++;
                read += count(w, "t.value") >= 1;
            }
    assert_true(read * 100 >= tried * 95);
    scan(w, "VVaalluueeEErrrroorr::  bbaadd\n");
    assert_non_null(strstr(find(w, "t.value")->text, "2 processes at once: ValueError"));
    scan(w, "uunnccoorrrreeccttaabbllee  EECCCC  eerrrroorr\n");
    assert_int_equal(count(w, "t.ecc"), 1);
    /* Side by side they need no repair; and ordinary text is no shuffle. */
    scan(w, "ValueErrorValueError and ValueErrors\n");
    assert_int_equal(w->signals.n, 0);
    scan(w, "error rate: rear mirror error, ferry terror, error recorder error carrier\n");
    assert_int_equal(w->signals.n, 0);
    strbuf_done(&b);
}

/* Core adds and multiplies them. */
static void numbers_beyond_all_measure_are_none(void **state)
{
    struct world *w = *state;

    scan(w, "step 999999999999999999/9 | 99999999999999999999 s/it\nsaved checkpoint 1"
            "000000000000000000\nstep 1000000000000000/99999999999999999999 | 2.0 s/it\n");
    assert_int_equal(w->signals.n, 3);
    assert_true(w->signals.v[0].step.step == STEP_NONE);
    assert_int_equal(w->signals.v[0].step.total, 9);
    assert_true(w->signals.v[0].step.duration == NUMBER_NONE);
    assert_true(w->signals.v[1].checkpoint.step == STEP_NONE);
    assert_int_equal(w->signals.v[2].step.step, NUMBER_MAX);
    assert_true(w->signals.v[2].step.total == NUMBER_NONE);
    assert_int_equal(w->signals.v[2].step.duration, 2000000);
}

/* Two processes' letters of one word, with others between. */
static unsigned copies_in(const char *word, const char *between)
{
    struct strbuf b = {0};
    size_t at;
    unsigned n;

    for (const char *c = word; *c; c++)
        strbuf_addf(&b, "%c%s%c%s", *c, between, *c, between);
    n = shuffle_find(b.s, b.len, word, strlen(word), &at);
    strbuf_done(&b);
    return n;
}

static void thin_letters_are_no_word(void **state)
{
    (void)state;
    assert_int_equal(copies_in("ValueError", ""), 2);
    assert_int_equal(copies_in("ValueError", "-"), 2);
    assert_int_equal(copies_in("ValueError", "----"), 0);
}

static void noise_hides_what_it_names(void **state)
{
    struct world *w = *state;

    scan(w, "ValueError: ignored on purpose\nValueError: x\n");
    assert_int_equal(count(w, "t.value"), 1);
    assert_int_equal(find(w, "t.value")->line, 2);
}

static void exits_are_read(void **state)
{
    struct world *w = *state;

    scan(w, "x exited with code -9\ny exited with code 3\n");
    assert_int_equal(w->signals.v[0].kind, SIGNAL_EXIT);
    assert_int_equal(w->signals.v[0].exit.signal, 9);
    assert_int_equal(w->signals.v[0].exit.code, -1);
    assert_int_equal(w->signals.v[1].exit.code, 3);
}

static void output_is_told_once_a_second(void **state)
{
    struct world *w = *state;

    scan(w, "2026-01-02 03:04:05.1 a\n2026-01-02 03:04:05.9 b\n2026-01-02 03:04:07.0 c\n"
            "[rank3]: d\n[rank3]: e\n");
    assert_int_equal(w->signals.n, 3);
    VEC_FOREACH (&w->signals, s)
        assert_int_equal(s->kind, SIGNAL_OUTPUT);
    assert_int_equal(w->signals.v[1].line, 3);
    assert_int_equal(w->signals.v[2].who.rank, 3);
}

static void a_counter_of_an_unknown_program_is_found(void **state)
{
    struct world *w = *state;
    struct strbuf b = {0};

    for (int i = 0; i < 40; i++)
        strbuf_addf(&b, "worker up: gpu%d of 8, shard 17\n[fit] tick %d of 400 -> nll %d.%d\n",
                    i % 8, 100 + i * 5, 2 + i % 2, i % 7);
    scan_bytes(w, b.s, b.len, 4096);
    assert_true(count(w, COUNTER_SIGNATURE) > 30);
    assert_int_equal(w->signals.v[w->signals.n - 1].step.step, 100 + 39 * 5);
    assert_int_equal(w->signals.v[w->signals.n - 1].step.loss, 3400000);
    strbuf_reset(&b);
    /* Lists count, too, but stop or stand alone. */
    for (int i = 0; i < 40; i++)
        strbuf_addf(&b, "frame #%d: foo\nloading shard %d\n", i, i);
    scan_bytes(w, b.s, b.len, 4096);
    assert_int_equal(count(w, COUNTER_SIGNATURE), 0);
    strbuf_done(&b);
}

/* Kernels and daemons number what they log, beside process numbers that go up and down. */
static void a_system_log_counts_no_steps(void **state)
{
    struct world *w = *state;
    struct strbuf b = {0};

    for (int form = 0; form < 3; form++) {
        strbuf_reset(&b);
        for (int i = 0; i < 120; i++) {
            if (form == 0)
                strbuf_addf(&b, "Mar  3 04:%02d:%02d n113 kernel: [  8%02d.409324] ", i / 60,
                            i % 60, 10 + i % 80);
            else if (form == 1)
                strbuf_addf(&b, "[Mon Mar  3 04:%02d:%02d 2025] ", i / 60, i % 60);
            else
                strbuf_addf(&b, "Mar  3 04:%02d:%02d n113 auditd[77]: ", i / 60, i % 60);
            strbuf_addf(&b, "audit: type=1400 audit(17409745%02d.196:%d): pid=%d\n", i % 90,
                        4004 + i, 3576 + i * 7 % 31);
        }
        scan_bytes(w, b.s, b.len, 4096);
        assert_int_equal(count(w, COUNTER_SIGNATURE), 0);
    }
    strbuf_done(&b);
}

/* A log of many blocks: progress, a few failures and checkpoints at places that are told apart by
 * nothing, other text. */
static void make_large_log(struct strbuf *b, size_t bytes, uint64_t *failures)
{
    uint32_t random = 7;

    *failures = 0;
    for (int i = 1; b->len < bytes; i++) {
        random = random * 1664525 + 1013904223;
        strbuf_addf(b, "step %d/9999999 | loss 2.%u | 0.%u s/it | lr 1.5e-04 | tokens %d%c", i,
                    random >> 20, random >> 25, i * 4096, random >> 31 ? '\n' : '\r');
        if (random % 3000 == 0) {
            strbuf_addf(b, "[rank%u]: ValueError: x %d\n", random >> 28, i);
            ++*failures;
        }
        if (random % 1000 == 1)
            strbuf_addf(b, "saved checkpoint %d\n", i);
    }
}

static void failures_are_never_sampled(void **state)
{
    struct world *w = *state;
    struct strbuf b = {0};
    uint64_t failures;
    const struct signal *last;

    make_large_log(&b, (size_t)12 << 20, &failures);
    w->options.size = b.len;
    scan_bytes(w, b.s, b.len, (size_t)256 << 10);
    assert_true(failures > 10);
    assert_int_equal(count(w, "t.value"), failures);
    assert_true(count(w, "t.saved") > 50);
    last = &w->signals.v[w->signals.n - 1];
    assert_true(last->kind == SIGNAL_STEP && last->offset + 400 > b.len);
    VEC_FOREACH (&w->signals, s) {
        uint64_t line = 1;

        if (!streq(s->signature, "t.value"))
            continue;
        for (uint64_t i = 0; i < s->offset; i++)
            line += b.s[i] == '\n';
        assert_int_equal(s->line, line);
        assert_memory_equal(b.s + s->offset, s->text, strlen(s->text));
    }
    strbuf_done(&b);
}

/* A failure at the end of a block: what follows it stands in the next one. */
static void all_that_follows_a_failure_is_read(void **state)
{
    const size_t border = (size_t)5 << 20, follows = (size_t)30 << 10;
    struct world *w = *state;
    struct strbuf b = {0};
    size_t lines = 0, seen = 0;
    bool failed = false;

    for (int i = 1; b.len < (size_t)7 << 20; i++) {
        if (!failed && b.len + 200 > border) {
            strbuf_addf(&b, "[rank1]: ValueError: x\n");
            failed = true;
        }
        lines += b.len >= border && b.len < border + follows;
        strbuf_addf(&b, "step %d/9999999 | loss 2.5 | 0.25 s/it | lr 1.5e-04\n", i);
    }
    w->options.size = b.len;
    scan_bytes(w, b.s, b.len, (size_t)256 << 10);
    assert_int_equal(count(w, "t.value"), 1);
    VEC_FOREACH (&w->signals, s)
        seen += s->kind == SIGNAL_STEP && s->offset >= border && s->offset < border + follows;
    assert_int_equal(seen, lines);
    strbuf_done(&b);
}

static void chunks_do_not_matter(void **state)
{
    static const size_t chunks[] = {1, 7, 4096, 65537, (size_t)256 << 10, (size_t)1 << 20};
    struct world *w = *state;
    struct signal *want;
    struct strbuf b = {0};
    uint64_t failures;
    size_t n;

    make_large_log(&b, ((size_t)6 << 20) + 12345, &failures);
    scan_bytes(w, b.s, b.len, b.len);
    n = w->signals.n;
    want = xmemdup(w->signals.v, n * sizeof(*want));
    for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
        w->options.size = i % 2 ? b.len : 0;
        scan_bytes(w, b.s, b.len, chunks[i]);
        assert_int_equal(w->signals.n, n);
        for (size_t j = 0; j < n; j++) {
            assert_int_equal(w->signals.v[j].offset, want[j].offset);
            assert_int_equal(w->signals.v[j].line, want[j].line);
            assert_string_equal(w->signals.v[j].signature, want[j].signature);
            assert_string_equal(w->signals.v[j].text, want[j].text);
        }
    }
    free(want);
    strbuf_done(&b);
}

static void a_flush_gives_what_is_complete(void **state)
{
    struct world *w = *state;
    struct scanner *s = scanner_new(w->matcher, &w->options, collect, w);

    scanner_feed(s, "step 1/9 \nValueErr", 18);
    scanner_flush(s);
    assert_int_equal(count(w, "t.step"), 1);
    scanner_feed(s, "or: x\n", 6);
    assert_int_equal(count(w, "t.value"), 0);
    scanner_flush(s);
    assert_int_equal(count(w, "t.value"), 1);
    assert_int_equal(find(w, "t.value")->line, 2);
    assert_int_equal(find(w, "t.value")->offset, 10);
    scanner_finish(s);
    assert_int_equal(w->signals.n, 2);
    scanner_free(s);
}

/* Steps from `first` on, `bytes` of them to the byte; the last one. */
static int feed_steps(struct scanner *s, int first, size_t bytes)
{
    struct strbuf b = {0};
    int i = first;

    for (; b.len + 64 <= bytes; i++)
        strbuf_addf(&b, "step %07d/9999999 | loss 2.5\n", i);
    strbuf_addf(&b, "step %07d/9999999 |%*s\n", i, (int)(bytes - b.len) - 23, "");
    assert_int_equal(b.len, bytes);
    scanner_feed(s, b.s, b.len);
    strbuf_done(&b);
    return i;
}

/* A program that buffers its output writes much of it at once; how far it got stands at the end. */
static void a_flush_shows_how_far_it_got(void **state)
{
    static const size_t sizes[] = {8 << 10, 5 << 20, 6 << 10, 300 << 10, 0, 30 << 10};
    struct world *w = *state;
    struct scanner *s = scanner_new(w->matcher, &w->options, collect, w);
    size_t fed = 0;
    int last = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        /* 0: up to where a block ends */
        size_t bytes = sizes[i] ? sizes[i] : (512 << 10) - fed % (256 << 10);

        last = feed_steps(s, last + 1, bytes);
        fed += bytes;
        scanner_flush(s);
        assert_int_equal(w->signals.v[w->signals.n - 1].step.step, last);
    }
    scanner_finish(s);
    scanner_free(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bars_that_rewrite_themselves_are_records),
        TEST(collectors_spell_control_codes),
        TEST(a_message_glued_to_a_bar_is_found),
        TEST(long_lines_hold_many_messages),
        TEST(an_endless_line_is_read_in_pieces),
        TEST(a_message_on_the_border_of_a_piece_is_told_once),
        TEST(nul_and_invalid_bytes_are_read_over),
        TEST(the_end_may_be_cut_in_a_word),
        TEST(exceptions_carry_the_frame_of_the_user),
        TEST(interleaved_tracebacks_give_both_exceptions),
        TEST(bare_exceptions_were_raised),
        TEST(words_written_over_each_other_are_read),
        TEST(numbers_beyond_all_measure_are_none),
        TEST(thin_letters_are_no_word),
        TEST(noise_hides_what_it_names),
        TEST(exits_are_read),
        TEST(output_is_told_once_a_second),
        TEST(a_counter_of_an_unknown_program_is_found),
        TEST(a_system_log_counts_no_steps),
        TEST(failures_are_never_sampled),
        TEST(all_that_follows_a_failure_is_read),
        TEST(chunks_do_not_matter),
        TEST(a_flush_gives_what_is_complete),
        TEST(a_flush_shows_how_far_it_got),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
