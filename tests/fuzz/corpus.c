/* SPDX-License-Identifier: Apache-2.0 */

/* Runs a fuzz target over every file of a folder: the corpus as a plain test, and the way to
 * repeat one input that a fuzzer found (give the file instead of the folder). */

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;

    if (!f || fseek(f, 0, SEEK_END) < 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    /* Exactly as large as the input, so that a sanitizer sees the first byte behind it. */
    data = malloc((size_t)size ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "%s: cannot read\n", path);
        exit(EXIT_FAILURE);
    }
    fclose(f);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    int files = 0;

    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        struct dirent *e;
        char path[4096];

        if (!d) {
            files += run_file(argv[i]);
            continue;
        }
        while ((e = readdir(d))) {
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            files += run_file(path);
        }
        closedir(d);
    }
    if (files == 0)
        fprintf(stderr, "usage: %s FOLDER|FILE...  (nothing found)\n", argv[0]);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
