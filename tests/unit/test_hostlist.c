/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hostlist.h"

static const struct {
    const char *list, *name;
    bool has;
} cases[] = {
    {"n1", "n1", true},
    {"n1", "n11", false},
    {"n11", "n1", false},
    {"n1,n2", "n2", true},
    {"n[1-4,7],login", "n3", true},
    {"n[1-4,7],login", "n7", true},
    {"n[1-4,7],login", "n5", false},
    {"n[1-4,7],login", "login", true},
    {"n[1-4,7],login", "n", false},
    {"n[1-4,7],login", "n[1-4,7]", false},
    {"n[1-4],m[1-4]", "m4", true},
    {"n[1-4],m[1-4]", "m5", false},
    /* leading zeros are part of the name */
    {"gpu-a[01-12]", "gpu-a07", true},
    {"gpu-a[01-12]", "gpu-a7", false},
    {"gpu-a[01-12]", "gpu-a007", false},
    {"gpu-a[1-12]", "gpu-a07", false},
    {"gpu-a[1-12]", "gpu-a12", true},
    {"n[8-12]", "n8", true},
    {"n[8-12]", "n08", false},
    {"n[098-102]", "n100", true},
    {"n[098-102]", "n98", false},
    {"n[98-102]", "n100", true},
    /* several brackets, and something behind one */
    {"r[1-2]n[1-4]", "r2n4", true},
    {"r[1-2]n[1-4]", "r3n4", false},
    {"n[1-4]-ib", "n2-ib", true},
    {"n[1-4]-ib", "n2", false},
    /* never expanded */
    {"n[0-999999999]", "n123456789", true},
    {"n[0-999999999999999999]", "n5", true},
    /* what is no list names nobody */
    {"", "", false},
    {"", "n1", false},
    {"n1", "", false},
    {"n[", "n", false},
    {"n[", "n1", false},
    {"n[1", "n1", false},
    {"n[1-", "n1", false},
    {"n[]", "n", false},
    {"n[]", "n1", false},
    {"n[a-b]", "na", false},
    {"n[4-1]", "n2", false},
    {"n[1-4", "n2", false},
    {"n[1-4x]", "n2", false},
    {"n[1-99999999999999999999]", "n2", false},
    {"n[1-4]]", "n2", false},
    {",n1", "n1", true},
    {"n[1-2],,n5", "n5", true},
};

static void a_list_names_its_hosts(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (hostlist_has(cases[i].list, cases[i].name) != cases[i].has)
            fail_msg("\"%s\" %s \"%s\"", cases[i].list, cases[i].has ? "has" : "does not have",
                     cases[i].name);
}

static const struct {
    const char *list, *copy; /* into 16 bytes */
} cut[] = {
    {"n1,n2,n3", "n1,n2,n3"},
    {"n[1-4,7],login", "n[1-4,7],login"},
    {"n01,n02,n03,n04,n05", "n01,n02,..."},
    {"n[1,3,5,7,9,11,13]", "n[1,3,5,7],..."},
    {"n[1-2],m[3,5,7,9]", "n[1-2],m[3],..."},
    {"r[1,3]n[1,3,5,7,9]", "r[1,3]n[1],..."},
    {"r[1,3,5]n[1,3,5,7]", ",..."},
    {"a,r[1,3]n[1,3,5,7]", "a,..."},
    {"a-name-without-an-end", ",..."},
    {"n[1,3,5,7,9,11,13", ",..."},
};

static void what_does_not_fit_is_cut_between_hosts(void **state)
{
    char copy[16];

    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        hostlist_copy(copy, sizeof(copy), cut[i].list);
        assert_string_equal(copy, cut[i].copy);
        assert_int_equal(hostlist_is_cut(copy), strcmp(copy, cut[i].list) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_names_its_hosts),
        cmocka_unit_test(what_does_not_fit_is_cut_between_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
