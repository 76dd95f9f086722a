/*
 * Stands between a process and its disk (LD_PRELOAD): records what the process does to the files below one folder,
 * kills it at a given call, or lets a call fail.
 *
 * SHIM_FOLDER   what is watched: an absolute path; everything else passes untouched
 * SHIM_TRACE    where the calls are recorded, in the order in which they took effect
 * SHIM_MARKER   a file whose writes are recorded as marks: how the process tells where it is
 * SHIM_RULES    rules, separated by ';': CALL PATTERN FROM COUNT ACTION [MARK]
 *     CALL     create open write truncate sync syncdir rename link unlink mkdir rmdir
 *     PATTERN  fnmatch(3) on the path below the folder (of a rename: the new one); '*' matches '/', too
 *     FROM     the first matching call that is hit, from 1; COUNT: how many are hit, 0 = all that follow
 *     ACTION   kill-before, kill-half (half of the bytes are written), kill-after, eio, enospc,
 *              delay-N (of sync and syncdir: it ends N milliseconds later)
 *     MARK     the rule counts only after a mark that starts with this
 * SHIM_CONTROL  failures (eio, enospc) and delays happen only while this file exists
 * SHIM_CLOCK    a file of eight bytes: nanoseconds by which CLOCK_REALTIME is ahead, changed while the process runs
 *
 * A record is a header (see struct record), the path, the second path, and the data; numbers are little-endian.
 * Calls go to the kernel directly, not through the next library: the shim is the whole story.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FDS 65536
#define MAX_RULES 16
#define MAX_PATH 4096

enum op {
    OP_OPEN = 1, OP_WRITE, OP_TRUNCATE, OP_ALLOCATE, OP_SYNC_BEGIN, OP_SYNC_END,
    OP_RENAME, OP_LINK, OP_UNLINK, OP_MKDIR, OP_RMDIR, OP_MARK, OP_UNKNOWN
};
enum flag { FLAG_CREATED = 1, FLAG_TRUNCATED = 2, FLAG_DIRECTORY = 4, FLAG_FAILED = 8 };

struct record {
    uint8_t op, flags;
    uint16_t path_len, second_len, reserved;
    uint32_t open, data_len;
    uint64_t at, inode;
} __attribute__((packed));

struct rule {
    char call[16], pattern[256], action[16], mark[64];
    unsigned long from, count, seen;
    int armed;
};

/* An open file that is watched. `id` is never used again, unlike the descriptor. */
struct watched {
    char *path;
    uint32_t id;
    int append, directory, marker;
};

static char folder[MAX_PATH], marker[MAX_PATH], control[MAX_PATH];
static size_t folder_len;
static const volatile int64_t *ahead;
static int trace = -1, rule_count, ready;
static uint32_t last_id;
static struct rule rules[MAX_RULES];
static struct watched fds[MAX_FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *why) {
    dprintf(2, "shim: %s\n", why);
    _exit(99);
}

static void copy_environment(const char *name, char *to, size_t size) {
    const char *value = getenv(name);
    if (value && strlen(value) >= size) die(name);
    strcpy(to, value ? value : "");
}

__attribute__((constructor)) static void start(void) {
    copy_environment("SHIM_FOLDER", folder, sizeof folder);
    copy_environment("SHIM_MARKER", marker, sizeof marker);
    copy_environment("SHIM_CONTROL", control, sizeof control);
    folder_len = strlen(folder);
    const char *path = getenv("SHIM_TRACE");
    if (path) {
        trace = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (trace < 0) die("cannot open the trace");
    }
    path = getenv("SHIM_CLOCK");
    if (path) {
        int clock = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        void *mapped = clock < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, clock, 0);
        if (mapped == MAP_FAILED) die("cannot map the clock");
        ahead = mapped;
        syscall(SYS_close, clock);
    }
    static char text[16384];
    copy_environment("SHIM_RULES", text, sizeof text);
    for (char *state, *line = strtok_r(text, ";", &state); line; line = strtok_r(NULL, ";", &state)) {
        if (rule_count == MAX_RULES) die("too many rules");
        struct rule *rule = &rules[rule_count++];
        int found = sscanf(line, "%15s %255s %lu %lu %15s %63[^;]", rule->call, rule->pattern, &rule->from,
                           &rule->count, rule->action, rule->mark);
        if (found < 5) die("a rule is not understood");
        rule->armed = found == 5;
    }
    ready = folder_len > 0;
}

static void emit(struct record record, const char *path, const char *second, const struct iovec *data, int parts,
                 size_t bytes) {
    if (trace < 0) return;
    record.path_len = strlen(path);
    record.second_len = strlen(second);
    record.data_len = bytes;
    struct iovec all[3 + 1024] = {
        {&record, sizeof record}, {(void *)path, record.path_len}, {(void *)second, record.second_len}};
    size_t total = sizeof record + record.path_len + record.second_len + bytes;
    int count = 3;
    for (int i = 0; i < parts && bytes > 0; i++) {
        all[count].iov_base = data[i].iov_base;
        all[count].iov_len = data[i].iov_len < bytes ? data[i].iov_len : bytes;
        bytes -= all[count++].iov_len;
    }
    if (syscall(SYS_writev, trace, all, count) != (long)total) die("cannot write the trace");
}

static void emit_path(enum op op, const char *path, const char *second) {
    emit((struct record){.op = op}, path, second, NULL, 0, 0);
}

/* What is to happen to a call: the action of the rule that hits it, or "". */
static const char *decide(const char *call, const char *path) {
    const char *action = "";
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (!rule->armed || strcmp(rule->call, call) || fnmatch(rule->pattern, path, 0)) continue;
        int fails = rule->action[0] == 'e' || rule->action[0] == 'd';
        if (fails && control[0] && syscall(SYS_faccessat, AT_FDCWD, control, F_OK) != 0) continue;
        rule->seen++;
        if (rule->seen >= rule->from && (rule->count == 0 || rule->seen < rule->from + rule->count))
            action = rule->action;
    }
    return action;
}

static void kill_now(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Kills if it is to, or gives the error with which the call fails: 0 for none. */
static int before(const char *action) {
    if (!strcmp(action, "kill-before")) kill_now();
    if (!strcmp(action, "eio")) return EIO;
    if (!strcmp(action, "enospc")) return ENOSPC;
    return 0;
}

static void after(const char *action) {
    if (!strncmp(action, "kill", 4)) kill_now();
}

/* The path below the folder, or NULL when it is not watched. */
static const char *below(const char *path) {
    if (!ready || strncmp(path, folder, folder_len)) return NULL;
    if (path[folder_len] == 0) return path + folder_len;
    return path[folder_len] == '/' ? path + folder_len + 1 : NULL;
}

/* Makes a path absolute; gives NULL when that takes more than this shim knows. */
static const char *absolute(int directory, const char *path, char *buffer) {
    if (path[0] == '/') return path;
    if (directory < 0 || directory >= MAX_FDS || !fds[directory].path) return NULL;
    const char *base = fds[directory].path;
    int length = snprintf(buffer, MAX_PATH, "%s/%s%s%s", folder, base, base[0] ? "/" : "", path);
    return length < MAX_PATH ? buffer : NULL;
}

static const char *watched_path(int directory, const char *path, char *buffer) {
    path = ready && path ? absolute(directory, path, buffer) : NULL;
    return path ? below(path) : NULL;
}

static int refuse(int error) {
    pthread_mutex_unlock(&lock);
    errno = error;
    return -1;
}

static void forget(int fd) {
    free(fds[fd].path);
    memset(&fds[fd], 0, sizeof fds[fd]);
}

static int do_open(int directory, const char *path, int flags, mode_t mode) {
    char buffer[MAX_PATH];
    const char *name = watched_path(directory, path, buffer);
    int is_marker = ready && marker[0] && !strcmp(path, marker);
    if (!name && !is_marker) return syscall(SYS_openat, directory, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat stat;
    int existed = syscall(SYS_newfstatat, directory, path, &stat, 0) == 0;
    int creates = !existed && (flags & O_CREAT);
    const char *action = name ? decide(creates ? "create" : "open", name) : "";
    int error = before(action);
    if (error) return refuse(error);
    int fd = syscall(SYS_openat, directory, path, flags, mode);
    if (fd < 0) return refuse(errno);
    if (fd >= MAX_FDS) die("too many open files");
    if (syscall(SYS_fstat, fd, &stat)) die("cannot stat what was opened");
    forget(fd);
    fds[fd] = (struct watched){strdup(name ? name : ""), ++last_id, (flags & O_APPEND) != 0,
                               S_ISDIR(stat.st_mode), is_marker};
    if (name) {
        struct record record = {.op = OP_OPEN, .open = last_id, .inode = stat.st_ino};
        record.flags = (creates ? FLAG_CREATED : 0) | (flags & O_TRUNC ? FLAG_TRUNCATED : 0) |
                       (S_ISDIR(stat.st_mode) ? FLAG_DIRECTORY : 0);
        emit(record, name, "", NULL, 0, 0);
    }
    after(action);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN_MODE(flags) ({ \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); } \
    mode; })

int open(const char *path, int flags, ...) { return do_open(AT_FDCWD, path, flags, OPEN_MODE(flags)); }
int open64(const char *path, int flags, ...) { return do_open(AT_FDCWD, path, flags, OPEN_MODE(flags)); }
int openat(int at, const char *path, int flags, ...) { return do_open(at, path, flags, OPEN_MODE(flags)); }
int openat64(int at, const char *path, int flags, ...) { return do_open(at, path, flags, OPEN_MODE(flags)); }
int creat(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    if (!ready || fd < 0 || fd >= MAX_FDS || !fds[fd].path) return syscall(SYS_close, fd);
    pthread_mutex_lock(&lock);
    forget(fd);
    int result = syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return result;
}

static int duplicate(int fd, int copy) {
    if (ready && copy >= 0 && copy < MAX_FDS && fd < MAX_FDS && fds[fd].path) {
        pthread_mutex_lock(&lock);
        forget(copy);
        fds[copy] = fds[fd];
        fds[copy].path = strdup(fds[fd].path);
        pthread_mutex_unlock(&lock);
    }
    return copy;
}

int dup(int fd) { return duplicate(fd, syscall(SYS_dup, fd)); }

static int do_fcntl(int fd, int command, long argument) {
    int result = syscall(SYS_fcntl, fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicate(fd, result) : result;
}

#define FCNTL_ARGUMENT(command) ({ va_list list; va_start(list, command); long argument = va_arg(list, long); va_end(list); argument; })
int fcntl(int fd, int command, ...) { return do_fcntl(fd, command, FCNTL_ARGUMENT(command)); }
int fcntl64(int fd, int command, ...) { return do_fcntl(fd, command, FCNTL_ARGUMENT(command)); }

static int is_watched(int fd) { return ready && fd >= 0 && fd < MAX_FDS && fds[fd].path; }

static void arm(const struct iovec *data, int parts) {
    if (parts < 1) return;
    for (int i = 0; i < rule_count; i++) {
        size_t len = strlen(rules[i].mark);
        if (len && data[0].iov_len >= len && !memcmp(data[0].iov_base, rules[i].mark, len)) rules[i].armed = 1;
    }
}

/* `at` < 0: where the file stands. */
static ssize_t do_write(int fd, const struct iovec *data, int parts, off_t at) {
    if (!is_watched(fd))
        return at < 0 ? syscall(SYS_writev, fd, data, parts) : syscall(SYS_pwritev, fd, data, parts, at, 0);
    pthread_mutex_lock(&lock);
    struct watched *file = &fds[fd];
    const char *action = file->marker ? "" : decide("write", file->path);
    int error = before(action);
    if (error) return refuse(error);
    struct iovec half;
    if (!strcmp(action, "kill-half") && parts > 0) {
        half = (struct iovec){data[0].iov_base, (data[0].iov_len + 1) / 2};
        data = &half;
        parts = 1;
    }
    struct stat stat = {0};
    off_t start = at;
    if (file->append) {
        syscall(SYS_fstat, fd, &stat);
        start = stat.st_size;
    } else if (at < 0) {
        start = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    }
    ssize_t written = at < 0 ? syscall(SYS_writev, fd, data, parts) : syscall(SYS_pwritev, fd, data, parts, at, 0);
    if (written < 0) return refuse(errno);
    struct record record = {.op = file->marker ? OP_MARK : OP_WRITE, .open = file->id, .at = start};
    emit(record, "", "", data, parts, written);
    if (file->marker) arm(data, parts);
    after(action);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (!is_watched(fd)) return syscall(SYS_write, fd, bytes, count);
    return do_write(fd, &(struct iovec){(void *)bytes, count}, 1, -1);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (!is_watched(fd)) return syscall(SYS_pwrite64, fd, bytes, count, at);
    return do_write(fd, &(struct iovec){(void *)bytes, count}, 1, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return pwrite(fd, bytes, count, at); }
ssize_t writev(int fd, const struct iovec *data, int parts) { return do_write(fd, data, parts, -1); }
ssize_t pwritev(int fd, const struct iovec *data, int parts, off_t at) { return do_write(fd, data, parts, at); }
ssize_t pwritev64(int fd, const struct iovec *data, int parts, off_t at) { return do_write(fd, data, parts, at); }

static int do_truncate(int fd, off_t size) {
    if (!is_watched(fd)) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    const char *action = decide("truncate", fds[fd].path);
    int error = before(action);
    if (error) return refuse(error);
    if (syscall(SYS_ftruncate, fd, size)) return refuse(errno);
    emit((struct record){.op = OP_TRUNCATE, .open = fds[fd].id, .at = size}, "", "", NULL, 0, 0);
    after(action);
    pthread_mutex_unlock(&lock);
    return 0;
}

int ftruncate(int fd, off_t size) { return do_truncate(fd, size); }
int ftruncate64(int fd, off_t size) { return do_truncate(fd, size); }

/* Not expected of a database here: recorded, so that the reader of the trace refuses to go on. */
static void unknown(int fd, const char *call) {
    if (!is_watched(fd)) return;
    pthread_mutex_lock(&lock);
    emit_path(OP_UNKNOWN, fds[fd].path, call);
    pthread_mutex_unlock(&lock);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
    unknown(fd, "fallocate");
    return syscall(SYS_fallocate, fd, mode, at, size);
}
int fallocate64(int fd, int mode, off_t at, off_t size) { return fallocate(fd, mode, at, size); }
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags) {
    unknown(to, "copy_file_range");
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    unknown(to, "sendfile");
    return syscall(SYS_sendfile, to, from, at, size);
}

/* Not locked while it syncs: others go on writing. What was written before it began is durable when it has ended. */
static int do_sync(int fd, long call) {
    if (!is_watched(fd)) return syscall(call, fd);
    pthread_mutex_lock(&lock);
    struct watched file = fds[fd];
    char path[MAX_PATH];
    strcpy(path, file.path);
    const char *action = decide(file.directory ? "syncdir" : "sync", path);
    int error = before(action);
    if (error) return refuse(error);
    emit((struct record){.op = OP_SYNC_BEGIN, .open = file.id}, path, "", NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    int result = syscall(call, fd);
    error = errno;
    if (!strncmp(action, "delay-", 6)) usleep(1000 * atoi(action + 6));
    pthread_mutex_lock(&lock);
    struct record record = {.op = OP_SYNC_END, .flags = result ? FLAG_FAILED : 0, .open = file.id};
    emit(record, path, "", NULL, 0, 0);
    after(action);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int fd) { return do_sync(fd, SYS_fsync); }
int fdatasync(int fd) { return do_sync(fd, SYS_fdatasync); }

static int do_rename(int from_at, const char *from, int to_at, const char *to, unsigned flags, int links) {
    char from_buffer[MAX_PATH], to_buffer[MAX_PATH];
    const char *old = watched_path(from_at, from, from_buffer), *new = watched_path(to_at, to, to_buffer);
    long call = links ? SYS_linkat : SYS_renameat2;
    if (!old || !new) return syscall(call, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    const char *action = decide(links ? "link" : "rename", new);
    int error = before(action);
    if (error) return refuse(error);
    if (syscall(call, from_at, from, to_at, to, flags)) return refuse(errno);
    emit_path(links ? OP_LINK : OP_RENAME, old, new);
    after(action);
    pthread_mutex_unlock(&lock);
    return 0;
}

int rename(const char *from, const char *to) { return do_rename(AT_FDCWD, from, AT_FDCWD, to, 0, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) {
    return do_rename(from_at, from, to_at, to, 0, 0);
}
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return do_rename(from_at, from, to_at, to, flags, 0);
}
int link(const char *from, const char *to) { return do_rename(AT_FDCWD, from, AT_FDCWD, to, 0, 1); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    return do_rename(from_at, from, to_at, to, flags, 1);
}

static int do_unlink(int at, const char *path, int flags) {
    char buffer[MAX_PATH];
    const char *name = watched_path(at, path, buffer);
    if (!name) return syscall(SYS_unlinkat, at, path, flags);
    int directory = flags & AT_REMOVEDIR;
    pthread_mutex_lock(&lock);
    const char *action = decide(directory ? "rmdir" : "unlink", name);
    int error = before(action);
    if (error) return refuse(error);
    if (syscall(SYS_unlinkat, at, path, flags)) return refuse(errno);
    emit_path(directory ? OP_RMDIR : OP_UNLINK, name, "");
    after(action);
    pthread_mutex_unlock(&lock);
    return 0;
}

int unlink(const char *path) { return do_unlink(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return do_unlink(at, path, flags); }
int rmdir(const char *path) { return do_unlink(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int at, const char *path, mode_t mode) {
    char buffer[MAX_PATH];
    const char *name = watched_path(at, path, buffer);
    if (!name) return syscall(SYS_mkdirat, at, path, mode);
    pthread_mutex_lock(&lock);
    const char *action = decide("mkdir", name);
    int error = before(action);
    if (error) return refuse(error);
    if (syscall(SYS_mkdirat, at, path, mode)) return refuse(errno);
    emit_path(OP_MKDIR, name, "");
    after(action);
    pthread_mutex_unlock(&lock);
    return 0;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (syscall(SYS_clock_gettime, clock, time)) return -1;
    if (ahead && clock == CLOCK_REALTIME) {
        int64_t total = time->tv_sec * 1000000000LL + time->tv_nsec + *ahead;
        time->tv_sec = total / 1000000000LL;
        time->tv_nsec = total % 1000000000LL;
    }
    return 0;
}
