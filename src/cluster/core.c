// Facts about libraft 0.22.1, from its source:
//
//  - The messages and entries of an update are reused by the next step: messages are copied, and of
//    the entries (the last of those passed in, or a barrier) number and first index are reported.
//  - It reads the data of changes of the configuration only: entries are passed without a copy. All
//    entries of a call share a `batch`. Of a received message the library frees the batch, unless
//    it returns entries; submitted entries stay the caller's.
//  - A received change gets the index of the first new entry of its message
//    (membershipUncommittedChange() in replicationAppend()), hence core_receive()'s rule.
//  - Progress of members is kept by their position in the configuration, and is moved only if the
//    number of members changes: a change must not reorder members (core_is_single_change()).
//  - An append that fails halfway leaves its first entries in the core: changes are submitted
//    alone.
//  - A vote's result is interpreted with candidate_state.in_pre_vote in every state, although that
//    is a member of a union: results are dropped unless the core is a candidate.
//  - A member that becomes a spare still counts for raft_timeout() (core_deadline()).
//  - A follower's commit index goes back when an append with earlier entries says more than it has
//    (replicationAppend()): the greatest counts.
//  - A node that is no voter by its own configuration grants no vote (electionVote()): the caller
//    makes no change that needs the votes of nodes that do not know of theirs.
//  - It does not set the index of its answer to an append of an earlier term.
//  - A node that has fetched the state may reject entries that it has once acknowledged: passed on.
//  - Snapshots are not used: RAFT_INSTALL_SNAPSHOT is sent as a fetch, and never passed in. It is
//    not answered, and would follow with each timeout (checkContactQuorum()): unless the other
//    node has just answered an append, the heartbeat that it replaces is sent.
//  - For the leader a rejection of another index than that of its last snapshot is stale, until the
//    timeout of the snapshot (progressMaybeDecrement()): this is one election timeout.
#include "cluster/core.h"

#include <raft.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/configuration.h"

#if RAFT_VERSION_NUMBER < 2201 || RAFT_VERSION_NUMBER >= 2300
#error "cluster mode needs libraft >= 0.22.1, < 0.23"
#endif

struct tubed_core {
  struct raft raft;
  struct core_update update;
  struct core_message* messages;  // the update's messages
  unsigned messages_capacity;
  struct raft_entry* entries;  // the step's entries
  unsigned entries_capacity;
  uint64_t commit;     // the greatest commit index so far
  uint64_t timed_out;  // time of the last core_timeout()
  uint64_t sender;     // whose append result or append of an earlier term is received; 0: none
  unsigned heartbeat_ms;
};

// The library requires the address of the sender of a message, and copies it.
static const char kNoAddress[] = "-";

// Functions of the library take non-const pointers even to data that they only read.
static void* writable(const void* data) {
  return (void*)(uintptr_t)data;
}

static struct raft* raft_of(const tubed_core* core) {
  return writable(&core->raft);
}

// Precondition: core_is_configuration(). Returns the library's result for everything else.
static int decode(const void* data, size_t bytes, struct raft_configuration* configuration) {
  const struct raft_buffer buffer = {.base = writable(data), .len = bytes};
  raft_configuration_init(configuration);
  return raft_configuration_decode(&buffer, configuration);
}

// --- Steps

static void report_message(const tubed_core* core, struct core_message* to,
                           const struct raft_message* from) {
  memset(to, 0, sizeof *to);
  to->peer = from->server_id;
  switch (from->type) {
    case RAFT_APPEND_ENTRIES:
      to->type = CORE_APPEND;
      to->term = from->append_entries.term;
      to->index = from->append_entries.prev_log_index;
      to->log_term = from->append_entries.prev_log_term;
      to->commit = from->append_entries.leader_commit;
      to->n_entries = from->append_entries.n_entries;
      break;
    case RAFT_APPEND_ENTRIES_RESULT:
      to->type = CORE_APPEND_RESULT;
      to->term = from->append_entries_result.term;
      to->rejected = from->append_entries_result.rejected;
      if (from->server_id != core->sender) to->index = from->append_entries_result.last_log_index;
      break;
    case RAFT_REQUEST_VOTE:
      to->type = CORE_VOTE;
      to->term = from->request_vote.term;
      to->index = from->request_vote.last_log_index;
      to->log_term = from->request_vote.last_log_term;
      to->pre_vote = from->request_vote.pre_vote;
      to->disrupt_leader = from->request_vote.disrupt_leader;
      break;
    case RAFT_REQUEST_VOTE_RESULT:
      to->type = CORE_VOTE_RESULT;
      to->term = from->request_vote_result.term;
      to->granted = from->request_vote_result.vote_granted;
      to->pre_vote = from->request_vote_result.pre_vote;
      break;
    case RAFT_INSTALL_SNAPSHOT:
      to->type = CORE_FETCH;
      to->term = from->install_snapshot.term;
      to->index = from->install_snapshot.last_index;
      to->log_term = from->install_snapshot.last_term;
      if (from->server_id == core->sender) break;
      to->type = CORE_APPEND;
      to->commit = raft_commit_index(&core->raft);
      break;
    case RAFT_TIMEOUT_NOW:
      to->type = CORE_TIMEOUT_NOW;
      to->term = from->timeout_now.term;
      to->index = from->timeout_now.last_log_index;
      to->log_term = from->timeout_now.last_log_term;
      break;
  }
}

static bool report_messages(tubed_core* core, const struct raft_update* update) {
  const unsigned n = update->messages.n;
  if (n > core->messages_capacity) {
    struct core_message* more = realloc(core->messages, n * sizeof *more);
    if (more == NULL) return false;
    core->messages = more;
    core->messages_capacity = n;
  }
  const struct raft_message* batch = update->messages.batch;
  for (unsigned i = 0; i < n; ++i) report_message(core, &core->messages[i], &batch[i]);
  core->update.messages = core->messages;
  core->update.n_messages = n;
  return true;
}

static void begin(tubed_core* core, const struct core_update** update) {
  memset(&core->update, 0, sizeof core->update);
  core->sender = 0;
  *update = &core->update;
}

// Makes a step that involves the first `n_entries` of core->entries.
static int step(tubed_core* core, struct raft_event* event, unsigned n_entries) {
  struct raft_update update;
  struct core_update* out = &core->update;
  memset(&update, 0, sizeof update);
  const int code = raft_step(&core->raft, event, &update);
  if (code != 0) return code;
  if (raft_commit_index(&core->raft) > core->commit) core->commit = raft_commit_index(&core->raft);
  out->vote_changed = (update.flags & (RAFT_UPDATE_CURRENT_TERM)) != 0 ||
                      (update.flags & (RAFT_UPDATE_VOTED_FOR)) != 0;
  out->state_changed = (update.flags & (RAFT_UPDATE_STATE)) != 0;
  out->commit_changed = (update.flags & (RAFT_UPDATE_COMMIT_INDEX)) != 0;
  out->timeout_changed = (update.flags & (RAFT_UPDATE_TIMEOUT)) != 0;
  if ((update.flags & (RAFT_UPDATE_ENTRIES)) != 0) {
    out->first = update.entries.index;
    out->n_entries = update.entries.n;
    out->barrier = update.entries.batch == &core->raft.barrier;
    if (out->barrier) {
      raft_free(core->raft.barrier.batch);
    } else if (update.entries.batch + update.entries.n != core->entries + n_entries) {
      return RAFT_INVALID;  // not the last entries
    }
  }
  if ((update.flags & (RAFT_UPDATE_SNAPSHOT)) != 0) return RAFT_INVALID;
  return report_messages(core, &update) ? 0 : RAFT_NOMEM;
}

static void set_entries(struct raft_entry* to, const struct core_entry* from, unsigned n,
                        void* batch) {
  for (unsigned i = 0; i < n; ++i) {
    to[i].term = from[i].term;
    to[i].type = (enum raft_entry_type)from[i].type;
    to[i].buf.base = writable(from[i].data);
    to[i].buf.len = from[i].bytes;
    to[i].batch = batch;
  }
}

// Fills core->entries. Returns false if memory is exhausted.
static bool take_entries(tubed_core* core, const struct core_entry* entries, unsigned n,
                         void* batch) {
  if (n > core->entries_capacity) {
    struct raft_entry* more = realloc(core->entries, n * sizeof *more);
    if (more == NULL) return false;
    core->entries = more;
    core->entries_capacity = n;
  }
  set_entries(core->entries, entries, n, batch);
  return true;
}

// True if the entries can follow an entry of the term `after` in a log of the term `term`.
static bool are_entries(const struct core_entry* entries, unsigned n, uint64_t after,
                        uint64_t term) {
  for (unsigned i = 0; i < n; ++i) {
    if (entries[i].term == 0 || entries[i].term < after || entries[i].term > term) return false;
    if (entries[i].type < CORE_COMMAND || entries[i].type > CORE_CHANGE) return false;
    if (entries[i].type == CORE_CHANGE && !core_is_configuration(entries[i].data, entries[i].bytes))
      return false;
    after = entries[i].term;
  }
  return true;
}

static struct raft_event event_of(enum raft_event_type type, uint64_t time) {
  struct raft_event event;
  memset(&event, 0, sizeof event);
  event.type = type;
  event.time = time;
  return event;
}

// --- Life

tubed_core* core_create(const struct core_settings* settings) {
  if (settings->id == 0 || settings->election_timeout_ms == 0 || settings->heartbeat_ms == 0 ||
      settings->max_inflight == 0)
    return NULL;
  tubed_core* core = calloc(1, sizeof *core);
  if (core == NULL) return NULL;
  if (raft_init(&core->raft, NULL, NULL, settings->id, kNoAddress) != 0) {
    free(core);
    return NULL;
  }
  core->heartbeat_ms = settings->heartbeat_ms;
  core->raft.tracer = NULL;  // the library's tracer formats a line for every step
  raft_seed(&core->raft, settings->seed);
  raft_set_election_timeout(&core->raft, settings->election_timeout_ms);
  raft_set_heartbeat_timeout(&core->raft, settings->heartbeat_ms);
  raft_set_pre_vote(&core->raft, true);
  raft_set_install_snapshot_timeout(&core->raft, settings->election_timeout_ms);
  raft_set_max_inflight_entries(&core->raft, settings->max_inflight);
  return core;
}

void core_destroy(tubed_core* core) {
  if (core == NULL) return;
  raft_close(&core->raft, NULL);
  free(core->messages);
  free(core->entries);
  free(core);
}

const char* core_error(int code) {
  if (code == CORE_MALFORMED) return "malformed";
  if (code == CORE_REFUSED) return "refused";
  return raft_strerror(code);
}

const char* core_version(void) {
#define CORE_TEXT_OF(x) #x
#define CORE_TEXT(x) CORE_TEXT_OF(x)
  return CORE_TEXT(RAFT_VERSION_MAJOR) "." CORE_TEXT(RAFT_VERSION_MINOR) "." CORE_TEXT(
      RAFT_VERSION_RELEASE);
#undef CORE_TEXT
#undef CORE_TEXT_OF
}

static bool is_base(const struct core_base* base) {
  const unsigned n = base->n_entries;
  if (base->term == 0) return base->voted_for == 0 && base->index == 0 && n == 0;
  if (!are_entries(base->entries, n, 0, base->term)) return false;
  if (base->index == 0) return n == 0 || (base->first == 1 && base->entries[0].type == CORE_CHANGE);
  if (base->first == 0 || base->first > base->index + 1 || base->first + n <= base->index)
    return false;
  if (base->index >= base->first &&
      base->entries[base->index - base->first].term != base->index_term)
    return false;
  return base->index_term > 0 && base->index_term <= base->term && base->configuration_index > 0 &&
         base->configuration_index <= base->index &&
         core_is_configuration(base->configuration, base->configuration_bytes);
}

int core_start(tubed_core* core, const struct core_base* base, const struct core_update** update) {
  struct raft_event event = event_of(RAFT_START, base->time);
  struct raft_snapshot_metadata metadata;
  begin(core, update);
  if (!is_base(base)) return CORE_MALFORMED;
  if (base->index > 0) {
    const int code =
        decode(base->configuration, base->configuration_bytes, &metadata.configuration);
    if (code != 0) return code == RAFT_MALFORMED ? CORE_MALFORMED : code;
    metadata.index = base->index;
    metadata.term = base->index_term;
    metadata.configuration_index = base->configuration_index;
    event.start.metadata = &metadata;  // the library now owns the configuration
  }
  event.start.term = base->term;
  event.start.voted_for = base->voted_for;
  event.start.start_index = base->index == 0 ? 1 : base->first;
  // A separate array: the library frees it on failure.
  void* batch = NULL;
  if (base->n_entries > 0) {
    batch = raft_malloc(1);
    event.start.entries = raft_malloc(base->n_entries * sizeof(struct raft_entry));
    if (batch == NULL || event.start.entries == NULL) {
      raft_free(event.start.entries);
      raft_free(batch);
      if (base->index > 0) raft_configuration_close(&metadata.configuration);
      return RAFT_NOMEM;
    }
    set_entries(event.start.entries, base->entries, base->n_entries, batch);
    event.start.n_entries = base->n_entries;
  }
  const int code = step(core, &event, 0);
  if (code != 0) return code;
  raft_free(event.start.entries);
  raft_free(batch);
  return 0;
}

// --- Events

// The library relies on this for each message.
static bool is_message(const tubed_core* core, const struct core_message* message) {
  if (message->peer == 0 || message->peer == core->raft.id || message->term == 0) return false;
  if (message->type != CORE_APPEND) return true;
  if ((message->index == 0) != (message->log_term == 0) || message->log_term > message->term)
    return false;
  for (unsigned i = 1; i < message->n_entries; ++i) {
    if (message->entries[i].type == CORE_CHANGE) return false;
  }
  // A term has only one leader.
  if (core_state(core) == CORE_LEADER && message->term == core_term(core)) return false;
  return are_entries(message->entries, message->n_entries, message->log_term, message->term);
}

static int receive_entries(tubed_core* core, struct raft_event* event,
                           const struct core_message* message) {
  const unsigned n = message->n_entries;
  if (n == 0) return step(core, event, 0);
  struct raft_append_entries* append = &event->receive.message->append_entries;
  void* batch = raft_malloc(1);
  if (batch == NULL || !take_entries(core, message->entries, n, batch)) {
    raft_free(batch);
    return RAFT_NOMEM;
  }
  append->entries = core->entries;
  append->n_entries = n;
  const int code = step(core, event, n);
  if (code == 0 && core->update.first != 0) raft_free(batch);
  return code;
}

int core_receive(tubed_core* core, uint64_t time, const struct core_message* message,
                 const struct core_update** update) {
  struct raft_event event = event_of(RAFT_RECEIVE, time);
  struct raft_message received;
  uint64_t match = 0;
  begin(core, update);
  if (!is_message(core, message)) return CORE_MALFORMED;
  memset(&received, 0, sizeof received);
  received.server_id = message->peer;
  received.server_address = kNoAddress;
  event.receive.message = &received;
  switch (message->type) {
    case CORE_APPEND:
      received.type = RAFT_APPEND_ENTRIES;
      received.append_entries.term = message->term;
      received.append_entries.prev_log_index = message->index;
      received.append_entries.prev_log_term = message->log_term;
      received.append_entries.leader_commit = message->commit;
      if (message->term < core_term(core)) core->sender = message->peer;
      return receive_entries(core, &event, message);
    case CORE_APPEND_RESULT:
      received.type = RAFT_APPEND_ENTRIES_RESULT;
      received.append_entries_result.version = 2;
      received.append_entries_result.term = message->term;
      received.append_entries_result.rejected = message->rejected;
      received.append_entries_result.last_log_index = message->index;
      if (message->rejected > 0 && core_match(core, message->peer, &match) == 0 &&
          message->rejected <= match) {
        received.append_entries_result.rejected = 0;
        received.append_entries_result.last_log_index = match;
      }
      core->sender = message->peer;
      break;
    case CORE_VOTE:
      received.type = RAFT_REQUEST_VOTE;
      received.request_vote.version = 2;
      received.request_vote.term = message->term;
      received.request_vote.candidate_id = message->peer;
      received.request_vote.last_log_index = message->index;
      received.request_vote.last_log_term = message->log_term;
      received.request_vote.disrupt_leader = message->disrupt_leader != 0;
      received.request_vote.pre_vote = message->pre_vote != 0;
      break;
    case CORE_VOTE_RESULT:
      if (core_state(core) != CORE_CANDIDATE) return 0;
      received.type = RAFT_REQUEST_VOTE_RESULT;
      received.request_vote_result.version = 2;
      received.request_vote_result.term = message->term;
      received.request_vote_result.vote_granted = message->granted != 0;
      received.request_vote_result.pre_vote = message->pre_vote != 0;
      break;
    case CORE_TIMEOUT_NOW:
      received.type = RAFT_TIMEOUT_NOW;
      received.timeout_now.term = message->term;
      received.timeout_now.last_log_index = message->index;
      received.timeout_now.last_log_term = message->log_term;
      break;
    default:
      return CORE_MALFORMED;
  }
  return step(core, &event, 0);
}

int core_persisted(tubed_core* core, uint64_t time, uint64_t index,
                   const struct core_update** update) {
  struct raft_event event = event_of(RAFT_PERSISTED_ENTRIES, time);
  begin(core, update);
  if (index > core_last(core)) return CORE_MALFORMED;
  if (index <= core->raft.last_stored) return 0;
  event.persisted_entries.index = index;
  return step(core, &event, 0);
}

int core_timeout(tubed_core* core, uint64_t time, const struct core_update** update) {
  struct raft_event event = event_of(RAFT_TIMEOUT, time);
  begin(core, update);
  core->timed_out = time;
  return step(core, &event, 0);
}

int core_submit(tubed_core* core, uint64_t time, const struct core_entry* entries, unsigned n,
                const struct core_update** update) {
  struct raft_event event = event_of(RAFT_SUBMIT, time);
  char batch;
  begin(core, update);
  if (core_state(core) != CORE_LEADER) return CORE_REFUSED;
  if (n == 0 || !are_entries(entries, n, core_term(core), core_term(core))) return CORE_MALFORMED;
  for (unsigned i = 0; i < n; ++i) {
    if (entries[i].type != CORE_CHANGE) continue;
    struct core_member members[CORE_MOST_MEMBERS];
    const unsigned n_members = core_members(core, members, CORE_MOST_MEMBERS);
    if (n > 1 || !core_is_single_change(members, n_members, entries[i].data, entries[i].bytes))
      return CORE_MALFORMED;
  }
  if (!take_entries(core, entries, n, &batch)) return RAFT_NOMEM;
  event.submit.entries = core->entries;
  event.submit.n = n;
  const int code = step(core, &event, n);
  return code == RAFT_NOTLEADER || code == RAFT_CANTCHANGE ? CORE_REFUSED : code;
}

int core_configuration(tubed_core* core, uint64_t time, uint64_t index, const void* data,
                       size_t bytes, const struct core_update** update) {
  struct raft_event event = event_of(RAFT_CONFIGURATION, time);
  begin(core, update);
  if (index == 0 || index > core_commit(core) || !core_is_configuration(data, bytes))
    return CORE_MALFORMED;
  const int code = decode(data, bytes, &event.configuration.conf);
  if (code != 0) return code == RAFT_MALFORMED ? CORE_MALFORMED : code;
  event.configuration.index = index;
  return step(core, &event, 0);  // the library now owns the configuration
}

int core_cut(tubed_core* core, uint64_t time, uint64_t index, uint64_t term, unsigned trailing,
             const void* configuration, size_t bytes, uint64_t configuration_index,
             const struct core_update** update) {
  struct raft_event event = event_of(RAFT_SNAPSHOT, time);
  const struct raft_trail* trail = &core->raft.trail;
  begin(core, update);
  if (index <= trail->snapshot.index || index <= trail->offset || index > core_commit(core) ||
      configuration_index == 0 || configuration_index > index ||
      !core_is_configuration(configuration, bytes))
    return CORE_MALFORMED;
  const int code = decode(configuration, bytes, &event.snapshot.metadata.configuration);
  if (code != 0) return code == RAFT_MALFORMED ? CORE_MALFORMED : code;
  event.snapshot.metadata.index = index;
  event.snapshot.metadata.term = term;
  event.snapshot.metadata.configuration_index = configuration_index;
  event.snapshot.trailing = trailing;
  return step(core, &event, 0);
}

static const struct raft_server* member_of(const tubed_core* core, uint64_t id) {
  const struct raft_configuration* configuration = &core->raft.configuration;
  for (unsigned i = 0; i < configuration->n; ++i) {
    if (configuration->servers[i].id == id) return &configuration->servers[i];
  }
  return NULL;
}

int core_catch_up(tubed_core* core, uint64_t time, uint64_t id, const struct core_update** update) {
  struct raft_event event = event_of(RAFT_CATCH_UP, time);
  const struct raft_server* member = member_of(core, id);
  begin(core, update);
  if (core_state(core) != CORE_LEADER || member == NULL || member->role == CORE_VOTER ||
      core->raft.leader_state.promotee_id != 0 || id == core->raft.id)
    return CORE_REFUSED;
  event.catch_up.server_id = id;
  return step(core, &event, 0);
}

int core_transfer(tubed_core* core, uint64_t time, uint64_t id, const struct core_update** update) {
  struct raft_event event = event_of(RAFT_TRANSFER, time);
  begin(core, update);
  event.transfer.server_id = id;
  const int code = step(core, &event, 0);
  return code == RAFT_NOTLEADER || code == RAFT_BADID || code == RAFT_NOTFOUND ? CORE_REFUSED
                                                                               : code;
}

// --- State

int core_state(const tubed_core* core) {
  return (int)raft_state(raft_of(core));
}

uint64_t core_term(const tubed_core* core) {
  return raft_current_term(&core->raft);
}

uint64_t core_voted_for(const tubed_core* core) {
  return raft_voted_for(&core->raft);
}

uint64_t core_commit(const tubed_core* core) {
  return core->commit;
}

uint64_t core_deadline(const tubed_core* core) {
  const uint64_t deadline = raft_timeout(&core->raft);
  // After a timeout the next deadline is in the future. If it is not, it belongs to a member that
  // is no longer sent anything, and hides the deadlines of the other members.
  if (core_state(core) != CORE_LEADER || deadline > core->timed_out) return deadline;
  return core->timed_out + (core->heartbeat_ms + 1) / 2;
}

uint64_t core_last(const tubed_core* core) {
  return raft_last_index(raft_of(core));
}

uint64_t core_leader(const tubed_core* core) {
  raft_id id = 0;
  const char* address = NULL;
  raft_leader(raft_of(core), &id, &address);
  return id;
}

uint64_t core_transferee(const tubed_core* core) {
  return raft_transferee(&core->raft);
}

int core_role(const tubed_core* core) {
  return raft_role(raft_of(core));
}

int core_match(const tubed_core* core, uint64_t id, uint64_t* index) {
  raft_index match = 0;
  const int code = raft_match_index(&core->raft, id, &match);
  *index = match;
  return code == 0 ? 0 : CORE_REFUSED;
}

int core_catch_up_status(const tubed_core* core, uint64_t id, int* status) {
  return raft_catch_up(&core->raft, id, status) == 0 ? 0 : CORE_REFUSED;
}

unsigned core_members(const tubed_core* core, struct core_member* members, unsigned n) {
  const struct raft_configuration* configuration = &core->raft.configuration;
  for (unsigned i = 0; i < n && i < configuration->n; ++i) {
    members[i].id = configuration->servers[i].id;
    members[i].role = configuration->servers[i].role;
    members[i].address = configuration->servers[i].address;
  }
  return configuration->n;
}

int core_encode(const struct core_member* members, unsigned n, void** data, size_t* bytes) {
  struct raft_configuration configuration;
  struct raft_buffer buffer;
  int code = n == 0 || n > CORE_MOST_MEMBERS ? CORE_MALFORMED : 0;
  raft_configuration_init(&configuration);
  for (unsigned i = 0; i < n && code == 0; ++i) {
    if (members[i].id == 0 || members[i].address[0] == '\0') {
      code = CORE_MALFORMED;
    } else {
      code = raft_configuration_add(&configuration, members[i].id, members[i].address,
                                    members[i].role);
      if (code != RAFT_NOMEM && code != 0) code = CORE_MALFORMED;
    }
  }
  if (code == 0) code = raft_configuration_encode(&configuration, &buffer);
  raft_configuration_close(&configuration);
  if (code != 0) return code;
  *data = buffer.base;
  *bytes = buffer.len;
  return 0;
}

void core_free(void* data) {
  raft_free(data);
}
