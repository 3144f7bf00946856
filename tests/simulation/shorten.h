// Shortening: finds a short life that fails in the same way as a long life.
//
// It tries one reduction after another (reductions.h): fewer clients, fewer of their commands,
// fewer ends of processes and acts of the operator, a calm network, a shorter time. A reduction is
// kept if a life with it fails with the same kind of problem and no more events, or, when a client
// is removed, at most a quarter more: fewer clients are easier to follow. Each life runs in a child
// process, because it may abort.
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
  std::string problem;  // empty: no problem
  std::uint64_t events = 0;
};

// Returns a problem without the parts that differ within a kind: words with digits, and everything
// after a quotation mark.
std::string kind_of(std::string_view problem);

// Runs `live` in a child process, which stores the number of events in `events` as they occur.
// Aborts, signals and findings of a sanitizer are problems.
Ending run_apart(const std::function<LifeReport(std::uint64_t* events)>& live);

struct Shortened {
  LifeOptions options;
  Ending before;  // of the life with the original options
  Ending after;
  unsigned lives = 0;  // number of lives run
};

// `clients` has the names of all clients. `live` returns the ending of a life with the given
// options.
Shortened shorten(const LifeOptions& options, const std::vector<std::string>& clients,
                  const std::function<Ending(const LifeOptions&)>& live, unsigned most_lives);

// The same for the life of a seed, in child processes.
Shortened shorten(std::uint64_t seed, const LifeOptions& options, unsigned most_lives);

}  // namespace tubed::simulation
