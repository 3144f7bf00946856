// How a state is sent
//
// The thread is in Sender::send(), which is sequential:
//  1. The greeting.
//  2. The journal: journal::back_up() reads it from a read-only FileStorage, and stores each
//     segment in a FileSender, which writes it to the connection in blocks.
//  3. The position that the receiver has found in its copy.
//  4. The entries up to there. For each piece the thread leaves a Request, wakes the loop and
//     waits; the loop's thread encodes the piece from the raft log (answer()).
//  5. The receiver's last frame: everything is on its disk.
// pace() bounds the rate of 2 and 4. It sleeps on a condition variable: a new rate and the end of
// the source take effect at once. A wait for the connection is interrupted.
#include "node/state_source.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/bytes.h"
#include "disk/file_storage.h"
#include "journal/backup.h"
#include "loop/blocking_stream.h"
#include "loop/wakeup.h"
#include "node/transfer_stream.h"
#include "os/clock.h"

namespace tubed::node {

using cluster::Index;

class StateSource::Sender {
 public:
  Sender(loop::Loop& loop, cluster::Node& node, loop::Connection connection,
         StateSourceOptions options, Ended ended)
      : loop_(loop),
        node_(node),
        options_(std::move(options)),
        ended_(std::move(ended)),
        stream_(std::move(connection), options_.timeout),
        frames_(stream_),
        rate_(options_.rate),
        paid_at_(os::monotonic_now()),
        wakeup_(loop, [this] { woken(); }) {
    node_.kept_entries().pin(node_.log().first());
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      result_ = Error{fmt::format("no thread can be started: {}", error.what())};
      wakeup_.wake();
    }
  }

  ~Sender() {
    stream_.interrupt();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (ended_) node_.kept_entries().unpin();
  }

  void set_rate(std::uint64_t rate) {
    {
      const std::lock_guard lock(mutex_);
      rate_ = rate;
    }
    changed_.notify_all();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  // The thread requests the first frame of the log, or entries.
  struct Request {
    Applied position;
    Index from = 0;  // 0: the first frame
  };
  struct Answer {
    Result<std::string> frame;
    Index next = 0;  // the entry after those in the frame
  };
  class FileSender;

  // --- The thread

  void run();
  Result<StateSent> send();
  Result<std::uint64_t> send_journal();
  Result<Applied> receive_position();
  Result<void> send_log(const Applied& position);
  Answer ask(const Request& request);
  Result<void> send_paced(std::string_view frame);
  Result<void> pace(std::uint64_t bytes);
  std::size_t block_bytes();

  // --- The loop

  void woken();
  Answer answer(const Request& request) const;

  loop::Loop& loop_;
  cluster::Node& node_;
  const StateSourceOptions options_;
  Ended ended_;  // empty after its call
  loop::BlockingStream stream_;
  TransferStream frames_;
  std::atomic<std::uint64_t> bytes_ = 0;

  std::mutex mutex_;  // for the members up to result_
  std::condition_variable changed_;
  bool stopping_ = false;
  std::uint64_t rate_;
  double debt_ = 0;  // bytes that the rate has not yet allowed at paid_at_
  Time paid_at_;
  std::optional<Request> request_;
  std::optional<Answer> answer_;
  std::optional<Result<StateSent>> result_;

  loop::Wakeup wakeup_;
  std::thread thread_;
};

// The destination of the backup. After an error, further removals have no effect: the backup takes
// back its files and then reports the error.
class StateSource::Sender::FileSender final : public journal::FileWriter {
 public:
  explicit FileSender(Sender& sender) : sender_(sender) {}

  Result<void> store(const std::string& name, std::string_view contents) override {
    auto sent = send_file(name, contents);
    failed_ = failed_ || !sent;
    return sent;
  }
  Result<void> remove_now(const std::string& name) override {
    if (failed_) return {};
    auto sent = sender_.frames_.send(cluster::TransferRemoval{name});
    failed_ = !sent;
    return sent;
  }

 private:
  Result<void> send_file(const std::string& name, std::string_view contents) {
    TRY(sender_.frames_.send(cluster::TransferFile{.bytes = contents.size(), .name = name}));
    while (!contents.empty()) {
      const std::string_view block = contents.substr(0, sender_.block_bytes());
      TRY(sender_.pace(block.size()));
      TRY(sender_.frames_.send(cluster::TransferBlock{block}));
      sender_.bytes_ += block.size();
      contents.remove_prefix(block.size());
    }
    return {};
  }

  Sender& sender_;
  bool failed_ = false;
};

void StateSource::Sender::run() {
  const BytesOnHeap bodies;  // of the records that are read
  auto result = send();
  // For the log of the other node, which may no longer be connected.
  if (!result && !stream_.interrupted())
    static_cast<void>(frames_.send(cluster::TransferFailure{result.error().message}).ok());
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
  }
  wakeup_.wake();
}

Result<StateSent> StateSource::Sender::send() {
  TRY(frames_.send_encoded(options_.greeting));
  const std::uint64_t bytes = TRY(send_journal());
  const Applied position = TRY(receive_position());
  TRY(send_log(position));
  for (;;) {
    auto frame = TRY(frames_.receive());
    if (std::holds_alternative<cluster::TransferDone>(frame))
      return StateSent{.bytes = bytes, .position = position.index};
    if (!std::holds_alternative<cluster::TransferAlive>(frame))
      return Error{"the other node sends what it should not"};
  }
}

Result<std::uint64_t> StateSource::Sender::send_journal() {
  // The storage does not use the loop, because it has no background operations.
  auto journal =
      TRY(disk::FileStorage::open(loop_, options_.directory, disk::FileStorage::Mode::read_only));
  FileSender files(*this);
  auto report = TRY(journal::back_up(*journal, files, nullptr));
  TRY(frames_.send(cluster::TransferEnd{.files = report.segments, .bytes = report.bytes}));
  return report.bytes;
}

Result<Applied> StateSource::Sender::receive_position() {
  for (;;) {
    auto frame = TRY(frames_.receive());
    if (const auto* found = std::get_if<cluster::TransferPosition>(&frame)) return found->position;
    if (!std::holds_alternative<cluster::TransferAlive>(frame))
      return Error{"the other node sends what it should not"};
  }
}

Result<void> StateSource::Sender::send_log(const Applied& position) {
  Answer piece = ask({.position = position, .from = 0});
  for (;;) {
    const std::string frame = TRY(std::move(piece.frame));
    TRY(send_paced(frame));
    if (piece.next > position.index) return {};
    piece = ask({.position = position, .from = piece.next});
  }
}

StateSource::Sender::Answer StateSource::Sender::ask(const Request& request) {
  std::unique_lock lock(mutex_);
  request_ = request;
  wakeup_.wake();
  changed_.wait(lock, [this] { return answer_ || stopping_; });
  if (stopping_) return {.frame = Error{"stopped"}};
  return std::move(*std::exchange(answer_, std::nullopt));
}

// Sends a frame of any length, in small parts if the rate is low.
Result<void> StateSource::Sender::send_paced(std::string_view frame) {
  while (!frame.empty()) {
    const std::string_view part = frame.substr(0, block_bytes());
    TRY(pace(part.size()));
    TRY(frames_.send_encoded(part));
    frame.remove_prefix(part.size());
  }
  return {};
}

// Waits until the rate allows these bytes.
Result<void> StateSource::Sender::pace(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  debt_ += static_cast<double>(bytes);
  for (;;) {
    if (stopping_) return Error{"stopped"};
    const Time now = os::monotonic_now();
    const std::chrono::duration<double> passed = now - std::exchange(paid_at_, now);
    const auto rate = static_cast<double>(rate_);
    debt_ = rate_ == 0 ? 0 : std::max(debt_ - passed.count() * rate, 0.0);
    if (debt_ <= 0) return {};
    changed_.wait_for(lock, std::chrono::duration<double>(debt_ / rate));
  }
}

// At a low rate blocks are small, so the receiver sees progress once a second.
std::size_t StateSource::Sender::block_bytes() {
  const std::lock_guard lock(mutex_);
  if (rate_ == 0) return cluster::kMostBlockBytes;
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(rate_, std::uint64_t{cluster::kMostBlockBytes}));
}

// --- The loop

void StateSource::Sender::woken() {
  std::optional<Request> request;
  std::optional<Result<StateSent>> result;
  {
    const std::lock_guard lock(mutex_);
    request = std::exchange(request_, std::nullopt);
    result = std::exchange(result_, std::nullopt);
  }
  if (request) {
    Answer made = answer(*request);
    const std::lock_guard lock(mutex_);
    answer_ = std::move(made);
    changed_.notify_all();
  }
  if (!result) return;
  node_.kept_entries().unpin();
  const Ended ended = std::exchange(ended_, nullptr);
  ended(*result);  // may destroy this object
}

StateSource::Sender::Answer StateSource::Sender::answer(const Request& request) const {
  const cluster::RaftLog& log = node_.log();
  const Applied& position = request.position;
  const Index from = request.from == 0 ? log.first() : request.from;
  if (from < log.first() || from > position.index + 1 || position.index > log.last()) {
    return {.frame = Error{fmt::format("the raft log has the entries {} to {}, and the copy of the "
                                       "journal ends after {}",
                                       log.first(), log.last(), position.index)}};
  }
  if (position.index >= log.first() && log.term_of(position.index) != position.term) {
    return {.frame = Error{fmt::format(
                "the raft log and the copy of the journal differ at entry {}", position.index)}};
  }
  // A member that has lost its disk. The leader does not send again what the member has
  // acknowledged, so the member needs a later copy.
  const Index acknowledged = node_.match(options_.receiver).value_or(0);
  if (acknowledged > position.index) {
    return {.frame = Error{fmt::format(
                "the copy of the journal ends after {}, and the other node had acknowledged {}",
                position.index, acknowledged)}};
  }
  if (request.from == 0) {
    const auto [configuration, index] = node_.configurations().at(position.index);
    return {
        .frame = cluster::encode(cluster::TransferLog{.first = log.first(),
                                                      .configuration_index = index,
                                                      .configuration = std::string(configuration),
                                                      .level = node_.level()}),
        .next = log.first()};
  }
  cluster::TransferEntries piece{.first = from, .entries = {}};
  Index next = from;
  for (std::size_t bytes = 0; next <= position.index; ++next) {
    bytes += log.at(next).data.size();
    if (bytes > cluster::kMostPieceBytes && next > from) break;
    piece.entries.push_back(log.at(next));
  }
  return {.frame = cluster::encode(piece), .next = next};
}

// --- StateSource

StateSource::StateSource(loop::Loop& loop, cluster::Node& node, loop::Connection connection,
                         StateSourceOptions options, Ended ended)
    : sender_(std::make_unique<Sender>(loop, node, std::move(connection), std::move(options),
                                       std::move(ended))) {}

StateSource::~StateSource() = default;

void StateSource::set_rate(std::uint64_t rate) {
  sender_->set_rate(rate);
}

std::uint64_t StateSource::bytes() const {
  return sender_->bytes();
}

}  // namespace tubed::node
