/* SPDX-License-Identifier: Apache-2.0 */

#include "server/attachment.h"

#include <inttypes.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "server/peer.h"
#include "server/secret.h"
#include "server/session.h"
#include "server/state.h"

enum uc_status
uc_attachment_open(struct uc_server *server, struct uc_peer *peer, struct uc_session *session,
        struct uc_attachment **attachment_out)
{
    struct uc_attachment *attachment = calloc(1, sizeof(*attachment));
    uint64_t seed;
    enum uc_status status;

    if (attachment == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for an attachment");
    }
    status = uc_secret_random(&seed, sizeof(seed));
    if (status == UC_OK) {
        status = uc_id_map_init(&attachment->brackets, seed);
    }
    if (status != UC_OK) {
        free(attachment);
        return status;
    }

    attachment->server = server;
    attachment->session = session;
    attachment->peer = peer;
    attachment->id = server->next_id++;
    uc_list_add(&session->attachments, &attachment->node);
    server->counters.attachments++;
    uc_log_debug("attachment %" PRIu64 ": of session %" PRIu64 ", at %s", attachment->id,
            session->id, peer->address);
    *attachment_out = attachment;
    return UC_OK;
}

enum uc_status
uc_attachment_expect(struct uc_server *server, struct uc_attachment *attachment,
        uint8_t nonce_out[UC_FABRIC_NONCE_BYTES])
{
    enum uc_fabric_access access = attachment->session->access == UC_ACCESS_RO
                                           ? UC_FABRIC_READ_ONLY
                                           : UC_FABRIC_READ_WRITE;

    return uc_fabric_thread_expect(
            server->fabrics, attachment->id, attachment->epoch, access, nonce_out);
}

void
uc_attachment_add_bracket(struct uc_attachment *attachment, struct uc_bracket *bracket)
{
    bracket->attachment = attachment;
    uc_id_map_add(&attachment->brackets, &bracket->node);
    attachment->bracket_keys += bracket->count;
    attachment->server->counters.open_brackets++;
}

void
uc_attachment_close_bracket(struct uc_attachment *attachment, struct uc_bracket *bracket)
{
    uc_id_map_remove(&attachment->brackets, &bracket->node);
    attachment->bracket_keys -= bracket->count;
    attachment->server->counters.open_brackets--;
    uc_bracket_close(attachment->server->ns, bracket);
}

/* Every fence of an ending attachment has been answered: what it wrote is at rest. */
static void
finish_if_fenced(struct uc_attachment *attachment)
{
    struct uc_server *server = attachment->server;
    struct uc_session *session = attachment->session;
    struct uc_id_node *node;

    if (!attachment->ending || attachment->fences_pending > 0) {
        return;
    }

    while ((node = uc_id_map_any(&attachment->brackets)) != NULL) {
        uc_attachment_close_bracket(attachment, uc_list_entry(node, struct uc_bracket, node));
    }
    uc_log_debug("attachment %" PRIu64 ": fenced", attachment->id);
    uc_list_remove(&attachment->node);
    server->counters.attachments--;
    uc_id_map_fini(&attachment->brackets);
    free(attachment);
    uc_session_attachment_gone(server, session);
}

static void
start_fence(struct uc_server *server, struct uc_attachment *attachment, struct uc_fence *fence)
{
    fence->attachment = attachment->id;
    fence->epoch = attachment->epoch++;
    attachment->fences_pending++;
    server->counters.fences++;
    uc_fabric_thread_fence(server->fabrics, fence);
}

static void
on_ended(struct uc_fence *fence)
{
    struct uc_attachment *attachment = uc_list_entry(fence, struct uc_attachment, end_fence);

    attachment->fences_pending--;
    finish_if_fenced(attachment);
}

void
uc_attachment_end(struct uc_server *server, struct uc_attachment *attachment, const char *why)
{
    if (attachment->ending) {
        return;
    }

    uc_log_debug("attachment %" PRIu64 ": ends: %s", attachment->id, why);
    attachment->ending = true;
    if (attachment->peer != NULL) {
        attachment->peer->attachment = NULL;
        uc_peer_close(attachment->peer);
        attachment->peer = NULL;
    }
    attachment->end_fence.on_done = on_ended;
    start_fence(server, attachment, &attachment->end_fence);
}

static void
on_bracket_fenced(struct uc_fence *fence)
{
    struct uc_bracket *bracket = uc_list_entry(fence, struct uc_bracket, fence);
    struct uc_attachment *attachment = bracket->attachment;
    bool answer = bracket->answer;
    uint32_t message_id = bracket->message_id;
    enum uc_status verdict = bracket->verdict;
    const char *text = bracket->verdict_text;

    /* The transfers end before the answer: the client may commit the moment it hears it. */
    uc_attachment_close_bracket(attachment, bracket);
    attachment->fences_pending--;
    if (answer && attachment->peer != NULL) {
        uc_peer_answer(attachment->peer, message_id, verdict, text);
    }
    finish_if_fenced(attachment);
}

void
uc_attachment_fence_bracket(
        struct uc_server *server, struct uc_attachment *attachment, struct uc_bracket *bracket)
{
    uc_log_debug("attachment %" PRIu64 ": a write failed, fence", attachment->id);
    bracket->fencing = true;
    uc_bracket_forbid_writes(server->ns, bracket);
    bracket->fence.on_done = on_bracket_fenced;
    start_fence(server, attachment, &bracket->fence);
}

struct uc_bracket *
uc_attachment_bracket(const struct uc_attachment *attachment, uint64_t id)
{
    struct uc_id_node *node = uc_id_map_find(&attachment->brackets, id);

    return node == NULL ? NULL : uc_list_entry(node, struct uc_bracket, node);
}
