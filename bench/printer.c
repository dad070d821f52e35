/* SPDX-License-Identifier: Apache-2.0 */

/* printer RATE SECONDS REPORT: prints RATE lines a second, each by a write() of its own, as a
 * training script with unbuffered output does; keeps to an absolute schedule. Into the file REPORT
 * goes "cpu_us late_us lines": its own CPU time, and how far behind schedule it was at the end. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int64_t cpu_us(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * INT64_C(1000000) + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
}

int main(int argc, char **argv)
{
    long rate = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
    long lines = rate * (argc == 4 ? strtol(argv[2], NULL, 10) : 0);
    int64_t began = now_ns(), due = began;
    FILE *report;

    if (lines <= 0)
        return 2;
    for (long i = 0; i < lines; i++) {
        char line[160];
        int n = snprintf(line, sizeof(line),
                         "step %ld/%ld | loss %.4f | lr 3.0e-04 | 1234.5 ms/step | 98304 tok/s\n",
                         i + 1, lines, 10.0 / (double)(i + 9));

        due = began + i * 1000000000 / rate;
        if (now_ns() < due)
            sleep_until(due);
        if (write(STDOUT_FILENO, line, (size_t)n) != n)
            return 1;
    }
    report = fopen(argv[3], "w");
    if (!report)
        return 1;
    fprintf(report, "%" PRId64 " %" PRId64 " %ld\n", cpu_us(), (now_ns() - due) / 1000, lines);
    return fclose(report) ? 1 : 0;
}
