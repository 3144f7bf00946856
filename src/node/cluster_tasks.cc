// How a directory becomes a node, and ceases to be one
//
// The directory is a node if D/cluster has the state of a node. That state is stored last when a
// node is founded, and D/cluster is renamed as a whole when the node leaves. The next task removes
// whatever else an interrupted task has left:
//  - D/cluster without a state, from a bootstrap. The journal then has a position that belongs to
//    no raft log, and that a server without a cluster ignores.
//  - D/cluster.left, from a node that has left. If recover() finds it, it continues with
//    bootstrap().
// leave() and recover() share apply_rest(): entries that are in the raft log but not in the journal
// are written to the journal as the replica does it (cluster/replica.h), each with its position in
// one batch, so the task can be interrupted and repeated.
#include "node/cluster_tasks.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/entry.h"
#include "cluster/founding.h"
#include "cluster/member.h"
#include "cluster/membership.h"
#include "cluster/node.h"
#include "cluster/node_state.h"
#include "cluster/raft_recovery.h"
#include "disk/directory_tree.h"
#include "disk/file_storage.h"
#include "journal/binlog.h"
#include "journal/import.h"
#include "journal/record.h"
#include "journal/segment.h"
#include "node/cluster_secret.h"
#include "node/cluster_status.h"
#include "node/former_clusters.h"
#include "node/journal_writer.h"
#include "node/learned_addresses.h"
#include "node/state_directory.h"
#include "node/state_install.h"
#include "os/exit_codes.h"
#include "os/process.h"

namespace tubed::node {

using cluster::Entry;
using cluster::Index;
using cluster::Member;
using disk::DirectoryTree;
using disk::FileStorage;

namespace {

std::string cluster_part(const std::string& directory) {
  return directory + "/" + kClusterFolder;
}

// The data of a node on disk, apart from its journal.
struct NodeDisk {
  cluster::NodeState state;
  cluster::FoundRaftLog log;

  // Returns the newest configuration, committed or not.
  std::optional<std::vector<Member>> members() const {
    for (std::size_t i = log.entries.size(); i > 0; --i) {
      const Entry& entry = log.entries[i - 1];
      if (entry.type == cluster::EntryType::change)
        return cluster::decode_members(entry.data.view());
    }
    return cluster::decode_members(state.configuration);
  }
  cluster::Term term_of(Index index) const {
    return index >= log.first && index <= log.last() ? log.entries[index - log.first].term : 0;
  }
};

// Returns nothing if the directory is not a node. Changes nothing.
Result<std::optional<NodeDisk>> read_node(loop::Loop& loop, const std::string& directory,
                                          FileStorage::Mode mode) {
  const bool is_there = TRY(DirectoryTree(directory).exists(kClusterFolder));
  if (!is_there) return std::optional<NodeDisk>();
  auto storage = TRY(FileStorage::open(loop, cluster_part(directory), mode));
  auto state = TRY(cluster::read_node_state(*storage));
  if (!state) return std::optional<NodeDisk>();
  auto log = TRY(cluster::examine_raft_log(*storage, state->cluster));
  return std::optional(NodeDisk{.state = std::move(*state), .log = std::move(log)});
}

Error not_a_node(const std::string& directory) {
  return Error{
      fmt::format("journal directory {}: it is not that of a node of a cluster", directory)};
}

// --- Applying

// Passes the facts of one entry and its position to the journal.
Result<void> apply(JournalWriter& journal, Index index, const Entry& entry, Applied& applied) {
  const Applied next{.index = index,
                     .term = entry.term,
                     .chain = cluster::chain_after(applied.chain, index, entry)};
  if (entry.type == cluster::EntryType::facts) {
    const std::string_view text = entry.data.view();
    const auto header = cluster::read_entry_header(text);
    if (!header || header->chain != applied.chain) {
      return Error{fmt::format("entry {} is damaged, or of a later version of tubed", index),
                   Error::Kind::damaged};
    }
    journal.make_room(cluster::fact_bytes(text) + journal::record_bytes(Fact(next)));
    if (!cluster::read_facts(text, journal.facts()))
      return Error{fmt::format("entry {} is damaged", index), Error::Kind::damaged};
  }
  journal.facts().fact(next);
  applied = next;
  return journal.settle_if_much();
}

// Writes the entries that are in the raft log but not in the journal to the journal, and closes it.
// Everything that was ever acknowledged with this node is in the raft log, which is always synced.
Result<void> apply_rest(loop::Loop& loop, const std::string& directory, const NodeDisk& node,
                        std::uint64_t segment_bytes) {
  auto journal = TRY(JournalWriter::open(loop, directory, segment_bytes, JournalWriter::Ids::keep));
  if (!journal->position()) return Error{"the journal has no position in the log of a cluster"};
  Applied applied = *journal->position();
  const cluster::FoundRaftLog& log = node.log;
  const bool reaches = log.first <= applied.index + 1 && applied.index <= log.last();
  if (!reaches || (applied.index >= log.first && node.term_of(applied.index) != applied.term)) {
    return Error{fmt::format("the raft log has the entries {} to {}, and the journal ends after "
                             "entry {} of term {}",
                             log.first, log.last(), applied.index, applied.term),
                 Error::Kind::damaged};
  }
  for (Index index = applied.index + 1; index <= log.last(); ++index)
    TRY(apply(*journal, index, log.entries[index - log.first], applied));
  return journal->close();
}

// --- Founding

Result<void> refuse_binlogs(const std::string& directory) {
  const DirectoryKind kind = TRY(kind_of(directory));
  if (kind != DirectoryKind::binlogs) return {};
  return Error{fmt::format(
      "journal directory {}: it has binlogs of beanstalkd: start tubed once without a cluster, "
      "which imports them",
      directory)};
}

// Makes a directory that is not a node the first node of a new cluster.
Result<Founded> found_in(const std::string& directory, const cluster::MemberAddress& address,
                         std::uint64_t segment_bytes, JournalWriter::Ids ids) {
  const Founded founded{.cluster = os::random_number(), .node = os::random_number()};
  loop::Loop loop;
  {
    auto journal = TRY(JournalWriter::open(loop, directory, segment_bytes, ids));
    journal->facts().fact(cluster::founding_position(founded.cluster));
    TRY(journal->close());
  }
  TRY(DirectoryTree(directory).remove(kClusterFolder));  // left by an interrupted bootstrap
  auto storage =
      TRY(FileStorage::open(loop, cluster_part(directory), FileStorage::Mode::create_part));
  cluster::RaftLogOptions log;
  log.cluster = founded.cluster;
  const Member self{.id = founded.node,
                    .role = cluster::MemberRole::voter,
                    .address = cluster::to_string(address)};
  TRY(cluster::found(*storage, log, founded.node, {self}));
  return founded;
}

Result<cluster::MemberAddress> address_of(const std::string& name, const std::string& address) {
  const std::string text = fmt::format("{}@{}", name, address);
  auto parsed = cluster::parse_member_address(text);
  if (!parsed) return Error{fmt::format("{} is not the name and the address of a node", text)};
  return std::move(*parsed);
}

Result<void> remove_left(const std::string& directory) {
  return DirectoryTree(directory).remove(kLeftFolder);
}

// Makes the directory an ordinary journal.
Result<void> put_aside(const std::string& directory) {
  TRY(remove_left(directory));
  return DirectoryTree(directory).move(kClusterFolder, kLeftFolder);
}

}  // namespace

Result<DirectoryKind> kind_of(const std::string& directory) {
  loop::Loop loop;
  const bool is_there = TRY(DirectoryTree(directory).exists(kClusterFolder));
  if (is_there) {
    auto storage =
        TRY(FileStorage::open(loop, cluster_part(directory), FileStorage::Mode::read_only));
    const auto state = TRY(cluster::read_node_state(*storage));
    if (state) return DirectoryKind::node;
  }
  auto storage = TRY(FileStorage::open(loop, directory, FileStorage::Mode::read_only));
  auto files = TRY(storage->list());
  const auto is_binlog = [](const journal::FileInfo& file) {
    return journal::binlog_number(file.name) || file.name == journal::kImportBegun ||
           file.name == journal::kImportDone;
  };
  const auto is_segment = [](const journal::FileInfo& file) {
    return journal::sequence_of(file.name).has_value();
  };
  if (std::ranges::any_of(files, is_binlog)) return DirectoryKind::binlogs;
  const bool has_segments = std::ranges::any_of(files, is_segment);
  return has_segments ? DirectoryKind::journal : DirectoryKind::empty;
}

Result<Founded> bootstrap(const std::string& directory, const std::string& name,
                          const std::string& address, std::uint64_t segment_bytes) {
  const cluster::MemberAddress parsed = TRY(address_of(name, address));
  TRY(finish_install(directory));
  const DirectoryKind kind = TRY(kind_of(directory));
  if (kind == DirectoryKind::node) {
    return Error{
        fmt::format("journal directory {}: it is that of a node of a cluster already", directory)};
  }
  TRY(refuse_binlogs(directory));
  const Founded founded =
      TRY(found_in(directory, parsed, segment_bytes, JournalWriter::Ids::as_recovered));
  TRY(remove_left(directory));
  return founded;
}

Result<void> leave(const std::string& directory, std::uint64_t segment_bytes) {
  TRY(finish_install(directory));
  loop::Loop loop;
  const auto node = TRY(read_node(loop, directory, FileStorage::Mode::owner));
  if (!node) {
    const bool left = TRY(DirectoryTree(directory).exists(kLeftFolder));
    return left ? remove_left(directory) : Result<void>(not_a_node(directory));
  }
  const auto members = node->members();
  if (!members) return Error{"the configuration of the cluster is damaged", Error::Kind::damaged};
  std::string others;
  for (const Member& member : *members) {
    if (member.id == node->state.node || member.role != cluster::MemberRole::voter) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", cluster::name_in(member.address));
  }
  if (!others.empty()) {
    return Error{
        fmt::format("the cluster has other voters ({}): remove them first, or use "
                    "--cluster-recover if they are lost",
                    others)};
  }
  TRY(apply_rest(loop, directory, *node, segment_bytes));
  TRY(put_aside(directory));
  TRY(forget_former_clusters(directory));
  TRY(forget_learned_addresses(directory));
  return remove_left(directory);
}

Result<Founded> recover(const std::string& directory, const std::string& name,
                        const std::string& address, std::uint64_t segment_bytes) {
  const cluster::MemberAddress parsed = TRY(address_of(name, address));
  TRY(finish_install(directory));
  loop::Loop loop;
  const auto node = TRY(read_node(loop, directory, FileStorage::Mode::owner));
  if (node) {
    TRY(apply_rest(loop, directory, *node, segment_bytes));
    TRY(add_former_cluster(directory, node->state.cluster));
    TRY(forget_learned_addresses(directory));
    TRY(put_aside(directory));
  } else {
    const bool begun = TRY(DirectoryTree(directory).exists(kLeftFolder));
    if (!begun) return not_a_node(directory);
  }
  // The lost nodes may have acknowledged jobs that are missing here.
  const Founded founded = TRY(found_in(directory, parsed, segment_bytes, JournalWriter::Ids::skip));
  TRY(remove_left(directory));
  return founded;
}

Result<void> check_cluster_files(const Settings& settings) {
  TRY(ClusterSecrets::read(settings.cluster.secret_file));
  return {};
}

Result<void> print_node(const std::string& directory) {
  loop::Loop loop;
  const auto node = TRY(read_node(loop, directory, FileStorage::Mode::read_only));
  if (!node) return {};
  const cluster::FoundRaftLog& log = node->log;
  fmt::print("node:        {:016x} of cluster {:016x}, in term {}\n", node->state.node,
             shown_cluster(node->state.cluster), node->state.term);
  if (log.entries.empty()) {
    fmt::print("raft log:    no entry after {}\n", log.last());
  } else {
    fmt::print("raft log:    entries {} to {}, the last of term {}\n", log.first, log.last(),
               log.entries.back().term);
  }
  if (log.cut) {
    fmt::print("             torn at its end; {} at {}: {}\n",
               cluster::raft_file_name(log.cut->file), log.cut->offset, log.cut->reason);
  }
  if (const auto members = node->members()) {
    for (const Member& member : *members) {
      fmt::print("member:      {:016x} {}{}\n", member.id, member.address,
                 member.role == cluster::MemberRole::voter ? ""
                 : member.stays                            ? ", without a vote until promoted"
                                                           : ", without a vote");
    }
  }
  return {};
}

namespace {

Result<void> run_on_node(const CommandLine& line, const Settings& settings) {
  const std::string& directory = settings.journal_directory;
  const std::uint64_t segment_bytes = segment_bytes_in_force(settings);
  if (line.task == Task::cluster_leave) {
    TRY(leave(directory, segment_bytes));
    fmt::print("{} is the journal of a server without a cluster\n", directory);
    return {};
  }
  const ClusterSettings& own = settings.cluster;
  const std::string address = own.address.empty() ? to_string(*own.listen) : own.address;
  const bool recovers = line.task == Task::cluster_recover;
  const Founded founded = TRY(recovers ? recover(directory, own.name, address, segment_bytes)
                                       : bootstrap(directory, own.name, address, segment_bytes));
  fmt::print("cluster {:016x}, node {:016x}\n", shown_cluster(founded.cluster), founded.node);
  return {};
}

}  // namespace

int run_cluster_task(const CommandLine& line, const Settings& settings) {
  const auto fail = [](int code, const Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "tubed: {}\n", error.message);
    return code;
  };
  // The files must belong to the server's user.
  if (!settings.user.empty()) {
    if (const auto changed = os::become_user(settings.user); !changed)
      return fail(os::kExitNoUser, changed.error());
  }
  const auto done = run_on_node(line, settings);
  return done ? 0 : fail(os::kExitJournal, done.error());
}

}  // namespace tubed::node
