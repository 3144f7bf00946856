// Lives of clusters with a fault planted in their code (CMakeLists.txt): the World must find it.
//
//   planted_NAME [LIVES [FIRST]]
//
// Exits with 0, and prints the first violated condition, if a condition is violated or an assertion
// fails in LIVES (1,000) lives, starting with seed FIRST (1); otherwise exits with 1.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "tests/cluster/world.h"

namespace {

std::uint64_t life = 0;

void found_by_assertion(int) {
  std::printf("found in life %llu: an assertion\n", static_cast<unsigned long long>(life));
  std::fflush(stdout);
  _exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t lives = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1000;
  const std::uint64_t first = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  std::signal(SIGABRT, found_by_assertion);
  for (life = first; life < first + lives; ++life) {
    tubed::cluster_test::World world(tubed::cluster_test::some_nature(life));
    if (const auto problem = world.live()) {
      std::printf("found in life %llu: %s\n", static_cast<unsigned long long>(life),
                  problem->c_str());
      return 0;
    }
  }
  std::printf("not found in %llu lives\n", static_cast<unsigned long long>(lives));
  return 1;
}
