/* SPDX-License-Identifier: Apache-2.0 */

/* What is the kernel's own word in its log, and what others have it say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "extract/kernel_line.h"

#include <string.h>

static bool vouches(const char *text, const char *match)
{
    const char *at = strstr(text, match);

    assert_non_null(at);
    return kernel_line_vouches(text, (size_t)(at - text), (size_t)(at - text) + strlen(match));
}

#define XID "NVRM: Xid (PCI:0000:9b:00): 79"

static void its_own_words(void **state)
{
    static const struct {
        const char *text, *match;
    } good[] = {
        {XID ", pid=7, name=python, GPU has fallen off the bus.", XID},
        {"NVRM: GPU at PCI:0000:3b:00 has fallen off the bus",
         "GPU at PCI:0000:3b:00 has fallen off the bus"},
        {"EXT4-fs (sda1): Remounting filesystem read-only", "Remounting filesystem read-only"},
        {"pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received",
         "Uncorrected (Fatal) error"},
        {"{12}[Hardware Error]: event severity: fatal", "[Hardware Error]: event severity: fatal"},
        {"LustreError: 167-0: scr-OST0009-osc: This client was evicted by scr-OST0009;",
         "This client was evicted by scr-OST0009;"},
        {"sd 0:0:0:0: [sda] tag#12 FAILED Result: hostbyte=DID_OK", "FAILED Result: hostbyte="},
        {"NMI watchdog: Watchdog detected hard LOCKUP on cpu 7", "Watchdog detected hard LOCKUP"},
        {"bond0: (slave eth3): link status definitely down for interface eth3",
         "link status definitely down for interface"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (!vouches(good[i].text, good[i].match))
            fail_msg("%s", good[i].text);
}

/* Each by a user who is nobody: names of processes, files, control groups, mount options. */
static void what_others_have_it_say(void **state)
{
    static const struct {
        const char *text, *match;
    } forged[] = {
        {"python3[77]: segfault at 0 ip 0000 sp 0000 error 6 in " XID "[55d000+2c9000]", XID},
        {"traps: python3[77] general protection fault ip:7f sp:7f error:0 in " XID, XID},
        {"process 'd/e/" XID "' started with executable stack", XID},
        {"overlayfs: failed to resolve '" XID "': -2", XID},
        {"tmpfs: Unknown parameter '" XID "'", XID},
        {"ptrace attach of \"" XID "\"[7] was attempted by \"sh\"[8]", XID},
        {"cgroup: fork rejected by pids controller in /user.slice/" XID, XID},
        {"oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/user.slice/" XID, XID},
        {"EXT4-fs error[77]: segfault at 0", "EXT4-fs error"},
        {"mmap: EXT4-fs error (77): VmData 9 exceed data ulimit 8", "EXT4-fs error"},
        {"efa [77]: segfault at 0 ip 0000 sp 0000 error 6 in x",
         "efa [77]: segfault at 0 ip 0000 sp 0000 error"},
        {"efa : page allocation failure: order:0, reset",
         "efa : page allocation failure: order:0, reset"},
        {"audit: type=1400 audit(1.2:3): comm=\"x\" name=\"" XID, XID},
    };

    for (size_t i = 0; i < ARRAY_SIZE(forged); i++)
        if (vouches(forged[i].text, forged[i].match))
            fail_msg("%s", forged[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_words),
        cmocka_unit_test(what_others_have_it_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
