#include "loop/name_lookup.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "loop/host_connector.h"
#include "os/clock.h"
#include "tests/loop/fake_names.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using namespace std::chrono_literals;

using loop::HostConnector;
using loop::Loop;
using loop::NameLookup;

namespace {

struct Asked {
  Asked(Loop& loop, const std::string& name, Duration limit = kLastResort)
      : lookup(std::make_unique<NameLookup>(loop, name, limit, [this](NameLookup::Found result) {
          lookup.reset();
          found.emplace(std::move(result));
        })) {}

  std::string text() const {
    if (!found) return "nothing";
    if (!found->ok()) return found->error().message;
    std::string hosts;
    for (const NumericHost& host : found->value()) hosts += to_string(host) + " ";
    return hosts;
  }

  std::unique_ptr<NameLookup> lookup;
  std::optional<NameLookup::Found> found;
};

struct Dialled {
  Dialled(Loop& loop, const std::string& host, std::uint16_t port, Duration limit = kLastResort)
      : connector(std::make_unique<HostConnector>(
            loop, host, port, loop::ConnectOptions{.limit = limit},
            [this](const std::vector<NumericHost>& hosts) { resolved = hosts; },
            [this](Result<std::unique_ptr<loop::Channel>> result) {
              connector.reset();
              connected.emplace(std::move(result));
            })) {}

  std::string error() const { return connected->ok() ? "" : connected->error().message; }

  std::unique_ptr<HostConnector> connector;
  std::vector<NumericHost> resolved;
  std::optional<Result<std::unique_ptr<loop::Channel>>> connected;
};

std::uint16_t listening_port(const os::Socket& socket) {
  const std::string address = os::local_address(socket);
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

}  // namespace

TEST_CASE("a name has the addresses that the system knows, or one line says why it has none") {
  Loop loop;
  const Asked local(loop, "localhost");
  CHECK_FALSE(local.found);  // not within the constructor
  const Asked unknown(loop, "tubed.invalid", 2s);
  REQUIRE(run_until(loop, [&] { return local.found && unknown.found; }));
  const std::string hosts = local.text();
  CHECK((hosts == "127.0.0.1 " || hosts == "::1 " || hosts == "::1 127.0.0.1 " ||
         hosts == "127.0.0.1 ::1 "));
  CHECK(unknown.text().starts_with("cannot resolve tubed.invalid: "));

  const FakeNames names;
  const Asked no_name(loop, "gone.test");
  FakeNames::set("two.test", {"10.0.0.2", "10.0.0.1", "10.0.0.2"});
  const Asked two(loop, "two.test");
  REQUIRE(run_until(loop, [&] { return no_name.found && two.found; }));
  CHECK(no_name.text() == "cannot resolve gone.test: Name or service not known");
  CHECK(two.text() == "10.0.0.2 10.0.0.1 ");
}

TEST_CASE("lookups of the same name share a thread, and a later one asks again") {
  Loop loop;
  const FakeNames names;
  FakeNames::set("a.test", {"10.0.0.1"});
  FakeNames::hold();
  const std::size_t before = FakeNames::begun();
  const Asked first(loop, "a.test");
  const Asked second(loop, "a.test");
  REQUIRE(run_until(loop, [&] { return FakeNames::begun() == before + 1; }));
  run_ticks(loop, 5);
  CHECK_FALSE(first.found);
  FakeNames::release();
  REQUIRE(run_until(loop, [&] { return first.found && second.found; }));
  CHECK(first.text() == "10.0.0.1 ");
  CHECK(second.text() == "10.0.0.1 ");
  CHECK(FakeNames::begun() == before + 1);
  FakeNames::set("a.test", {"10.0.0.9"});
  const Asked later(loop, "a.test");
  REQUIRE(run_until(loop, [&] { return later.found.has_value(); }));
  CHECK(later.text() == "10.0.0.9 ");
}

TEST_CASE("a lookup ends at its limit, and a later one has the answer that comes too late for it") {
  Loop loop;
  const FakeNames names;
  FakeNames::set("slow.test", {"10.0.0.1"});
  FakeNames::hold();
  const std::size_t before = FakeNames::begun();
  const Asked impatient(loop, "slow.test", 1ms);
  REQUIRE(run_until(loop, [&] { return impatient.found.has_value(); }));
  CHECK(impatient.text() == "cannot resolve slow.test: no answer in time");
  const Asked again(loop, "slow.test");
  FakeNames::release();
  REQUIRE(run_until(loop, [&] { return again.found.has_value(); }));
  CHECK(again.text() == "10.0.0.1 ");
  CHECK(FakeNames::begun() == before + 1);
}

TEST_CASE("an answer that no lookup waits for is kept for the next lookup of the name") {
  Loop loop;
  const FakeNames names;
  // An answer is not kept for long, and a busy machine may take longer.
  bool was_kept = false;
  for (int attempt = 0; attempt < 100 && !was_kept; ++attempt) {
    FakeNames::set("late.test", {"10.0.0.1"});
    FakeNames::hold();
    const std::size_t begun = FakeNames::begun();
    const std::size_t ended = FakeNames::ended();
    const Asked impatient(loop, "late.test", 1ms);
    REQUIRE(run_until(loop, [&] { return impatient.found && FakeNames::begun() == begun + 1; }));
    FakeNames::release();
    REQUIRE(run_until(loop, [&] { return FakeNames::ended() == ended + 1; }));
    FakeNames::set("late.test", {"10.0.0.2"});
    const Asked next(loop, "late.test");
    CHECK_FALSE(next.found);  // not within the constructor
    REQUIRE(run_until(loop, [&] { return next.found.has_value(); }));
    was_kept = FakeNames::begun() == begun + 1;
    CHECK(next.text() == (was_kept ? "10.0.0.1 " : "10.0.0.2 "));
  }
  CHECK(was_kept);
  // It is for one lookup.
  const Asked later(loop, "late.test");
  REQUIRE(run_until(loop, [&] { return later.found.has_value(); }));
  CHECK(later.text() == "10.0.0.2 ");
}

TEST_CASE("an answer that no lookup waits for is not kept for long" * doctest::test_suite("slow")) {
  Loop loop;
  const FakeNames names;
  FakeNames::set("old.test", {"10.0.0.1"});
  FakeNames::hold();
  const std::size_t begun = FakeNames::begun();
  const std::size_t ended = FakeNames::ended();
  const Asked impatient(loop, "old.test", 1ms);
  REQUIRE(run_until(loop, [&] { return impatient.found && FakeNames::begun() == begun + 1; }));
  FakeNames::release();
  REQUIRE(run_until(loop, [&] { return FakeNames::ended() == ended + 1; }));
  FakeNames::set("old.test", {"10.0.0.2"});
  const Time forgotten = os::monotonic_now() + NameLookup::kKept;
  REQUIRE(run_until(loop, [&] { return os::monotonic_now() >= forgotten; }));
  const Asked next(loop, "old.test");
  REQUIRE(run_until(loop, [&] { return next.found.has_value(); }));
  CHECK(next.text() == "10.0.0.2 ");
}

TEST_CASE("a lookup that is destroyed delivers nothing, and neither it nor the loop waits") {
  const FakeNames names;
  FakeNames::set("slow.test", {"10.0.0.1"});
  FakeNames::hold();
  {
    Loop loop;
    Asked asked(loop, "slow.test");
    Dialled dialled(loop, "slow.test", 1);
    run_ticks(loop, 2);
    asked.lookup.reset();
    dialled.connector.reset();
    run_ticks(loop, 2);
    CHECK_FALSE(asked.found);
    CHECK_FALSE(dialled.connected);
  }
  Loop loop;
  const Asked asked(loop, "slow.test");
  FakeNames::release();
  REQUIRE(run_until(loop, [&] { return asked.found.has_value(); }));
  CHECK(asked.text() == "10.0.0.1 ");
}

TEST_CASE("only so many names are looked up at a time") {
  Loop loop;
  const FakeNames names;
  FakeNames::hold();
  std::vector<std::unique_ptr<Asked>> asked;
  for (std::size_t i = 0; i < NameLookup::kMostNames; ++i)
    asked.push_back(std::make_unique<Asked>(loop, fmt::format("n{}.test", i)));
  const Asked more(loop, "more.test");
  const Asked same(loop, "n1.test");
  REQUIRE(run_until(loop, [&] { return more.found.has_value(); }));
  CHECK(more.text() == "cannot resolve more.test: too many names are being resolved");
  FakeNames::release();
  REQUIRE(run_until(loop, [&] {
    return same.found &&
           std::ranges::all_of(asked, [](const auto& one) { return one->found.has_value(); });
  }));
  const Asked later(loop, "more.test");
  REQUIRE(run_until(loop, [&] { return later.found.has_value(); }));
  CHECK(later.text() == "cannot resolve more.test: Name or service not known");
}

TEST_CASE("the addresses of a name are tried in their order, and a numeric host as it is") {
  Loop loop;
  const FakeNames names;
  const os::Socket listener = listening();
  const std::uint16_t port = listening_port(listener);
  FakeNames::set("three.test", {"127.0.0.3", "127.0.0.2", "127.0.0.1"});
  FakeNames::set("none.test", {"127.0.0.3", "127.0.0.2"});
  const std::size_t before = FakeNames::begun();
  const Dialled numeric(loop, "127.0.0.1", port);
  CHECK_FALSE(numeric.connected);
  REQUIRE(run_until(loop, [&] { return numeric.connected.has_value(); }));
  CHECK(numeric.error().empty());
  CHECK(numeric.resolved.empty());
  CHECK(FakeNames::begun() == before);

  const Dialled three(loop, "Three.TEST.", port);
  const Dialled none(loop, "none.test", port);
  const Dialled gone(loop, "gone.test", port);
  const Dialled no_host(loop, "a b", 1);
  CHECK_FALSE(no_host.connected);
  REQUIRE(run_until(loop, [&] {
    return three.connected && none.connected && gone.connected && no_host.connected;
  }));
  CHECK(three.error().empty());
  CHECK(three.resolved.size() == 3);
  CHECK(none.error() == fmt::format("cannot connect to 127.0.0.2:{}: Connection refused", port));
  CHECK(gone.error() == "cannot resolve gone.test: Name or service not known");
  CHECK(no_host.error() == "a b:1: not a numeric address");
}

TEST_CASE("an address that does not answer keeps no other from its turn") {
  Loop loop;
  const FakeNames names;
  FakeNames::set("two.test", {"127.0.0.2", "127.0.0.1"});
  // The kernel completes no more connections than the backlog holds.
  os::Socket listener;
  std::optional<os::Socket> full;
  for (int attempt = 0; attempt < 100 && !full; ++attempt) {
    listener = listening();
    auto other = os::listen_tcp("127.0.0.2", listening_port(listener), 0);
    if (other.ok()) full.emplace(std::move(*other));
  }
  REQUIRE(full.has_value());
  const std::uint16_t port = listening_port(listener);
  std::vector<os::Socket> waiting;
  for (int i = 0; i < 4; ++i) {
    auto socket = os::connect_tcp("127.0.0.2", port);
    REQUIRE(socket.ok());
    waiting.push_back(std::move(*socket));
  }
  const Dialled stuck(loop, "127.0.0.2", port, 10ms);
  REQUIRE(run_until(loop, [&] { return stuck.connected.has_value(); }));
  CHECK_FALSE(stuck.connected->ok());
  // On a busy machine the second address, too, may need more than its share of a short limit.
  std::unique_ptr<Dialled> dialled;
  for (Duration limit = 100ms; limit < kLastResort; limit *= 2) {
    dialled = std::make_unique<Dialled>(loop, "two.test", port, limit);
    REQUIRE(run_until(loop, [&] { return dialled->connected.has_value(); }));
    if (dialled->connected->ok()) break;
  }
  CHECK(dialled->error().empty());
}

}  // namespace tubed::loop_test
