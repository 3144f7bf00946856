// The encoding: a byte 1; the number of members; for each member its id, its zero-terminated
// address and its role, in a byte. Numbers have 8 bytes, little-endian. The end is padded with
// zeros to a multiple of 8 bytes.
#include "cluster/configuration.h"

#include <string.h>

struct reader {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t left;  // members
};

static uint64_t number_at(const uint8_t* at) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static bool begin_members(struct reader* reader, const void* data, size_t bytes) {
  if (data == NULL || bytes < 9) return false;
  reader->at = data;
  reader->end = reader->at + bytes;
  if (*reader->at != 1) return false;
  reader->left = number_at(reader->at + 1);
  reader->at += 9;
  return true;
}

// Returns false if the member is malformed.
static bool next_member(struct reader* reader, struct core_member* member) {
  if (reader->end - reader->at < 8) return false;
  member->id = number_at(reader->at);
  reader->at += 8;
  const uint8_t* zero = memchr(reader->at, 0, (size_t)(reader->end - reader->at));
  if (zero == NULL || zero + 1 == reader->end) return false;
  member->address = (const char*)reader->at;
  member->role = zero[1];
  reader->at = zero + 2;
  --reader->left;
  return member->id != 0 && member->address[0] != '\0' &&
         (member->role == CORE_STANDBY || member->role == CORE_VOTER || member->role == CORE_SPARE);
}

bool core_is_configuration(const void* data, size_t bytes) {
  struct reader reader;
  struct core_member members[CORE_MOST_MEMBERS];
  if (!begin_members(&reader, data, bytes)) return false;
  if (reader.left == 0 || reader.left > CORE_MOST_MEMBERS) return false;
  for (unsigned i = 0; reader.left > 0; ++i) {
    if (!next_member(&reader, &members[i])) return false;
    for (unsigned j = 0; j < i; ++j) {
      if (members[i].id == members[j].id) return false;
      if (strcmp(members[i].address, members[j].address) == 0) return false;
    }
  }
  return true;
}

static bool is_same_member(const struct core_member* a, const struct core_member* b) {
  return a->id == b->id && a->role == b->role && strcmp(a->address, b->address) == 0;
}

bool core_is_single_change(const struct core_member* from, unsigned n_from, const void* data,
                           size_t bytes) {
  struct reader reader;
  struct core_member member;
  unsigned i = 0;
  unsigned changes = 0;
  unsigned voters = 0;
  begin_members(&reader, data, bytes);
  const uint64_t n = reader.left;
  while (reader.left > 0) {
    next_member(&reader, &member);
    if (member.role == CORE_VOTER) ++voters;
    // A member was removed here.
    if (n < n_from && i < n_from && from[i].id != member.id) {
      ++changes;
      ++i;
    }
    if (i < n_from && from[i].id == member.id) {
      if (!is_same_member(&from[i], &member)) ++changes;
      ++i;
    } else {
      ++changes;  // added, or a different member
      if (n <= n_from) return false;
    }
  }
  changes += n_from - i;
  return changes == 1 && voters > 0;
}

int core_decode(const void* data, size_t bytes, struct core_member* members, unsigned capacity,
                unsigned* n) {
  struct reader reader;
  struct core_member member;
  *n = 0;
  if (!core_is_configuration(data, bytes)) return CORE_MALFORMED;
  begin_members(&reader, data, bytes);
  while (reader.left > 0) {
    next_member(&reader, &member);
    if (*n < capacity) members[*n] = member;
    ++*n;
  }
  return 0;
}
