/* Preloaded into an unmodified JVM: its clocks are the machine's plus offsets that only the suite moves, two times eight bytes
 * in the file $TIDEGAUGE_CLOCK, in nanoseconds. System.nanoTime follows the first, the time of day the second.
 *
 * The JVM waits until a monotonic deadline (os::Posix, PlatformMonitor): one computed from the moved clock is put back to the
 * machine's. A wait that lasts ends early, as if it were woken for nothing: whoever waits looks again, and notices soon that the
 * clock was moved past the deadline. To go on waiting here instead would miss a signal that comes when the mutex is not yet
 * ours again. A deadline of the time of day is later than any monotonic one and left alone.
 *
 * The threads that make meters tick (com.yammer.metrics, every five seconds) keep the machine's clocks: they would make up for
 * each move, a hundred ticks of every meter, and nobody reads a meter. A thread is known by the name that it gives itself. */
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
