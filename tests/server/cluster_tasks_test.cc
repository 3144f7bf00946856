// The tasks of a cluster on a directory: from a journal to a node and back.
#include "node/cluster_tasks.h"

#include <fstream>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster/founding.h"
#include "cluster/node_state.h"
#include "journal/import.h"
#include "node/cluster_status.h"
#include "node/journal_writer.h"
#include "node/node_directory.h"
#include "server/tasks.h"
#include "serving/skipped_ids.h"
#include "tests/disk/storage_place.h"
#include "tests/server/state_rig.h"

namespace tubed::server_test {

using node::bootstrap;
using node::DirectoryKind;
using node::kind_of;
using node::leave;
using node::recover;

namespace {

constexpr const char* kAddress = "127.0.0.1:11301";

DirectoryKind kind(const std::string& directory) {
  const auto found = kind_of(directory);
  REQUIRE_MESSAGE(found.ok(), error_of(found));
  return found.value();
}

std::string new_directory(const loop_test::Directory& place, std::string_view name = "d") {
  std::string directory = place.file(name);
  std::filesystem::create_directory(directory);
  return directory;
}

// The text that a function prints.
template <class Function>
std::string printed(const loop_test::Directory& place, Function function) {
  const std::string path = place.file("printed");
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  REQUIRE(::dup2(file, STDOUT_FILENO) >= 0);
  function();
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(file);
  return disk_test::contents_of(path);
}

// The state of a queue at some time.
struct State {
  Time now;
  engine::Lines lines;
};

State state_of(RunningNode& node) {
  node.settle();
  const Time now = node.queue_time();
  return {now, node.lines(now)};
}

// Runs a node in the directory and ends it as a crash does. The journal lacks what was added after
// its half: it is as it was then.
State run_and_lag(const std::string& directory, std::uint64_t seed) {
  loop::Loop loop;
  State state;
  const std::string half = directory + ".half";
  std::filesystem::create_directory(half);
  {
    RunningNode node(loop, directory, seed);
    node.work(200);
    node.settle();
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.is_regular_file() && entry.path().filename() != "lock")
        std::filesystem::copy(entry.path(), half);
    }
    node.work(200);
    state = state_of(node);
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) std::filesystem::remove(entry.path());
  }
  std::filesystem::copy(half, directory);
  std::filesystem::remove_all(half);
  return state;
}

}  // namespace

TEST_CASE("an empty directory becomes the first node of a cluster") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  CHECK(kind(d) == DirectoryKind::empty);
  const auto founded = bootstrap(d, "a", kAddress, kSegmentBytes);
  REQUIRE_MESSAGE(founded.ok(), error_of(founded));
  CHECK(founded->cluster != 0);
  CHECK(founded->node != 0);
  CHECK(kind(d) == DirectoryKind::node);
  loop::Loop loop;
  RunningNode node(loop, d, 1);
  CHECK(node.node().id() == founded->node);
  CHECK(node.node().cluster() == founded->cluster);
  const auto members = node.node().members();
  REQUIRE(members.size() == 1);
  CHECK(members.front().address == "a@127.0.0.1:11301");
}

TEST_CASE("a directory that is a node, or has binlogs, is not founded") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  disk_test::put_file(d + "/binlog.1", "x");
  CHECK(kind(d) == DirectoryKind::binlogs);
  CHECK(error_of(bootstrap(d, "a", kAddress, kSegmentBytes)) ==
        fmt::format("journal directory {}: it has binlogs of beanstalkd: start tubed once without "
                    "a cluster, which imports them",
                    d));
  std::filesystem::remove(d + "/binlog.1");
  disk_test::put_file(d + "/import.begun", "x");
  CHECK(kind(d) == DirectoryKind::binlogs);
  std::filesystem::remove(d + "/import.begun");
  REQUIRE(bootstrap(d, "a", kAddress, kSegmentBytes).ok());
  const auto before = files_below(d);
  CHECK(error_of(bootstrap(d, "a", kAddress, kSegmentBytes)) ==
        fmt::format("journal directory {}: it is that of a node of a cluster already", d));
  CHECK(files_below(d) == before);
  CHECK(error_of(bootstrap(d, "a", "10.0.0.300:1", kSegmentBytes)) ==
        "a@10.0.0.300:1 is not the name and the address of a node");
}

TEST_CASE("a server without a cluster refuses the directory of a node") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  CHECK(node::refuse_node(d).ok());
  founded_in(d);
  const std::string reason = fmt::format(
      "journal {}: it is that of a node of a cluster; start tubed with the settings of the node, "
      "or "
      "end that with tubed --cluster-leave",
      d);
  CHECK(error_of(node::refuse_node(d)) == reason);
  std::filesystem::rename(d + "/cluster", d + "/other");
  CHECK(node::refuse_node(d).ok());
  // In the middle of an installation.
  std::filesystem::create_directory(d + "/fetch");
  CHECK(node::refuse_node(d).ok());
  disk_test::put_file(d + "/fetch/complete", "");
  CHECK(error_of(node::refuse_node(d)) == reason);
  std::filesystem::rename(d + "/fetch/complete", d + "/fetch/moving");
  CHECK(error_of(node::refuse_node(d)) == reason);
}

TEST_CASE("a bootstrap that was interrupted is repeated") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  founded_in(d);
  // As after a crash before the state of the node was stored.
  for (const auto& entry : std::filesystem::directory_iterator(d + "/cluster")) {
    if (entry.path().filename().string().starts_with("state."))
      std::filesystem::remove(entry.path());
  }
  CHECK(kind(d) == DirectoryKind::journal);
  CHECK(error_of(leave(d, kSegmentBytes)) ==
        fmt::format("journal directory {}: it is not that of a node of a cluster", d));
  const auto founded = founded_in(d);
  loop::Loop loop;
  RunningNode node(loop, d, 1);
  CHECK(node.node().id() == founded.node);
}

TEST_CASE("a node that leaves has every job, and can found a cluster again") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  founded_in(d);
  State before;
  {
    loop::Loop loop;
    RunningNode node(loop, d, 7);
    node.work(600);
    before = state_of(node);
  }
  const auto& [now, lines] = before;
  CHECK(lines.size() > 10);
  REQUIRE(leave(d, kSegmentBytes).ok());
  CHECK(kind(d) == DirectoryKind::journal);
  CHECK_FALSE(std::filesystem::exists(d + "/cluster"));
  CHECK_FALSE(std::filesystem::exists(d + "/cluster.left"));
  CHECK(difference(lines_in(d, now), lines) == "");
  CHECK(revived(d, now).found.clean);
  CHECK(error_of(leave(d, kSegmentBytes)) ==
        fmt::format("journal directory {}: it is not that of a node of a cluster", d));

  const auto founded = founded_in(d);
  CHECK(difference(lines_in(d, now), lines) == "");
  CHECK(revived(d, now).found.applied == cluster::founding_position(founded.cluster));
  loop::Loop loop;
  RunningNode node(loop, d, 8);
  node.settle();
  CHECK(node.node().id() == founded.node);
}

TEST_CASE("a node that leaves applies what only its raft log has") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  founded_in(d);
  const auto [now, lines] = run_and_lag(d, 3);
  CHECK(difference(lines_in(d, now), lines) != "");
  REQUIRE(leave(d, kSegmentBytes).ok());
  CHECK(difference(lines_in(d, now), lines) == "");
}

TEST_CASE("leaving ends what an interrupted leaving has begun") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  founded_in(d);
  std::filesystem::rename(d + "/cluster", d + "/cluster.left");
  REQUIRE(leave(d, kSegmentBytes).ok());
  CHECK_FALSE(std::filesystem::exists(d + "/cluster.left"));
}

TEST_CASE("a node with other voters does not leave, and is recovered as another cluster") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  const auto old = founded_in(d);
  const auto [now, lines] = run_and_lag(d, 5);
  {
    loop::Loop loop;
    auto storage = disk::FileStorage::open(loop, d + "/cluster", disk::FileStorage::Mode::owner);
    REQUIRE(storage.ok());
    auto state = cluster::load_node_state(**storage);
    REQUIRE(state.ok());
    const std::string alone = (*state)->configuration;
    const auto set_members = [&](const std::vector<cluster::Member>& members) {
      const loop_test::Directory other;
      auto to = disk::FileStorage::open(loop, other.file("x"), disk::FileStorage::Mode::create);
      REQUIRE(to.ok());
      REQUIRE(cluster::found(**to, {}, 1, members).ok());
      (*state)->configuration = (*cluster::load_node_state(**to))->configuration;
    };
    set_members({{.id = old.node, .address = "a@127.0.0.1:11301"},
                 {.id = 2, .address = "b@127.0.0.1:11302"},
                 {.id = 3, .address = "c@127.0.0.1:11303"},
                 {.id = 4, .role = cluster::MemberRole::standby, .address = "d@127.0.0.1:11304"}});
    REQUIRE(cluster::store_node_state(**storage, **state).ok());
  }
  CHECK(error_of(leave(d, kSegmentBytes)) ==
        "the cluster has other voters (b, c): remove them first, or use --cluster-recover if they "
        "are lost");
  const auto next_id = revived(d, now).found.next_job_id;

  const auto recovered = recover(d, "a", kAddress, kSegmentBytes);
  REQUIRE_MESSAGE(recovered.ok(), error_of(recovered));
  CHECK(recovered->cluster != old.cluster);
  CHECK(recovered->node != old.node);
  CHECK_FALSE(std::filesystem::exists(d + "/cluster.left"));
  CHECK(difference(lines_in(d, now), lines) ==
        fmt::format("\n+removed {}", revived(d, now).found.next_job_id - 1));
  CHECK(revived(d, now).found.next_job_id >= next_id + serving::kSkippedIds);
  loop::Loop loop;
  RunningNode node(loop, d, 6);
  CHECK(node.node().cluster() == recovered->cluster);
  CHECK(node.node().members().size() == 1);
}

TEST_CASE("a recovery that was interrupted is repeated") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  const auto old = founded_in(d);
  REQUIRE(leave(d, kSegmentBytes).ok());
  CHECK_FALSE(recover(d, "a", kAddress, kSegmentBytes).ok());
  // Between the two halves of a recovery.
  std::filesystem::create_directory(d + "/cluster.left");
  const auto recovered = recover(d, "a", kAddress, kSegmentBytes);
  REQUIRE_MESSAGE(recovered.ok(), error_of(recovered));
  CHECK(recovered->cluster != old.cluster);
  CHECK(kind(d) == DirectoryKind::node);
  CHECK_FALSE(std::filesystem::exists(d + "/cluster.left"));
}

TEST_CASE("tasks refuse a directory that is in use or damaged, and change nothing") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  founded_in(d);
  {
    loop::Loop loop;
    RunningNode node(loop, d, 1);
    node.work(50);
    node.settle();
  }
  std::string raft_file;
  for (const auto& [name, contents] : files_below(d)) {
    if (name.starts_with("cluster/raft.") && contents.size() > 1000) {
      raft_file = d + "/" + name;
      break;
    }
  }
  REQUIRE_FALSE(raft_file.empty());
  std::string contents = disk_test::contents_of(raft_file);
  contents[200] ^= 1;
  disk_test::put_file(raft_file, contents);
  const auto before = files_below(d);
  CHECK(error_of(leave(d, kSegmentBytes)).find("raft.0000000002 is damaged at offset 200") !=
        std::string::npos);
  CHECK_FALSE(recover(d, "a", kAddress, kSegmentBytes).ok());
  CHECK(files_below(d) == before);
}

TEST_CASE("a cluster is shown under a number from which its identity cannot be found") {
  CHECK(node::shown_cluster(0) == 0);
  CHECK(node::shown_cluster(7) == 0xfe2af4f6bd8820b2);  // the same in each version
  CHECK(node::shown_cluster(7) != node::shown_cluster(8));
}

TEST_CASE("--check prints the position of a node") {
  const loop_test::Directory place;
  const std::string d = new_directory(place);
  const auto founded = founded_in(d);
  CommandLine line;
  line.task = Task::check;
  line.task_directory = d;
  const Settings settings;
  const auto check = [&] {
    return printed(place, [&] { CHECK(server::run_task(line, settings) == 0); });
  };
  CHECK(check().ends_with(
      fmt::format("node:        {:016x} of cluster {:016x}, in term 1\n"
                  "raft log:    no entry after 1\n"
                  "member:      {:016x} a@127.0.0.1:11301\n",
                  founded.node, node::shown_cluster(founded.cluster), founded.node)));
  cluster::Index last = 0;
  {
    loop::Loop loop;
    RunningNode node(loop, d, 1);
    node.work(20);
    node.settle();
    last = node.node().log().last();
  }
  const std::string text = check();
  CHECK(text.find(fmt::format("position:    entry {} of term 1 of a replicated log\n", last)) !=
        std::string::npos);
  CHECK(text.find(fmt::format("raft log:    entries 2 to {}, the last of term 1\n", last)) !=
        std::string::npos);
}

}  // namespace tubed::server_test
