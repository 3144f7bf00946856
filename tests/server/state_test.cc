// A fetch: the state of a node that runs arrives whole, or nothing of it stays.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster/transfer.h"
#include "node/state_fetch.h"
#include "node/state_install.h"
#include "tests/disk/storage_place.h"
#include "tests/server/state_transfer_rig.h"

namespace tubed::server_test {

namespace {

using namespace std::chrono_literals;

// A node "a" that runs, and a directory that fetches.
struct Two {
  explicit Two(const RunningNode::Options& options = {}) : founded(founded_in(a)) {
    std::filesystem::create_directory(b);
    node = std::make_unique<RunningNode>(loop, a, 11, options);
    node->work(300);
    node->settle();
  }

  Fetch fetch(cluster::Index at_least = 0) {
    return Fetch(loop, b, door.address(), founded.cluster, at_least);
  }
  template <class Condition>
  bool run_until(Condition condition) {
    return node->run_until(condition);
  }
  // Nothing is left.
  void check_untouched() const { CHECK(std::filesystem::is_empty(b)); }

  const loop_test::Directory directory;
  const std::string a = directory.file("a");
  const std::string b = directory.file("b");
  const node::Founded founded;
  loop::Loop loop;
  Door door{loop};
  std::unique_ptr<RunningNode> node;
};

// Passes the facts of entries to a queue.
class Replayer final : public FactSink {
 public:
  explicit Replayer(engine::Engine& engine) : engine_(engine) {}
  void apply(const cluster::Entry& entry) {
    if (entry.type != cluster::EntryType::facts) return;
    const auto header = cluster::read_entry_header(entry.data.view());
    REQUIRE(header.has_value());
    time_ = header->time;
    REQUIRE(cluster::read_facts(entry.data.view(), *this));
  }
  void fact(const Fact& fact) override { engine_.replay(time_, fact); }

 private:
  engine::Engine& engine_;
  Time time_;
};

// Checks that the state in the directory, with the entries that the node has applied since, equals
// the state of the node.
void check_equal(RunningNode& node, const std::string& directory, const node::FetchedState& state) {
  node.settle();
  const Time now = node.queue_time();
  journal::Revival copy = revived(directory, now);
  REQUIRE(copy.found.applied.has_value());
  CHECK(*copy.found.applied == state.position);
  CHECK_FALSE(copy.found.cut.has_value());
  Replayer replayer(*copy.engine);
  for (cluster::Index i = state.position.index + 1; i <= node.node().log().last(); ++i)
    replayer.apply(node.node().log().at(i));
  CHECK(difference(journal::durable_state(*copy.engine, now), node.lines(now)) == "");
}

// The raft log in the directory has the entries of the node up to the position.
void check_log(RunningNode& node, const std::string& directory, const node::FetchedState& state) {
  loop::Loop loop;
  auto storage = disk::FileStorage::open(loop, directory, disk::FileStorage::Mode::read_only);
  REQUIRE_MESSAGE(storage.ok(), error_of(storage));
  const auto log = cluster::examine_raft_log(**storage, state.cluster);
  REQUIRE_MESSAGE(log.ok(), error_of(log));
  CHECK(log->sealed);
  CHECK(log->last() == state.position.index);
  CHECK(log->first <= node.node().log().first());
  for (cluster::Index i = node.node().log().first(); i <= log->last(); ++i) {
    const cluster::Entry& entry = log->entries[i - log->first];
    CHECK(entry.term == node.node().log().at(i).term);
    CHECK(entry.type == node.node().log().at(i).type);
    CHECK(entry.data.view() == node.node().log().at(i).data.view());
  }
}

}  // namespace

TEST_CASE("the state of a node is fetched") {
  Two two;
  const node::FetchedState state = fetched(two.loop, *two.node, two.a, two.b);
  CHECK(state.cluster == two.founded.cluster);
  CHECK(state.position.index == two.node->node().log().last());
  CHECK(state.configuration_index == 1);
  CHECK(state.bytes > 0);
  check_equal(*two.node, two.b + "/fetch", state);
  check_log(*two.node, two.b + "/fetch/cluster", state);
}

TEST_CASE("the state is fetched while the journal is written and compacted") {
  Two two({.kept_entries = 64});
  const auto first_segment = [&] { return two.node->journal().stats().oldest_segment; };
  const std::uint64_t before = first_segment();
  const cluster::Index begin = two.node->node().log().first();
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 1);
  REQUIRE(two.run_until([&] {
    two.node->work(5);
    if (first_segment() > before + 4) source.set_rate(0);
    return fetch.ended() && source.ended();
  }));
  CHECK(source.error() == "");
  REQUIRE(fetch.error() == "");
  CHECK(first_segment() > before + 4);
  CHECK(source.sent().position == fetch.state().position.index);
  CHECK(source.sent().bytes == fetch.state().bytes);
  // The entries before the position were kept for it, and are cut now.
  check_log(*two.node, two.b + "/fetch/cluster", fetch.state());
  const auto log_begins = [&] { return two.node->node().log().first(); };
  two.node->work(300);
  two.node->settle();
  CHECK(log_begins() > begin);
}

TEST_CASE("a state that was fetched while it changed is whole") {
  Two two;
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 256 << 10);
  REQUIRE(two.run_until([&] {
    two.node->work(3);
    return fetch.ended() && source.ended();
  }));
  REQUIRE(fetch.error() == "");
  check_equal(*two.node, two.b + "/fetch", fetch.state());
  check_log(*two.node, two.b + "/fetch/cluster", fetch.state());
}

TEST_CASE("a rate limits a source") {
  Two two;
  Fetch fetch = two.fetch();
  const std::uint64_t rate = 400'000;
  const Time begin = os::monotonic_now();
  Source source(two.loop, *two.node, two.door.accept(), two.a, rate);
  REQUIRE(two.run_until([&] { return fetch.ended() && source.ended(); }));
  const std::chrono::duration<double> passed = os::monotonic_now() - begin;
  CHECK(fetch.error() == "");
  CHECK(passed.count() >= static_cast<double>(source.bytes()) / rate);
}

TEST_CASE("a source takes half of what a link carries, unless the setting says otherwise") {
  CHECK(node::source_rate(0, 0) == 0);
  CHECK(node::source_rate(0, 1e6) == 500'000);
  CHECK(node::source_rate(0, 0.5) == 1);
  CHECK(node::source_rate(7, 1e6) == 7);
  CHECK(node::source_rate(7, 0) == 7);
}

TEST_CASE("another rate of a source takes effect at once") {
  Two two;
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 1);
  loop_test::run_ticks(two.loop, 20);
  CHECK_FALSE(source.ended());
  source.set_rate(0);  // else the transfer takes hours
  REQUIRE(two.run_until([&] { return fetch.ended() && source.ended(); }));
  CHECK(fetch.error() == "");
  CHECK(fetch.bytes() == source.bytes());
  CHECK(fetch.state().bytes == source.sent().bytes);
}

TEST_CASE("a source that goes away in the middle leaves nothing") {
  Two two;
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 5'000);
  REQUIRE(two.run_until([&] { return fetch.bytes() > 0; }));
  CHECK(std::filesystem::exists(two.b + "/fetch"));
  source.stop();
  REQUIRE(two.run_until([&] { return fetch.ended(); }));
  // The kernel resets the connection if the source has not read a TransferAlive.
  const bool is_reset = fetch.error().ends_with("is lost");
  CHECK(fetch.error() == fmt::format("the state of {} cannot be fetched: the connection {}",
                                     cluster::to_string(two.door.address()),
                                     is_reset ? "is lost" : "was closed"));
  two.check_untouched();
}

TEST_CASE("a fetch that is stopped in the middle leaves nothing, and the source learns of it") {
  Two two;
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 5'000);
  REQUIRE(two.run_until([&] { return fetch.bytes() > 0; }));
  source.set_rate(1);
  fetch.stop();  // does not wait for the rest, which would take hours
  CHECK_FALSE(source.ended());
  two.check_untouched();
  source.set_rate(0);  // it learns of the end with the next block
  REQUIRE(two.run_until([&] { return source.ended(); }));
  CHECK(source.error().starts_with("the connection "));
}

TEST_CASE("both sides can be stopped before anything was sent") {
  Two two;
  Door door(two.loop);
  Fetch waiting(two.loop, two.b, door.address(), two.founded.cluster);
  waiting.stop();
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a);
  source.stop();
  fetch.stop();
  two.check_untouched();
}

TEST_CASE("a fetch that was complete and is given up leaves nothing") {
  Two two;
  {
    Fetch fetch = two.fetch();
    Source source(two.loop, *two.node, two.door.accept(), two.a);
    // The loop's thread does not hear of the end.
    REQUIRE(two.run_until([&] { return source.ended() || fetch.ended(); }));
    if (!fetch.ended()) fetch.stop();
  }
  REQUIRE(node::finish_install(two.b).ok());
  std::filesystem::remove(two.b + "/lock");
  two.check_untouched();
}

TEST_CASE("what an earlier fetch has left is removed") {
  Two two;
  std::filesystem::create_directories(two.b + "/fetch/cluster");
  disk_test::put_file(two.b + "/fetch/journal.0000000099", "x");
  disk_test::put_file(two.b + "/fetch/cluster/raft.0000000099", "x");
  const node::FetchedState state = fetched(two.loop, *two.node, two.a, two.b);
  CHECK_FALSE(std::filesystem::exists(two.b + "/fetch/journal.0000000099"));
  check_equal(*two.node, two.b + "/fetch", state);
}

TEST_CASE("a full disk ends a fetch with one line") {
  Two two;
  Fetch fetch = two.fetch();
  os::Socket socket = two.door.accept();
  std::optional<disk_test::FileSizeLimit> limit(8192);
  Source source(two.loop, *two.node, std::move(socket), two.a);
  // The node must not write meanwhile.
  REQUIRE(loop_test::run_until(two.loop, [&] { return fetch.ended() && source.ended(); }));
  limit.reset();
  CHECK(fetch.error().find("/fetch/journal.00000000") != std::string::npos);
  CHECK(fetch.error().ends_with("File too large"));
  CHECK(source.error().starts_with("the other node: "));
  two.check_untouched();
}

TEST_CASE("a state that goes less far than the node is refused") {
  Two two;
  Fetch fetch = two.fetch(1'000'000);
  Source source(two.loop, *two.node, two.door.accept(), two.a);
  REQUIRE(two.run_until([&] { return fetch.ended() && source.ended(); }));
  CHECK(fetch.error().ends_with(
      fmt::format("it goes to entry {}, and this node has entries up to 1000000",
                  two.node->node().log().last())));
  two.check_untouched();
}

TEST_CASE("a journal that is damaged at the source is not sent") {
  Two two;
  // Each segment but the newest, which is written: compaction may drop the oldest meanwhile.
  std::vector<std::string> segments;
  for (const auto& [name, contents] : files_below(two.a)) {
    if (name.starts_with("journal.")) segments.push_back(name);
  }
  REQUIRE(segments.size() > 1);
  segments.pop_back();
  for (const std::string& name : segments) {
    std::string contents = disk_test::contents_of(two.a + "/" + name);
    contents[contents.find_last_not_of('\0') / 2] ^= 1;  // in a record
    disk_test::put_file(two.a + "/" + name, contents);
  }
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a);
  REQUIRE(two.run_until([&] { return fetch.ended() && source.ended(); }));
  CHECK(source.error().find(" is damaged at offset") != std::string::npos);
  CHECK(fetch.error().find("the other node: journal.") != std::string::npos);
  CHECK(fetch.error().find(" is damaged") != std::string::npos);
  two.check_untouched();
}

TEST_CASE("a raft log that was cut beyond the copy ends the transfer") {
  Two two({.kept_entries = 16, .raft_log_bytes = 1000});
  cluster::Node& node = two.node->node();
  const auto newest_segment = [&] { return two.node->journal().stats().current_segment; };
  Fetch fetch = two.fetch();
  Source source(two.loop, *two.node, two.door.accept(), two.a, 1);
  // All segments that are copied are open then.
  REQUIRE(two.run_until([&] { return source.bytes() > 0; }));
  const std::uint64_t listed = newest_segment() + 4;  // with those that are allocated ahead
  REQUIRE(two.run_until([&] {
    two.node->work(20);
    return newest_segment() > listed;
  }));
  const cluster::Index copied = node.log().last();  // at most
  REQUIRE(two.run_until([&] {
    two.node->work(20);
    return node.log().first() > copied + 1;
  }));
  source.set_rate(0);
  REQUIRE(two.run_until([&] { return fetch.ended() && source.ended(); }));
  CHECK(source.error().find("and the copy of the journal ends after") != std::string::npos);
  CHECK(fetch.error().find(source.error()) != std::string::npos);
  two.check_untouched();
}

// --- A source that sends what it should not

namespace {

// The answer of a fetch to these frames, which a source sends instead of a state.
std::string answer_to(const std::vector<std::string>& frames) {
  const loop_test::Directory place;
  const std::string directory = place.file("b");
  std::filesystem::create_directory(directory);
  loop::Loop loop;
  Door door(loop);
  Fetch fetch(loop, directory, door.address(), 7);
  os::Socket socket = door.accept();
  for (const std::string& frame : frames) loop_test::write_all(socket, frame);
  loop_test::half_close(socket);
  REQUIRE(loop_test::run_until(loop, [&] { return fetch.ended(); }));
  CHECK(std::filesystem::is_empty(directory));
  const std::string prefix =
      fmt::format("the state of {} cannot be fetched: ", cluster::to_string(door.address()));
  REQUIRE(fetch.error().starts_with(prefix));
  return fetch.error().substr(prefix.size());
}

std::string welcome(cluster::WelcomeStatus status) {
  return cluster::encode(cluster::Welcome{.status = status, .name = "a"});
}

const std::string kOk = welcome(cluster::WelcomeStatus::ok);
const std::string kName = "journal.0000000001";

}  // namespace

TEST_CASE("a fetch that is not welcome says why") {
  using cluster::WelcomeStatus;
  CHECK(answer_to({welcome(WelcomeStatus::other_cluster)}) == "it belongs to another cluster");
  CHECK(answer_to({welcome(WelcomeStatus::other_node)}) == "it is another node");
  CHECK(answer_to({welcome(WelcomeStatus::waiting)}) == "it has no state itself");
  CHECK(answer_to({welcome(WelcomeStatus::busy)}) == "another node fetches its state");
  CHECK(answer_to({welcome(WelcomeStatus::not_a_member)}) ==
        "this node is no member of its cluster");
  // A node with a secret closes the connection of a node without one.
  const std::string hint =
      "; if it has a cluster.secret_file or cluster.tls, this node needs it too";
  CHECK(answer_to({"HTTP/1.1 400 Bad Request\r\n\r\n"}) == "a frame is damaged" + hint);
  CHECK(answer_to({}) == "the connection was closed" + hint);
}

TEST_CASE("a fetch takes nothing but a state") {
  using cluster::encode;
  using cluster::TransferFrame;
  const auto frame = [](const TransferFrame& value) { return encode(value); };
  const std::string file = frame(cluster::TransferFile{.bytes = 4, .name = kName});
  const std::string block = frame(cluster::TransferBlock{"body"});
  std::string damaged = block;
  damaged.back() ^= 1;
  CHECK(answer_to({kOk, file, damaged}) == "a frame is damaged");
  CHECK(answer_to({kOk, block}) == "it sends what it should not");
  CHECK(answer_to({kOk, frame(cluster::TransferFile{.bytes = 4, .name = "../passwd"})}) ==
        "it sends a file that is no segment");
  CHECK(answer_to({kOk, file, block, block}) == "it sends what it should not");
  CHECK(answer_to({kOk, file, file}) == kName + " is not sent as it was announced");
  CHECK(answer_to({kOk, file, frame(cluster::TransferBlock{"bodies"})}) ==
        kName + " is not sent as it was announced");
  CHECK(answer_to({kOk, frame(cluster::TransferRemoval{kName})}) ==
        "it takes a file back that it has not sent last");
  CHECK(answer_to({kOk, file, block, frame(cluster::TransferEnd{.files = 2, .bytes = 4})}) ==
        "it has sent other files than it reports");
  CHECK(answer_to({kOk, file, block, frame(cluster::TransferEnd{.files = 1, .bytes = 4})})
            .find(kName) == 0);
  CHECK(answer_to({kOk, frame(cluster::TransferEnd{})}) ==
        "its journal has no position in the log of a cluster");
  CHECK(answer_to({kOk, frame(cluster::TransferFailure{"no luck"})}) == "the other node: no luck");
}

TEST_CASE("a source where no process listens cannot be fetched from") {
  const loop_test::Directory place;
  loop::Loop loop;
  const Door door(loop, loop_test::refusing());
  Fetch fetch(loop, place.file(""), door.address(), 7);
  REQUIRE(loop_test::run_until(loop, [&] { return fetch.ended(); }));
  CHECK(fetch.error().ends_with("cannot connect: Connection refused"));
}

TEST_CASE("a source learns that the receiver sends what it should not") {
  Two two;
  auto pair = loop_test::connected_pair();
  const os::Socket& ours = pair.first;
  Source source(two.loop, *two.node, std::move(pair.second), two.a);
  SUBCASE("another frame") {
    loop_test::write_all(ours, cluster::encode(cluster::TransferFrame(cluster::TransferEnd{})));
  }
  SUBCASE("a failure") {
    loop_test::write_all(ours,
                         cluster::encode(cluster::TransferFrame(cluster::TransferFailure{"full"})));
  }
  SUBCASE("a position that no log has") {
    loop_test::write_all(ours, cluster::encode(cluster::TransferFrame(cluster::TransferPosition{
                                   {.index = 1'000'000, .term = 1, .chain = 1}})));
  }
  SUBCASE("a position of another term") {
    loop_test::write_all(ours, cluster::encode(cluster::TransferFrame(cluster::TransferPosition{
                                   {.index = 5, .term = 77, .chain = 1}})));
  }
  REQUIRE(two.run_until([&] {
    loop_test::read_some(ours);
    return source.ended();
  }));
  CHECK(source.error() != "");
}

}  // namespace tubed::server_test
