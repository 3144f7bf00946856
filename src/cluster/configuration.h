// Checks configurations in libraft's encoding, because libraft reads them without checking their
// length. Part of the core (core.h).
#ifndef TUBED_CLUSTER_CONFIGURATION_H_
#define TUBED_CLUSTER_CONFIGURATION_H_

#include <stdbool.h>
#include <stddef.h>

#include "cluster/core.h"

// True if it has 1 to CORE_MOST_MEMBERS members, each with an id and an address of its own.
bool core_is_configuration(const void* data, size_t bytes);

// True if it differs from the given members in one member, keeps the order of the others, and has a
// voter. Precondition: core_is_configuration().
bool core_is_single_change(const struct core_member* from, unsigned n_from, const void* data,
                           size_t bytes);

#endif  // TUBED_CLUSTER_CONFIGURATION_H_
