/* SPDX-License-Identifier: Apache-2.0 */

/* Reading logs. One buffer holds what read() gave; packed input goes through a second one. The
 * format is chosen by the magic bytes, so the first read is completed to that many bytes. Archives
 * may hold several members or frames one after another (a rotated log that was appended to); both
 * formats define that as the concatenation of their contents. Zeros behind the last gzip member are
 * padding, as gzip says.
 *
 * Whatever is no text is refused, other packings by name, the rest by its bytes: read as text it
 * would be a log in which nothing failed, and what was shown of it would be rubbish. Logs may hold
 * NUL bytes (a file that was cut while it was written to has a hole) and text in any encoding, but
 * control codes that no terminal knows are rare in them and every tenth byte in a program or a
 * picture. */

#include "extract/input.h"

#include "base/alloc.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define RAW_BYTES      ((size_t)256 << 10)
#define UNPACKED_BYTES ((size_t)256 << 10)
#define MAGIC_BYTES    10
#define WINDOW_LOG_MAX 25 /* zstd, 32 MiB: all but --long and --ultra -21; memory is promised */

enum packing {
    PACKING_NONE,
    PACKING_GZIP,
    PACKING_ZSTD,
};

struct input {
    char *path;
    int fd;
    enum packing packing;
    bool at_end;     /* read() has returned 0 */
    bool looked_at;  /* it is text, as its beginning says */
    uint64_t size;   /* of a regular file, 0 = something else */
    bool inside;     /* within a member or frame */
    bool begun;      /* there was one already */
    size_t pos, end; /* unread part of raw */
    char *raw, *unpacked;
    z_stream gz;
    ZSTD_DStream *zstd;
};

static int fill(struct input *in, struct err *e)
{
    ssize_t n;

    assert(in->pos == in->end);
    do
        n = read(in->fd, in->raw, RAW_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, -errno, "%s: %s", in->path, strerror(errno));
    in->at_end = n == 0;
    in->pos = 0;
    in->end = (size_t)n;
    return 0;
}

/* The first bytes, at least MAGIC_BYTES unless the input is shorter (a pipe may give one). */
static int fill_first(struct input *in, struct err *e)
{
    while (in->end < MAGIC_BYTES && !in->at_end) {
        ssize_t n = read(in->fd, in->raw + in->end, RAW_BYTES - in->end);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, -errno, "%s: %s", in->path, strerror(errno));
        in->at_end = n == 0;
        in->end += (size_t)n;
    }
    return 0;
}

static bool begins_with(const struct input *in, const char *magic, size_t len)
{
    return in->end >= len && memcmp(in->raw, magic, len) == 0;
}

/* A frame, or one to be skipped as pzstd puts first: 0x184d2a50 to 5f, low byte first. */
static bool is_zstd(const struct input *in)
{
    return begins_with(in, "\x28\xb5\x2f\xfd", 4) || (in->end >= 4 && (in->raw[0] & 0xf0) == 0x50 &&
                                                      memcmp(in->raw + 1, "\x2a\x4d\x18", 3) == 0);
}

/* Packings that are not read here, and what makes a log of them. */
static int refuse_others(const struct input *in, struct err *e)
{
    static const struct {
        const char *name, *magic, *command;
        size_t len, at_least; /* of the input */
    } others[] = {
        {"packed with xz",
         "\xfd"
         "7zXZ\0",
         "xz -dc", 6, 6},
        {"packed with bzip2", "BZh", "bzip2 -dc", 3, 10},
        {"packed with lz4", "\x04\x22\x4d\x18", "lz4 -dc", 4, 4},
        {"packed with lzip", "LZIP\1", "lzip -dc", 5, 5},
        {"packed with compress", "\x1f\x9d", "gzip -dc", 2, 3},
        {"packed with zip", "PK\3\4", "unzip -p", 4, 4},
        {"packed with 7-Zip", "7z\xbc\xaf\x27\x1c", "7z x -so", 6, 6},
        {"UTF-16 text", "\xff\xfe", "iconv -f UTF-16 -t UTF-8", 2, 4},
        {"UTF-16 text", "\xfe\xff", "iconv -f UTF-16 -t UTF-8", 2, 4},
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (!begins_with(in, others[i].magic, others[i].len) || in->end < others[i].at_least ||
            (streq(others[i].command, "bzip2 -dc") && memcmp(in->raw + 4, "1AY&SY", 6) != 0))
            continue;
        return err_set(e, -EPROTONOSUPPORT,
                       "%s: is %s, which is not read here: convert it on the way, "
                       "%s FILE | reknit diagnose -",
                       in->path, others[i].name, others[i].command);
    }
    return 0;
}

static int detect_packing(struct input *in, struct err *e)
{
    if (begins_with(in, "\x1f\x8b", 2))
        in->packing = PACKING_GZIP;
    else if (is_zstd(in))
        in->packing = PACKING_ZSTD;
    if (in->packing == PACKING_NONE)
        return refuse_others(in, e);
    in->unpacked = xmalloc(UNPACKED_BYTES);
    if (in->packing == PACKING_ZSTD) {
        in->zstd = ZSTD_createDStream();
        if (!in->zstd)
            return err_set(e, -ENOMEM, "%s: zstd does not start", in->path);
        (void)ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
        return 0;
    }
    /* 15 + 16: the largest window, gzip header expected. */
    return inflateInit2(&in->gz, 15 + 16) == Z_OK
               ? 0
               : err_set(e, -ENOMEM, "%s: zlib does not start", in->path);
}

int input_open(const char *path, struct input **ret, struct err *e)
{
    _cleanup_(input_freep) struct input *in = xnew(struct input);
    bool is_stdin = strcmp(path, "-") == 0;
    struct stat st;
    int r;

    in->path = xstrdup(is_stdin ? "standard input" : path);
    in->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return err_set(e, -errno, "%s: %s", in->path, strerror(errno));
    if (fstat(in->fd, &st) < 0)
        return err_set(e, -errno, "%s: %s", in->path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(e, -EISDIR, "%s: is a folder, not a log", in->path);
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        in->size = (uint64_t)st.st_size;
    (void)posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    in->raw = xmalloc(RAW_BYTES);
    r = fill_first(in, e);
    if (r >= 0)
        r = detect_packing(in, e);
    if (r < 0)
        return r;
    *ret = TAKE(in);
    return 0;
}

uint64_t input_size(const struct input *in)
{
    return in->packing == PACKING_NONE ? in->size : 0;
}

struct input *input_free(struct input *in)
{
    if (!in)
        return NULL;
    if (in->packing == PACKING_GZIP)
        inflateEnd(&in->gz);
    ZSTD_freeDStream(in->zstd);
    closep(&in->fd);
    free(in->unpacked);
    free(in->raw);
    free(in->path);
    free(in);
    return NULL;
}

/* One step of zlib; *ret_len = bytes that it made. */
static int gunzip(struct input *in, size_t *ret_len, struct err *e)
{
    int z;

    while (!in->inside && in->begun && in->pos < in->end && in->raw[in->pos] == 0)
        in->pos++;
    *ret_len = 0;
    if (in->pos == in->end && !in->inside)
        return 0;
    if (!in->inside)
        inflateReset(&in->gz);
    in->inside = in->begun = true;
    in->gz.next_in = (Bytef *)in->raw + in->pos;
    in->gz.avail_in = (uInt)(in->end - in->pos);
    in->gz.next_out = (Bytef *)in->unpacked;
    in->gz.avail_out = (uInt)UNPACKED_BYTES;
    z = inflate(&in->gz, Z_NO_FLUSH);
    in->pos = in->end - in->gz.avail_in;
    *ret_len = UNPACKED_BYTES - in->gz.avail_out;
    if (z == Z_STREAM_END)
        in->inside = false;
    else if (z != Z_OK && z != Z_BUF_ERROR)
        return err_set(e, -EBADMSG, "%s: the gzip data is damaged (%s)", in->path,
                       in->gz.msg ? in->gz.msg : "no detail");
    return 0;
}

static int unzstd_error(const struct input *in, size_t z, struct err *e)
{
    if (ZSTD_getErrorCode(z) == ZSTD_error_frameParameter_windowTooLarge)
        return err_set(
            e, -EFBIG,
            "%s: to unpack it takes more memory than is used here (zstd --long or "
            "--ultra): unpack it on the way, zstd -dc --long=31 FILE | reknit diagnose -",
            in->path);
    return err_set(e, -EBADMSG, "%s: the zstd data is damaged (%s)", in->path,
                   ZSTD_getErrorName(z));
}

static int unzstd(struct input *in, size_t *ret_len, struct err *e)
{
    ZSTD_inBuffer src = {in->raw, in->end, in->pos};
    ZSTD_outBuffer dst = {in->unpacked, UNPACKED_BYTES, 0};
    size_t z = ZSTD_decompressStream(in->zstd, &dst, &src);

    if (ZSTD_isError(z))
        return unzstd_error(in, z, e);
    in->inside = z != 0;
    in->pos = src.pos;
    *ret_len = dst.pos;
    return 0;
}

static int read_packed(struct input *in, const char **ret_data, size_t *ret_len, struct err *e)
{
    bool stuck = false;

    for (;;) {
        size_t len = 0, before = in->pos;
        int r;

        if (in->pos == in->end && !in->at_end) {
            r = fill(in, e);
            if (r < 0)
                return r;
            before = in->pos;
        }
        if (in->pos == in->end && !in->inside)
            return 0;
        if (in->at_end && stuck)
            return err_set(e, -ENODATA, "%s: the archive ends too early: it was cut", in->path);
        r = in->packing == PACKING_GZIP ? gunzip(in, &len, e) : unzstd(in, &len, e);
        if (r < 0)
            return r;
        if (len > 0) {
            *ret_data = in->unpacked;
            *ret_len = len;
            return 1;
        }
        stuck = in->pos == before;
    }
}

#define RUBBISH_MIN 8  /* bytes, ... */
#define RUBBISH_DIV 50 /* ... and a share that no log has, NUL not counted */

static bool is_text(const char *data, size_t len)
{
    size_t rubbish = 0, counted = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];

        counted += c != 0;
        rubbish += c == 0x7f || (c > 0 && c < 0x20 && c != 0x1b && (c < '\a' || c > '\r'));
    }
    return rubbish < RUBBISH_MIN || rubbish * RUBBISH_DIV < counted;
}

static int read_plain(struct input *in, const char **ret_data, size_t *ret_len, struct err *e)
{
    if (in->pos == in->end && !in->at_end) {
        int r = fill(in, e);

        if (r < 0)
            return r;
    }
    if (in->pos == in->end)
        return 0;
    *ret_data = in->raw + in->pos;
    *ret_len = in->end - in->pos;
    in->pos = in->end;
    return 1;
}

int input_read(struct input *in, const char **ret_data, size_t *ret_len, struct err *e)
{
    int r = in->packing != PACKING_NONE ? read_packed(in, ret_data, ret_len, e)
                                        : read_plain(in, ret_data, ret_len, e);

    if (r > 0 && !in->looked_at && !is_text(*ret_data, *ret_len))
        return err_set(e, -EBADMSG, "%s: is no text: a log was expected", in->path);
    in->looked_at = true;
    return r;
}
