// Shortening: finds a short life that fails in the same way as a long life.
//
// It tries one reduction after the other (reductions.h): fewer clients, fewer of their commands,
// fewer ends of processes and acts of the operator, a calm network, a shorter time. A reduction is
// kept if a life with it fails with a problem of the same kind and no more events; or at most a
// quarter more without a client, because fewer clients are easier to follow. Each life runs in a
// child process, so that it may abort.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/life.h"

namespace tubed::simulation {

// How a life has ended.
struct Ending {
  std::string problem;  // empty: none
  std::uint64_t events = 0;
};

// The text of a problem without what differs between problems of a kind: words with digits, and
// everything from a quotation mark on.
std::string kind_of(std::string_view problem);

// Runs `live` in a child process. It stores the number of the events in `events` as they happen. An
// abort, a signal and a finding of a sanitizer are problems.
Ending run_apart(const std::function<LifeReport(std::uint64_t* events)>& live);

struct Shortened {
  LifeOptions options;
  Ending before;  // of the life with the options as they were
  Ending after;
  unsigned lives = 0;  // that it took
};

// `clients`: the names of all clients. `live` returns the ending of a life with its options.
Shortened shorten(const LifeOptions& options, const std::vector<std::string>& clients,
                  const std::function<Ending(const LifeOptions&)>& live, unsigned most_lives);

// The same for the life of a seed, in child processes.
Shortened shorten(std::uint64_t seed, const LifeOptions& options, unsigned most_lives);

}  // namespace tubed::simulation
