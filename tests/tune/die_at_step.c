// For LD_PRELOAD: kills the program before change number SLUICE_DIE_AT, from 0, that it asks of the
// kernel: a write below /sys or /proc, or an ethtool command that sets something.
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void count_change(void) {
    static long number = 0;
    const char* last = getenv("SLUICE_DIE_AT");
    if (last != NULL && number++ == strtol(last, NULL, 10))
        (void)kill(getpid(), SIGKILL);
}

static bool is_of_kernel(int fd) {
    char link[32], path[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static bool sets_something(const struct ifreq* request) {
    __u32 command = 0;
    memcpy(&command, request->ifr_data, sizeof(command));
    return command == ETHTOOL_SCHANNELS || command == ETHTOOL_SRINGPARAM ||
           command == ETHTOOL_SCOALESCE || command == ETHTOOL_SRXFHINDIR;
}

ssize_t write(int fd, const void* data, size_t size) {
    if (is_of_kernel(fd))
        count_change();
    return syscall(SYS_write, fd, data, size);
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    if (request == SIOCETHTOOL && sets_something(argument))
        count_change();
    return (int)syscall(SYS_ioctl, fd, request, argument);
}
