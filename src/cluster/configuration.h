// Checks of configurations in the encoding of libraft, which reads them without looking at their
// length. Part of the core (core.h).
#ifndef TUBED_CLUSTER_CONFIGURATION_H_
#define TUBED_CLUSTER_CONFIGURATION_H_

#include <stdbool.h>
#include <stddef.h>

#include "cluster/core.h"

// Whether it has 1 to CORE_MOST_MEMBERS members, of which each has its own id and address.
bool core_is_configuration(const void* data, size_t bytes);

// Whether it differs in one member from the given members, keeps the order of the others, and has a
// voter. Precondition: core_is_configuration().
bool core_is_single_change(const struct core_member* from, unsigned n_from, const void* data,
                           size_t bytes);

#endif  // TUBED_CLUSTER_CONFIGURATION_H_
