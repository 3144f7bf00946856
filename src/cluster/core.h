// The consensus core of a node: libraft, driven through raft_step(). Each event returns an update,
// which says what the caller must do. The core has no disk, no network and no clock; core.c is the
// only file that includes <raft.h>.
//
// Every step returns 0 and sets *update, which is valid until the next step, or returns an error
// code. After CORE_MALFORMED or CORE_REFUSED the core is unchanged. After any other code the core
// must no longer be used. Conditions that libraft only asserts are checked here first, because its
// packages are built without assertions.
//
// Times are milliseconds of a clock that never goes back. Except for changes of the configuration,
// entries carry no data here: the caller keeps the entries, and the core reports their indexes.
// Cost of a step: O(nodes + entries given).
#ifndef TUBED_CLUSTER_CORE_H_
#define TUBED_CLUSTER_CORE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tubed_core tubed_core;

enum { CORE_UNAVAILABLE = 0, CORE_FOLLOWER = 1, CORE_CANDIDATE = 2, CORE_LEADER = 3 };
enum { CORE_COMMAND = 1, CORE_BARRIER = 2, CORE_CHANGE = 3 };
enum { CORE_STANDBY = 0, CORE_VOTER = 1, CORE_SPARE = 2 };
enum {
  CORE_APPEND = 1,
  CORE_APPEND_RESULT = 2,
  CORE_VOTE = 3,
  CORE_VOTE_RESULT = 4,
  CORE_FETCH = 5,
  CORE_TIMEOUT_NOW = 6
};
enum {
  CORE_CATCH_UP_NONE = 0,
  CORE_CATCH_UP_RUNNING = 1,
  CORE_CATCH_UP_ABORTED = 2,
  CORE_CATCH_UP_FINISHED = 3
};
enum {
  CORE_MALFORMED = 1000, /* the arguments are impossible */
  CORE_REFUSED = 1001    /* not possible now, or not on this node */
};

enum { CORE_MOST_MEMBERS = 64 };

struct core_member {
  uint64_t id;
  int role;
  const char* address; /* not empty; unique among the members */
};

struct core_entry {
  uint64_t term;
  int type;
  const void* data; /* read for CORE_CHANGE only */
  size_t bytes;
};

/* Members that a type does not use are 0. */
struct core_message {
  int type;
  uint64_t peer; /* sender or receiver */
  uint64_t term;
  uint64_t index;    /* append: of the entry before the first; append result: of the last stored
                        entry; vote, timeout now: of the last entry; fetch: of the leader's state */
  uint64_t log_term; /* of the entry at `index`: append, vote, fetch, timeout now */
  uint64_t commit;   /* append */
  uint64_t rejected; /* append result */
  const struct core_entry* entries; /* of a received append */
  unsigned n_entries;               /* append: the number of entries after `index` */
  uint8_t granted;
  uint8_t pre_vote;
  uint8_t disrupt_leader;
};

/* The result of a step, to be carried out in this order. */
struct core_update {
  uint8_t vote_changed; /* term or vote: must be durable before any message is sent */
  uint8_t state_changed;
  uint8_t commit_changed;
  uint8_t timeout_changed;
  uint8_t barrier;    /* the entry is the core's own barrier, eight zeros */
  unsigned n_entries; /* to store: the last of the received or submitted entries */
  uint64_t first;     /* their first index; they replace all entries from there. 0: none */
  const struct core_message* messages;
  unsigned n_messages;
};

struct core_settings {
  uint64_t id;
  unsigned seed; /* must be truly random, or elections tie */
  unsigned election_timeout_ms;
  unsigned heartbeat_ms;
  unsigned max_inflight; /* entries under way to a member */
};

/* Returns null if memory is exhausted or a setting is 0. */
tubed_core* core_create(const struct core_settings* settings);
void core_destroy(tubed_core* core);
/* Returns the text of an error code. */
const char* core_error(int code);

/* The knowledge of a node at its start. */
struct core_base {
  uint64_t time;
  uint64_t term; /* 0: a new node without any state */
  uint64_t voted_for;
  uint64_t index; /* the state up to this entry is elsewhere, and its term; 0: no state */
  uint64_t index_term;
  const void* configuration; /* in force at `index`, encoded */
  size_t configuration_bytes;
  uint64_t configuration_index;
  /* All entries of the log. The first is at most index + 1, the last at least index. Without a
     state, the first is the change at index 1. */
  uint64_t first;
  const struct core_entry* entries;
  unsigned n_entries;
};
/* The first step. Makes the only voter of a cluster its leader. */
int core_start(tubed_core* core, const struct core_base* base, const struct core_update** update);
/* Only the first entry of a message may be a change: the caller passes the entries starting with
   each change as a separate message. Before the next message, it reports the changes that the
   update commits (core_configuration). A message from a node that is not a member is allowed. */
int core_receive(tubed_core* core, uint64_t time, const struct core_message* message,
                 const struct core_update** update);
/* The entries up to `index`, as they are in the core, are on disk. */
int core_persisted(tubed_core* core, uint64_t time, uint64_t index,
                   const struct core_update** update);
/* core_deadline() has passed. */
int core_timeout(tubed_core* core, uint64_t time, const struct core_update** update);
/* Appends entries of the current term: commands and barriers, or one change of one member. After an
   error nothing was appended: the core does not lead, is transferring leadership, or has a change
   under way. */
int core_submit(tubed_core* core, uint64_t time, const struct core_entry* entries, unsigned n,
                const struct core_update** update);
/* The change at `index` is committed. Called for each change, in order; `data` is its data. */
int core_configuration(tubed_core* core, uint64_t time, uint64_t index, const void* data,
                       size_t bytes, const struct core_update** update);
/* The state up to `index` is elsewhere, with the configuration in force there. The core keeps the
   last `trailing` entries up to `index`. Members that need older entries are then sent a fetch. */
int core_cut(tubed_core* core, uint64_t time, uint64_t index, uint64_t term, unsigned trailing,
             const void* configuration, size_t bytes, uint64_t configuration_index,
             const struct core_update** update);
/* Sends entries to a spare or standby member, and measures whether it can keep up; see
   core_catch_up_status(). No change can be submitted meanwhile. A standby member with all entries
   has caught up without this call, and would stay RUNNING until the next entry. */
int core_catch_up(tubed_core* core, uint64_t time, uint64_t id, const struct core_update** update);
/* Passes leadership to this voter, or to any voter (0). While the voter has not stored all entries,
   this may have no effect; after an election timeout the core leads as before. */
int core_transfer(tubed_core* core, uint64_t time, uint64_t id, const struct core_update** update);

int core_state(const tubed_core* core);
uint64_t core_term(const tubed_core* core);
uint64_t core_voted_for(const tubed_core* core);
/* On a follower it may be greater than the index of the last stored entry. */
uint64_t core_commit(const tubed_core* core);
/* When core_timeout() must be called. */
uint64_t core_deadline(const tubed_core* core);
/* The index of the last entry. */
uint64_t core_last(const tubed_core* core);
/* 0: unknown, or leadership is being transferred. */
uint64_t core_leader(const tubed_core* core);
/* The node to which leadership is being transferred; 0: none. */
uint64_t core_transferee(const tubed_core* core);
/* The role of this node; -1: not a member. */
int core_role(const tubed_core* core);
/* CORE_REFUSED: the core does not lead or does not know the member. */
int core_match(const tubed_core* core, uint64_t id, uint64_t* index);
int core_catch_up_status(const tubed_core* core, uint64_t id, int* status);
/* Fills up to `n` members of the current configuration, which may not be committed, and returns
   their number. The addresses are valid until the next step. */
unsigned core_members(const tubed_core* core, struct core_member* members, unsigned n);

/* Encodes a configuration. The caller frees *data with core_free(). */
int core_encode(const struct core_member* members, unsigned n, void** data, size_t* bytes);
void core_free(void* data);
/* Fills up to `capacity` members and sets *n to their number. The addresses point into `data`. */
int core_decode(const void* data, size_t bytes, struct core_member* members, unsigned capacity,
                unsigned* n);
/* The version of libraft, for example "0.22.1". */
const char* core_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TUBED_CLUSTER_CORE_H_ */
