/* Preloaded into an unmodified JVM: its clocks are the machine's plus offsets that only the driver moves, two times eight bytes
 * in the file $TIDEGAUGE_CLOCK, in nanoseconds. System.nanoTime follows the first offset, the time of day the second.
 *
 * The JVM waits until a monotonic deadline (os::Posix, PlatformMonitor). A deadline computed from the moved clock is converted
 * to the machine's. A long wait ends early, like a spurious wakeup: the thread tests its condition again, and so notices soon
 * that the clock was moved past its deadline. To wait on here instead would miss a signal that comes before the mutex is held
 * again. A deadline by the time of day is later than any monotonic one, and is left alone.
 *
 * The threads that tick meters (com.yammer.metrics, every five seconds) keep the machine's clocks: they would catch up on each
 * move with a hundred ticks of every meter, and nobody reads a meter. Such a thread is known by the name it gives itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define LONG_AFTER_BOOT 1000000000L
#define NOTICED_AFTER 20000000LL

static const char METERS[] = "metrics-meter";

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*name_function)(pthread_t, const char *);

static volatile long long *offset; /* of the monotonic clock, of the time of day */
static wait_function machine_wait;
static name_function machine_name;
static __thread int is_meters;

__attribute__((constructor)) static void open_clock(void)
{
    const char *place = getenv("TIDEGAUGE_CLOCK");
    int file = place == NULL ? -1 : open(place, O_RDONLY);

    machine_wait = (wait_function)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (machine_wait == NULL)
        machine_wait = (wait_function)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    machine_name = (name_function)dlsym(RTLD_NEXT, "pthread_setname_np");
    if (file >= 0) {
        void *page = mmap(NULL, 2 * sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
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

int pthread_setname_np(pthread_t thread, const char *name)
{
    if (pthread_equal(thread, pthread_self()))
        is_meters = strncmp(name, METERS, sizeof METERS - 1) == 0;
    return machine_name == NULL ? ENOSYS : machine_name(thread, name);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset != NULL && !is_meters && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME))
        *now = moved(*now, offset[clock == CLOCK_REALTIME]);
    return failed;
}

static int is_before(struct timespec one, struct timespec other)
{
    return one.tv_sec < other.tv_sec || (one.tv_sec == other.tv_sec && one.tv_nsec < other.tv_nsec);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (offset == NULL || is_meters || until->tv_sec >= LONG_AFTER_BOOT)
        return machine_wait(condition, mutex, until);
    struct timespec now, deadline = moved(*until, -offset[0]);
    if (deadline.tv_sec < 0 || deadline.tv_nsec < 0) /* the clock was moved by more than the machine is up: no valid time */
        return ETIMEDOUT;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    struct timespec soon = moved(now, NOTICED_AFTER);
    if (!is_before(soon, deadline))
        return machine_wait(condition, mutex, &deadline);
    int done = machine_wait(condition, mutex, &soon);
    return done == ETIMEDOUT ? 0 : done;
}
