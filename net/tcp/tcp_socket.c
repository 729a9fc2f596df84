/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "net/tcp/tcp_object.h"

static size_t
copy_addresses(const struct addrinfo *list, struct uc_tcp_address *addresses)
{
    size_t count = 0;

    for (const struct addrinfo *info = list; info != NULL && count < UC_TCP_ADDRESS_COUNT;
            info = info->ai_next) {
        if (info->ai_addrlen <= sizeof(addresses[count].storage)) {
            memset(&addresses[count], 0, sizeof(addresses[count]));
            memcpy(&addresses[count].storage, info->ai_addr, info->ai_addrlen);
            addresses[count].length_bytes = info->ai_addrlen;
            count++;
        }
    }

    return count;
}

static int
look_up(const char *name, int flags, struct uc_tcp_address *addresses, size_t *count_out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(name, NULL, &hints, &list);

    if (error == 0) {
        *count_out = copy_addresses(list, addresses);
        freeaddrinfo(list);
    }
    return error;
}

enum uc_status
uc_tcp_fabric_look_up(struct uc_fabric *fabric, const char *name)
{
    int error = look_up(name, 0, fabric->addresses, &fabric->address_count);

    if (error != 0 || fabric->address_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "tcp: address %s: %s; give a numeric address or a name that resolves here", name,
                error != 0 ? gai_strerror(error) : "no usable address");
    }

    return UC_OK;
}

static void
set_port(struct uc_tcp_address *address, uint16_t port)
{
    if (address->storage.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
    } else {
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
    }
}

enum uc_status
uc_tcp_fabric_resolve(const struct uc_fabric *fabric, const char *text, uint16_t port,
        struct uc_tcp_address *addresses_out, size_t *count_out)
{
    size_t count = 0;

    if (fabric->name != NULL && strcmp(text, fabric->name) == 0) {
        count = fabric->address_count;
        memcpy(addresses_out, fabric->addresses, count * sizeof(*addresses_out));
    } else {
        int error = look_up(text, AI_NUMERICHOST, addresses_out, &count);

        if (error != 0 || count == 0) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "tcp: address %s: %s; only the name the fabric was opened with is looked up, "
                    "others must be numeric",
                    text, error != 0 ? gai_strerror(error) : "no usable address");
        }
    }

    for (size_t idx = 0; idx < count; idx++) {
        set_port(&addresses_out[idx], port);
    }
    *count_out = count;
    return UC_OK;
}

enum uc_status
uc_tcp_source_watch(struct uc_tcp_source *source, int fd)
{
    enum uc_status status = uc_source_watch(&source->base, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP);

    if (status == UC_OK) {
        source->lost_errno = 0;
        source->writable = false;
        source->is_hung_up = false;
    }
    return status;
}

static bool
is_same_host(const struct sockaddr_storage *here, const struct sockaddr_storage *there)
{
    if (here->ss_family == AF_INET && there->ss_family == AF_INET) {
        return ((const struct sockaddr_in *)here)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)there)->sin_addr.s_addr;
    }
    return here->ss_family == AF_INET6 && there->ss_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)here)->sin6_addr,
                   &((const struct sockaddr_in6 *)there)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

void
uc_tcp_source_fit(struct uc_tcp_source *source)
{
    const int bytes = UC_TCP_LOCAL_SEND_BYTES; /* the kernel doubles it for its own needs */
    struct sockaddr_storage here;
    struct sockaddr_storage there;
    socklen_t here_bytes = sizeof(here);
    socklen_t there_bytes = sizeof(there);

    if (getsockname(source->base.fd, (struct sockaddr *)&here, &here_bytes) == 0 &&
            getpeername(source->base.fd, (struct sockaddr *)&there, &there_bytes) == 0 &&
            is_same_host(&here, &there)) {
        (void)setsockopt(source->base.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
}

void
uc_tcp_source_event(struct uc_source *base, uint32_t events)
{
    struct uc_tcp_source *source = uc_list_entry(base, struct uc_tcp_source, base);

    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        source->is_hung_up = true;
        base->readable = true;
    }
    if ((events & EPOLLIN) != 0) {
        base->readable = true;
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        source->writable = true;
    }
}

void
uc_tcp_source_close(struct uc_tcp_source *source, bool discard)
{
    if (discard && source->base.fd >= 0) {
        struct sockaddr nobody = {.sa_family = AF_UNSPEC};

        (void)connect(source->base.fd, &nobody, sizeof(nobody));
    }
    uc_source_close(&source->base);
    source->writable = false;
}

/* What a failed call means. */
static enum uc_tcp_io
failure(struct uc_tcp_source *source, bool *ready)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        *ready = false;
        return UC_TCP_BLOCKED;
    }

    source->lost_errno = errno;
    return UC_TCP_LOST;
}

enum uc_tcp_io
uc_tcp_source_receive(struct uc_tcp_source *source, struct iovec *iov, size_t count,
        size_t want_bytes, size_t *done_bytes_out)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t done;

    if (!source->base.readable) {
        return UC_TCP_BLOCKED;
    }

    do {
        done = recvmsg(source->base.fd, &message, 0);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        return failure(source, &source->base.readable);
    }
    if (done == 0) {
        source->lost_errno = 0;
        return UC_TCP_LOST;
    }

    /* A short read emptied the socket; more, or its end, makes another event. */
    if ((size_t)done < want_bytes && !source->is_hung_up) {
        source->base.readable = false;
    }
    *done_bytes_out = (size_t)done;
    return UC_TCP_MOVED;
}

enum uc_tcp_io
uc_tcp_source_send(struct uc_tcp_source *source, struct iovec *iov, size_t count, size_t want_bytes,
        size_t *done_bytes_out)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t done;

    if (!source->writable) {
        return UC_TCP_BLOCKED;
    }

    do {
        done = sendmsg(source->base.fd, &message, MSG_NOSIGNAL);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        return failure(source, &source->writable);
    }

    /* A short write filled the socket; room makes another event. */
    if ((size_t)done < want_bytes) {
        source->writable = false;
    }
    *done_bytes_out = (size_t)done;
    return UC_TCP_MOVED;
}

const uint8_t *
uc_tcp_stream_take(struct uc_tcp_stream *stream, size_t length)
{
    const uint8_t *bytes = &stream->rx[stream->rx_begin];

    if (stream->rx_end - stream->rx_begin < length) {
        return NULL;
    }

    stream->rx_begin += length;
    return bytes;
}

struct iovec
uc_tcp_stream_room(struct uc_tcp_stream *stream, size_t most)
{
    size_t kept = stream->rx_end - stream->rx_begin;

    /* What is left is the beginning of a frame. */
    assert(kept < UC_TCP_REQUEST_BYTES);
    memmove(stream->rx, &stream->rx[stream->rx_begin], kept);
    stream->rx_begin = 0;
    stream->rx_end = kept;
    return (struct iovec){.iov_base = &stream->rx[kept], .iov_len = most - kept};
}
