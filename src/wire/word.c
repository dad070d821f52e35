/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/word.h"

#include "base/str.h"

#include <errno.h>
#include <sys/random.h>

int word_make(char ret[WORD_LEN])
{
    unsigned char bytes[(WORD_LEN - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -EIO;
    for (size_t i = 0; i < sizeof(bytes); i++)
        str_printf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}
