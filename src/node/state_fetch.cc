// How a state is received
//
// The thread is in Receiver::fetch(), which is sequential:
//  1. It dials the source, whose name the loop has resolved, and the handshake (peer_handshake.h)
//     ends with a Welcome.
//  2. The files of an earlier fetch are removed, and D/fetch is created.
//  3. Each file from the source is stored when it is complete.
//  4. The copy is read as a start reads a journal. It must be whole, because a copy ends with a
//     whole batch, and must have a position. Meanwhile the source is sent signs of life.
//  5. The source is sent the position, and sends the configuration there and the entries before it.
//     A LogWriter writes them as a raft log, and checks by their chain that the copy has applied
//     the same entries, if any of them has facts.
//  6. The source and the loop are informed.
// If a step fails, D/fetch is removed. The thread has its own loop, for the background writes of
// the raft log.
#include "node/state_fetch.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cluster/entry.h"
#include "cluster/membership.h"
#include "cluster/node.h"
#include "cluster/raft_log.h"
#include "disk/directory_tree.h"
#include "disk/file_storage.h"
#include "journal/recovery.h"
#include "journal/segment.h"
#include "loop/blocking_stream.h"
#include "loop/wakeup.h"
#include "node/log_writer.h"
#include "node/state_directory.h"
#include "node/transfer_stream.h"
#include "os/clock.h"
#include "os/process.h"

namespace tubed::node {

using cluster::Index;
using disk::FileStorage;

namespace {

// The shortest interval between signs of life.
constexpr Duration kAliveInterval = std::chrono::seconds(1);
// The most memory reserved for a file before its bytes have arrived.
constexpr std::uint64_t kMostReserved = 64U << 20;

std::string_view refusal_of(cluster::WelcomeStatus status) {
  switch (status) {
    case cluster::WelcomeStatus::ok:
      return "";
    case cluster::WelcomeStatus::other_cluster:
      return "it belongs to another cluster";
    case cluster::WelcomeStatus::other_node:
      return "it is another node";
    case cluster::WelcomeStatus::waiting:
      return "it has no state itself";
    case cluster::WelcomeStatus::not_a_member:
      return "this node is no member of its cluster";
    case cluster::WelcomeStatus::busy:
      return "another node fetches its state";
    case cluster::WelcomeStatus::too_old:
      return "the cluster uses a feature level that this node does not know: upgrade this node";
    case cluster::WelcomeStatus::superseded:
      return "it is of the cluster that was recovered from the cluster of this node";
  }
  return "it refuses";
}

Error not_fetched(const cluster::MemberAddress& source, std::string_view reason,
                  Error::Kind kind = Error::Kind::other) {
  return Error{
      fmt::format("the state of {} cannot be fetched: {}", cluster::to_string(source), reason),
      kind};
}

// Reads the files of a storage until the stream is interrupted.
class InterruptibleReader final : public journal::FileReader {
 public:
  InterruptibleReader(journal::FileReader& storage, const loop::BlockingStream& stream)
      : storage_(storage), stream_(stream) {}

  Result<std::vector<journal::FileInfo>> list() override { return storage_.list(); }
  Result<journal::FileId> open(const std::string& name) override { return storage_.open(name); }
  void close(journal::FileId file) override { storage_.close(file); }
  Result<std::string> read(journal::FileId file) override {
    if (stream_.interrupted()) return Error{"stopped"};
    return storage_.read(file);
  }

 private:
  journal::FileReader& storage_;
  const loop::BlockingStream& stream_;
};

}  // namespace

class StateFetch::Receiver {
 public:
  // `hosts`: the addresses of the source, to be tried in this order.
  Receiver(loop::Loop& loop, StateFetchOptions options, std::vector<std::string> hosts, Ended ended)
      : options_(std::move(options)),
        hosts_(std::move(hosts)),
        ended_(std::move(ended)),
        stream_(options_.timeout),
        frames_(stream_),
        wakeup_(loop, [this] { woken(); }) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      result_ =
          not_fetched(options_.source, fmt::format("no thread can be started: {}", error.what()));
      wakeup_.wake();
    }
  }

  ~Receiver() {
    stream_.interrupt();
    if (thread_.joinable()) thread_.join();
    // The fetch was complete, but the host does not know.
    if (ended_ && result_ && result_->ok()) static_cast<void>(remove_fetched().ok());
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  // --- The thread

  void run();
  Result<FetchedState> fetch();
  Result<void> connect();
  Result<void> greet();
  Result<std::uint64_t> receive_files(FileStorage& storage);
  Result<void> receive_file(FileStorage& storage, const cluster::TransferFile& file);
  Result<Applied> read_journal(FileStorage& storage);
  Result<void> receive_log(FetchedState& state);
  Result<void> remove_fetched() const {
    return disk::DirectoryTree(options_.directory).remove(kFetchFolder);
  }

  // --- The loop

  void woken();

  const StateFetchOptions options_;
  const std::vector<std::string> hosts_;
  Ended ended_;                     // empty after its call
  std::optional<loop::Loop> loop_;  // of the thread
  loop::BlockingStream stream_;
  TransferStream frames_;
  std::atomic<std::uint64_t> bytes_ = 0;

  std::mutex mutex_;  // for result_
  std::optional<Result<FetchedState>> result_;

  loop::Wakeup wakeup_;
  std::thread thread_;
};

void StateFetch::Receiver::run() {
  const BytesOnHeap bodies;  // of the records that are read
  auto result = fetch();
  if (!result) {
    if (!stream_.interrupted())
      static_cast<void>(frames_.send(cluster::TransferFailure{result.error().message}).ok());
    static_cast<void>(remove_fetched().ok());  // the next start removes the rest
    result = not_fetched(options_.source, result.error().message, result.error().kind);
  }
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
  }
  wakeup_.wake();
}

Result<FetchedState> StateFetch::Receiver::fetch() {
  constexpr std::size_t kOfALoop = 16;  // including its first files
  TRY(os::expect_descriptors(kOfALoop));
  loop_.emplace();
  TRY(greet());
  TRY(remove_fetched());
  FetchedState state;
  state.cluster = options_.hello.cluster;
  {
    auto storage = TRY(FileStorage::open(*loop_, options_.directory + "/" + kFetchFolder,
                                         FileStorage::Mode::create_part));
    state.bytes = TRY(receive_files(*storage));
    state.position = TRY(read_journal(*storage));
  }
  if (state.position.index < options_.at_least) {
    return Error{fmt::format("it goes to entry {}, and this node has entries up to {}",
                             state.position.index, options_.at_least)};
  }
  TRY(receive_log(state));
  static_cast<void>(frames_.send(cluster::TransferDone{}).ok());  // complete in any case
  return state;
}

// --- Steps 1 to 4

Result<void> StateFetch::Receiver::connect() {
  Result<void> connected = Error{"it has no address"};
  for (const std::string& host : hosts_) {
    connected = stream_.connect(host, options_.source.port);
    if (connected || stream_.interrupted()) break;
  }
  return connected;
}

Result<void> StateFetch::Receiver::greet() {
  TRY(connect());
  CallerHandshake handshake(options_.security, options_.hello);
  if (handshake.tls() != nullptr) {
    const auto source = stream_.secure(handshake.tls());
    if (!source) return Error{handshake.explain_tls(source.error().message)};
    TRY(handshake.check(*source));
  }
  TRY(frames_.send_encoded(handshake.hello()));
  for (;;) {
    const auto frame = frames_.receive_bytes();
    if (!frame) return Error{handshake.explain(frame.error().message)};
    const auto step = TRY(handshake.take(*frame));
    if (!step.reply.empty()) TRY(frames_.send_encoded(step.reply));
    if (!step.welcome) continue;
    if (step.welcome->status == cluster::WelcomeStatus::ok) return {};
    return Error{std::string(refusal_of(step.welcome->status))};
  }
}

// Returns the bytes of all files.
Result<std::uint64_t> StateFetch::Receiver::receive_files(FileStorage& storage) {
  std::vector<cluster::TransferFile> files;
  for (;;) {
    auto frame = TRY(frames_.receive());
    if (const auto* file = std::get_if<cluster::TransferFile>(&frame)) {
      files.push_back(*file);
      TRY(receive_file(storage, files.back()));
    } else if (const auto* removal = std::get_if<cluster::TransferRemoval>(&frame)) {
      if (files.empty() || files.back().name != removal->name)
        return Error{"it takes a file back that it has not sent last"};
      files.pop_back();
      TRY(storage.remove_now(removal->name));
    } else if (const auto* end = std::get_if<cluster::TransferEnd>(&frame)) {
      std::uint64_t bytes = 0;
      for (const cluster::TransferFile& one : files) bytes += one.bytes;
      if (files.size() == end->files && bytes == end->bytes) return bytes;
      return Error{"it has sent other files than it reports"};
    } else {
      return Error{"it sends what it should not"};
    }
  }
}

Result<void> StateFetch::Receiver::receive_file(FileStorage& storage,
                                                const cluster::TransferFile& file) {
  if (!journal::sequence_of(file.name)) return Error{"it sends a file that is no segment"};
  std::string contents;
  contents.reserve(static_cast<std::size_t>(std::min(file.bytes, kMostReserved)));
  while (contents.size() < file.bytes) {
    auto frame = TRY(frames_.receive());
    const auto* block = std::get_if<cluster::TransferBlock>(&frame);
    if (block == nullptr || block->bytes.size() > file.bytes - contents.size())
      return Error{fmt::format("{} is not sent as it was announced", file.name)};
    contents += block->bytes;
    bytes_ += block->bytes.size();
  }
  return storage.store(file.name, contents);
}

Result<Applied> StateFetch::Receiver::read_journal(FileStorage& storage) {
  InterruptibleReader reader(storage, stream_);
  journal::IgnoreRecords records;
  Time alive_at = os::monotonic_now();
  const auto progress = [&](std::uint64_t /*done*/, std::uint64_t /*total*/) {
    if (os::monotonic_now() - alive_at < kAliveInterval) return;
    alive_at = os::monotonic_now();
    static_cast<void>(frames_.send(cluster::TransferAlive{}).ok());  // the next step fails
  };
  auto found = TRY(journal::examine(reader, {}, records, progress));
  if (found.cut) {
    return Error{
        fmt::format("{} is damaged at offset {}: {}", journal::segment_name(found.cut->segment),
                    found.cut->offset, found.cut->reason),
        Error::Kind::damaged};
  }
  if (!found.applied) return Error{"its journal has no position in the log of a cluster"};
  TRY(journal::repair(storage, found));
  return *found.applied;
}

// --- Step 5

Result<void> StateFetch::Receiver::receive_log(FetchedState& state) {
  const Index last = state.position.index;
  TRY(frames_.send(cluster::TransferPosition{state.position}));
  auto head = TRY(frames_.receive());
  auto* log = std::get_if<cluster::TransferLog>(&head);
  if (log == nullptr || log->first > last + 1 || log->configuration_index > last ||
      log->configuration_index == 0 || !cluster::decode_members(log->configuration))
    return Error{"it sends what it should not"};
  state.configuration = std::move(log->configuration);
  state.configuration_index = log->configuration_index;
  state.level = log->level;
  cluster::RaftLogOptions raft_log = options_.raft_log;
  raft_log.cluster = options_.hello.cluster;
  LogWriter writer(*loop_, options_.directory + "/" + kFetchCluster, raft_log);
  TRY(writer.open(log->first));
  while (writer.next() <= last) {
    auto frame = TRY(frames_.receive());
    const auto* piece = std::get_if<cluster::TransferEntries>(&frame);
    if (piece == nullptr || piece->first != writer.next() || piece->entries.empty() ||
        piece->entries.size() > last + 1 - piece->first)
      return Error{"it sends what it should not"};
    TRY(writer.append(piece->entries));
  }
  return writer.finish(state.position);
}

// --- The loop

void StateFetch::Receiver::woken() {
  {
    const std::lock_guard lock(mutex_);
    if (!result_ || !ended_) return;
  }
  const Ended ended = std::exchange(ended_, nullptr);
  const Result<FetchedState> result = std::move(*result_);
  ended(result);  // may destroy this object
}

// --- StateFetch

StateFetch::StateFetch(loop::Loop& loop, StateFetchOptions options, Ended ended) {
  if (!options.source.has_host_name()) {
    std::vector<std::string> hosts{options.source.host};
    receiver_ =
        std::make_unique<Receiver>(loop, std::move(options), std::move(hosts), std::move(ended));
    return;
  }
  const std::string name = options.source.host;
  const Duration limit = options.timeout;
  lookup_ = std::make_unique<loop::NameLookup>(
      loop, name, limit,
      [this, &loop, options = std::move(options),
       ended = std::move(ended)](const loop::NameLookup::Found& found) {
        // May destroy this object, and with it the lookup, but not this function.
        if (!found) return ended(not_fetched(options.source, found.error().message));
        std::vector<std::string> hosts;
        for (const NumericHost& host : *found) hosts.push_back(to_string(host));
        receiver_ = std::make_unique<Receiver>(loop, options, std::move(hosts), ended);
      });
}

StateFetch::~StateFetch() = default;

std::uint64_t StateFetch::bytes() const {
  return receiver_ == nullptr ? 0 : receiver_->bytes();
}

}  // namespace tubed::node
