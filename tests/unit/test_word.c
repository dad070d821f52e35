/* SPDX-License-Identifier: Apache-2.0 */

/* The words that say for which connection a seal was made. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/word.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define MANY 1000

/* The linker puts it before the real one. */
static ssize_t given; /* what the kernel gives; 0 = as it does */
ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    if (given == 0)
        return __real_getrandom(buffer, size, flags);
    memset(buffer, 0xab, size);
    return given;
}

static void a_word_is_all_of_what_the_kernel_gave(void **state)
{
    char word[WORD_LEN];

    (void)state;
    given = (WORD_LEN - 1) / 2;
    assert_int_equal(word_make(word), 0);
    assert_string_equal(word, "abababababababababababababababab");
    given = 0;
}

static void no_two_are_the_same(void **state)
{
    static char words[MANY][WORD_LEN];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(word_make(words[i]), 0);
        assert_int_equal(strspn(words[i], "0123456789abcdef"), WORD_LEN - 1);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(words[i], words[k]);
    }
}

/* Better none than one that others can guess. */
static void without_random_numbers_there_is_none(void **state)
{
    static const ssize_t little[] = {-1, 1, (WORD_LEN - 1) / 2 - 1};
    char word[WORD_LEN] = "as it was";

    (void)state;
    for (size_t i = 0; i < sizeof(little) / sizeof(little[0]); i++) {
        given = little[i];
        assert_int_equal(word_make(word), -EIO);
        assert_string_equal(word, "as it was");
    }
    given = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_is_all_of_what_the_kernel_gave),
        cmocka_unit_test(no_two_are_the_same),
        cmocka_unit_test(without_random_numbers_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
