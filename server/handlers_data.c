/* SPDX-License-Identifier: Apache-2.0 */

/* write_begin, write_end: what a worker does around its transfers. */

#include <inttypes.h>

#include "server/attachment.h"
#include "server/bracket.h"
#include "server/handlers.h"
#include "server/session.h"
#include "server/state.h"

static enum uc_status
check_begin(const struct uc_attachment *attachment, const struct uc_write_begin_request *request,
        struct uc_grant **grant_out)
{
    struct uc_grant *grant = uc_session_grant(attachment->session, request->grant);

    if (grant == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "write_begin: the session holds no grant %" PRIu64
                "; it was concluded, or is another's",
                request->grant);
    }
    if (grant->writes == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "write_begin: grant %" PRIu64 " is of a pin; it is for reading", request->grant);
    }
    if (request->key_count == 0 || request->first_key > grant->count ||
            request->key_count > grant->count - request->first_key) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "write_begin: keys %" PRIu64 " + %" PRIu64 " of a grant of %zu", request->first_key,
                request->key_count, grant->count);
    }
    if (uc_attachment_bracket(attachment, request->bracket) != NULL) {
        return uc_error(UC_ERR_DUPLICATE_KEY, "write_begin: bracket %" PRIu64 " is open already",
                request->bracket);
    }
    if (attachment->brackets.count >= UC_BRACKETS_PER_ATTACHMENT) {
        return uc_error(UC_ERR_RETRY,
                "write_begin: %d brackets are open, the most allowed; end some first",
                UC_BRACKETS_PER_ATTACHMENT);
    }
    if (request->key_count > UC_BRACKET_KEYS_PER_ATTACHMENT - attachment->bracket_keys) {
        return uc_error(UC_ERR_RETRY,
                "write_begin: %zu keys are in open brackets, %d are allowed; end some first",
                attachment->bracket_keys, UC_BRACKET_KEYS_PER_ATTACHMENT);
    }

    *grant_out = grant;
    return UC_OK;
}

void
uc_handle_write_begin(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_attachment *attachment = peer->attachment;
    struct uc_write_begin_request request;
    struct uc_bracket *bracket = NULL;
    struct uc_grant *grant = NULL;
    enum uc_status status = uc_write_begin_request_decode(call->params, &request);

    if (status == UC_OK) {
        status = check_begin(attachment, &request, &grant);
    }
    if (status == UC_OK) {
        status = uc_bracket_open(server->ns, grant, request.bracket, (size_t)request.first_key,
                (size_t)request.key_count, &bracket);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    uc_attachment_add_bracket(attachment, bracket);
    uc_call_done(peer, call);
}

/* The writer says that all bytes are there: remember which, and close. */
static enum uc_status
end_well(struct uc_server *server, struct uc_attachment *attachment, struct uc_bracket *bracket,
        const struct uc_write_end_request *request)
{
    bool concluded = bracket->grant == NULL;
    enum uc_status status =
            uc_bracket_record(server->ns, bracket, request->ranges, request->range_count);

    if (status == UC_ERR_INVALID_PARAM) {
        return status; /* it stays open: the caller fences */
    }

    uc_attachment_close_bracket(attachment, bracket);
    if (concluded) {
        return uc_error(UC_ERR_NOT_FOUND, "write_end: the grant was concluded meanwhile");
    }
    return status;
}

void
uc_handle_write_end(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_attachment *attachment = peer->attachment;
    struct uc_write_end_request request;
    struct uc_bracket *bracket = NULL;
    enum uc_status status = uc_write_end_request_decode(call->params, &request);

    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }
    bracket = uc_attachment_bracket(attachment, request.bracket);
    if (bracket == NULL || bracket->fencing) {
        uc_call_fail(peer, call,
                uc_error(UC_ERR_NOT_FOUND, "write_end: bracket %" PRIu64 " is not open",
                        request.bracket));
        return;
    }

    bracket->verdict = UC_OK;
    if (request.ok) {
        status = end_well(server, attachment, bracket, &request);
        if (status == UC_OK) {
            uc_call_done(peer, call);
            return;
        }
        if (status != UC_ERR_INVALID_PARAM) {
            uc_call_fail(peer, call, status);
            return;
        }
        /* Who does not know what it wrote may still be writing. */
        bracket->verdict = status;
        bracket->verdict_text = "write_end: ranges that do not fit the bracket; its writes count "
                                "as failed and its endpoints were fenced";
    }
    bracket->answer = !call->is_notification;
    bracket->message_id = call->message_id;
    uc_attachment_fence_bracket(server, attachment, bracket);
}
