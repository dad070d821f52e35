/* SPDX-License-Identifier: Apache-2.0 */

/* Which GPUs a job can use, from a driver's folder made for the test. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/gpus.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_MAX 40

struct driver {
    char folder[64];
    char gpu[FOLDERS_MAX][PATH_MAX];
    unsigned n;
};

static int setup(void **state)
{
    struct driver *d = test_calloc(1, sizeof(*d));

    STR_COPY(d->folder, "/tmp/reknit-gpus-XXXXXX");
    assert_non_null(mkdtemp(d->folder));
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct driver *d = *state;
    char file[PATH_MAX + 16];

    for (unsigned i = 0; i < d->n; i++) {
        STR_PRINTF(file, "%s/information", d->gpu[i]);
        unlink(file);
        rmdir(d->gpu[i]);
    }
    rmdir(d->folder);
    test_free(d);
    return 0;
}

/* No machine has so many device files that one of these exists. */
static void add_gpu(struct driver *d, const char *address, const char *model, const char *uuid)
{
    char file[PATH_MAX + 16];
    FILE *f;

    STR_PRINTF(d->gpu[d->n], "%s/%s", d->folder, address);
    assert_int_equal(mkdir(d->gpu[d->n], 0700), 0);
    STR_PRINTF(file, "%s/information", d->gpu[d->n]);
    f = fopen(file, "w");
    assert_non_null(f);
    fprintf(f,
            "Model: \t\t %s\nIRQ:   \t\t 115\nGPU UUID: \t %s\nVideo BIOS: \t 96.00.74.00.01\n"
            "Bus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %u\n",
            model, uuid, address, 90000 + d->n);
    fclose(f);
    d->n++;
}

static void add_four(struct driver *d)
{
    add_gpu(d, "0000:CB:00.0", "NVIDIA H100", "GPU-33");
    add_gpu(d, "0000:4D:00.0", "NVIDIA H100", "GPU-22");
    add_gpu(d, "0000:0a:00.0", "NVIDIA H100", "GPU-11");
    add_gpu(d, "0001:00:00.0", "NVIDIA H100", "GPU-1234");
}

/* "name name": what a job with these variables can use. */
static void check(const struct driver *d, const char *visible, const char *order, const char *list)
{
    struct gpu_places places = {.driver = d->folder, .visible = visible, .order = order};
    _cleanup_strbuf_ struct strbuf text = {0};
    struct gpu gpus[DEVICES_MAX];
    uint32_t n = gpus_list(&places, gpus);

    for (uint32_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s%s", i > 0 ? " " : "", gpus[i].name);
    assert_string_equal(strbuf_str(&text), list);
}

static void all_in_the_order_of_their_addresses(void **state)
{
    struct driver *d = *state;

    check(d, NULL, NULL, "");
    add_four(d);
    check(d, NULL, NULL, "0000:0a:00 0000:4d:00 0000:cb:00 0001:00:00");
}

static void those_that_the_user_chose_in_his_order(void **state)
{
    struct driver *d = *state;

    add_four(d);
    check(d, "2,0", NULL, "0000:cb:00 0000:0a:00");
    check(d, "GPU-22,GPU-11", NULL, "0000:4d:00 0000:0a:00");
    check(d, "3, GPU-33", NULL, "0001:00:00 0000:cb:00");
}

static void what_is_not_understood_is_not_guessed(void **state)
{
    static const char *const unclear[] = {
        "", "4", "-1", "0,7", "0,0", "GPU-1", "GPU-9", "MIG-1", "all", "0;1", "GPU-11,2,0",
    };
    struct driver *d = *state;
    char endless[8192];

    add_four(d);
    for (size_t i = 0; i < ARRAY_SIZE(unclear); i++)
        check(d, unclear[i], NULL, "");
    memset(endless, ' ', sizeof(endless) - 1);
    endless[0] = '0';
    endless[sizeof(endless) - 1] = '\0';
    check(d, endless, NULL, "");
}

static void numbers_mean_nothing_among_different_models_unless_told(void **state)
{
    struct driver *d = *state;

    add_four(d);
    add_gpu(d, "0002:00:00.0", "NVIDIA T400", "GPU-55");
    check(d, "1", NULL, "");
    check(d, "1", "FASTEST_FIRST", "");
    check(d, "1", "PCI_BUS_ID", "0000:4d:00");
    check(d, "GPU-55", NULL, "0002:00:00");
}

static void a_driver_that_says_something_else_makes_all_of_it_unknown(void **state)
{
    static const struct {
        const char *address, *uuid;
    } odd[] = {
        {"0000:0b:00.0", "GPU-?????????"}, {"0000:0b:00.0", "4711"},
        {"0000:0b:00.0", "GPU-1,2"},       {"version", "GPU-1"},
        {"0000:0b:00", "GPU-1"},           {"0000:0b:00.0x", "GPU-1"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        void *own;

        setup(&own);
        add_four(own);
        add_gpu(own, odd[i].address, "NVIDIA H100", odd[i].uuid);
        check(own, NULL, NULL, "");
        teardown(&own);
    }
}

static void more_than_can_be_told_apart_are_none(void **state)
{
    struct driver *d = *state;
    char address[32], uuid[32];

    for (unsigned i = 0; i <= DEVICES_MAX; i++) {
        STR_PRINTF(address, "0000:%02x:00.0", i);
        STR_PRINTF(uuid, "GPU-%u", 100 + i);
        add_gpu(d, address, "NVIDIA H100", uuid);
    }
    check(d, NULL, NULL, "");
}

static void the_rest_is_named_by_uuid(void **state)
{
    static const char without[][DEVICE_NAME_LEN] = {"0000:4d:00", "0000:99:00"};
    struct driver *d = *state;
    struct gpu_places places = {.driver = d->folder, .visible = "2,1,0"};
    _cleanup_strbuf_ struct strbuf text = {0};
    struct gpu gpus[DEVICES_MAX];

    add_four(d);
    assert_int_equal(gpus_list(&places, gpus), 3);
    gpus_name_rest(gpus, 3, without, 2, &text);
    assert_string_equal(strbuf_str(&text), "GPU-33,GPU-11");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_in_the_order_of_their_addresses),
        TEST(those_that_the_user_chose_in_his_order),
        TEST(what_is_not_understood_is_not_guessed),
        TEST(numbers_mean_nothing_among_different_models_unless_told),
        cmocka_unit_test(a_driver_that_says_something_else_makes_all_of_it_unknown),
        TEST(more_than_can_be_told_apart_are_none),
        TEST(the_rest_is_named_by_uuid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
