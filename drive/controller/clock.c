/* Preloaded into an unmodified JVM: its monotonic clock is the machine's plus an offset that only the suite moves, eight
 * bytes in the file $TIDEGAUGE_CLOCK, in nanoseconds. System.nanoTime follows, the time of day does not.
 *
 * The JVM waits until a monotonic deadline (os::Posix, PlatformMonitor): a deadline computed from the moved clock is put back
 * to the machine's before the wait. A deadline of the time of day is later than any monotonic one and left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define LONG_AFTER_BOOT 1000000000L

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static volatile long long *offset;
static wait_function machine_wait;

__attribute__((constructor)) static void open_clock(void)
{
    const char *place = getenv("TIDEGAUGE_CLOCK");
    int file = place == NULL ? -1 : open(place, O_RDONLY);

    machine_wait = (wait_function)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (machine_wait == NULL)
        machine_wait = (wait_function)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (file >= 0) {
        void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED)
            offset = page;
        close(file);
    }
}

static struct timespec moved(struct timespec at, long long by)
{
    long long nanoseconds = at.tv_sec * SECOND + at.tv_nsec + by;
    struct timespec result = {nanoseconds / SECOND, nanoseconds % SECOND};
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset != NULL && clock == CLOCK_MONOTONIC)
        *now = moved(*now, *offset);
    return failed;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec deadline = *until;
    if (offset != NULL && deadline.tv_sec < LONG_AFTER_BOOT)
        deadline = moved(deadline, -*offset);
    return machine_wait(condition, mutex, &deadline);
}
