/* SPDX-License-Identifier: Apache-2.0 */

/* A sealed text is "KEY1:MAC:TIME:TEXT": the MAC in hexadecimal, over all that follows its colon;
 * the time in microseconds. */

#include "seal/key.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX   "KEY1:"
#define MAC_TEXT (2 * SHA256_DIGEST_SIZE)

struct key {
    struct hmac_sha256_ctx ready; /* has taken the key */
};

static int read_key(int fd, const char *path, struct key *k, struct err *e)
{
    uint8_t bytes[KEY_BYTES_MAX];
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0 || (st.st_mode & 077))
        return err_set(e, -EPERM, "%s: others than its owner may use it: chmod 600", path);
    n = read(fd, bytes, sizeof(bytes));
    if (n < KEY_BYTES_MIN)
        return err_set(e, -EINVAL, "%s: a key has at least %d bytes", path, KEY_BYTES_MIN);
    hmac_sha256_set_key(&k->ready, (size_t)n, bytes);
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

int key_load(const char *path, struct key **ret, struct err *e)
{
    _cleanup_(closep) int fd = file_open(path, e);
    _cleanup_(key_freep) struct key *k = xnew(struct key);
    int r;

    if (fd < 0)
        return fd;
    r = read_key(fd, path, k, e);
    if (r == 0)
        *ret = TAKE(k);
    return r;
}

struct key *key_free(struct key *k)
{
    if (!k)
        return NULL;
    explicit_bzero(k, sizeof(*k));
    free(k);
    return NULL;
}

static void mac_of(const struct key *k, const char *text, char ret[MAC_TEXT + 1])
{
    struct hmac_sha256_ctx ctx = k->ready;
    uint8_t digest[SHA256_DIGEST_SIZE];

    hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&ctx, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        str_printf(ret + 2 * i, 3, "%02x", digest[i]);
}

char *key_seal(const struct key *k, const char *text, usec_t now)
{
    _cleanup_(freep) char *dated = xasprintf("%lld:%s", (long long)now, text);
    char mac[MAC_TEXT + 1];

    mac_of(k, dated, mac);
    return xasprintf("%s%s:%s", PREFIX, mac, dated);
}

static bool is_timely(const char *dated, usec_t now)
{
    char number[24];
    long long then;

    return str_copy_n(number, sizeof(number), dated, strcspn(dated, ":")) &&
           str_to_i64(number, &then) == 0 && then > now - KEY_TTL && then < now + KEY_TTL;
}

int key_open(const struct key *k, const char *sealed, usec_t now, const char **ret_text,
             struct err *e)
{
    const char *mac = sealed + strlen(PREFIX), *dated = mac + MAC_TEXT + 1;
    char right[MAC_TEXT + 1];

    if (!str_startswith(sealed, PREFIX) || strlen(mac) < MAC_TEXT + 3 || mac[MAC_TEXT] != ':')
        return err_set(e, -EBADMSG, "not sealed with a key");
    mac_of(k, dated, right);
    if (!memeql_sec(mac, right, MAC_TEXT))
        return err_set(e, -EBADMSG, "sealed with another key, or changed");
    if (!is_timely(dated, now))
        return err_set(e, -EBADMSG, "sealed too long ago, or in the future: look at the clocks");
    *ret_text = dated + strcspn(dated, ":") + 1;
    return 0;
}
