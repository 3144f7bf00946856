// LineInput reads pieces of kPieceBytes into one string and returns views into it. taken_ is the
// offset of the first byte after the returned lines; the bytes before it are dropped only when more
// input is read, so a view stays valid until the next call. The memory is bounded by the longest
// allowed line plus one piece. A line that is too long is returned cut. The rest of it is dropped
// on the next call, because rest() may still need it.
#include "tubectl/files.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "client/system_error.h"

namespace tubed::tubectl {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

}  // namespace

Result<LineInput> LineInput::open(const std::string& path) {
  if (path == "-") return LineInput("standard input", os::Descriptor());
  os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return client::system_error(fmt::format("cannot open {}", path));
  return LineInput(path, std::move(file));
}

LineInput::LineInput(std::string name, os::Descriptor file)
    : name_(std::move(name)), file_(std::move(file)) {
  struct stat status {};
  stream_ = ::fstat(descriptor(), &status) != 0 || !S_ISREG(status.st_mode);
  if (stream_) return;
  // The shell may have read the beginning of standard input.
  const auto begin = ::lseek(descriptor(), 0, SEEK_CUR);
  bytes_ =
      static_cast<std::uint64_t>(std::max<off_t>(status.st_size - std::max<off_t>(begin, 0), 0));
}

int LineInput::descriptor() const {
  return file_ ? file_.number() : STDIN_FILENO;
}

Result<bool> LineInput::read() {
  drop_taken();
  const std::size_t size = input_.size();
  input_.resize(size + kPieceBytes);
  ssize_t got = 0;
  do {
    got = ::read(descriptor(), input_.data() + size, kPieceBytes);
  } while (got < 0 && errno == EINTR);
  input_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  read_ += input_.size() - size;
  if (got < 0) return client::system_error(fmt::format("cannot read {}", name_));
  return got > 0;
}

std::optional<double> LineInput::part() const {
  if (bytes_ == 0) return std::nullopt;
  const auto left = static_cast<double>(input_.size() - taken_);
  return (static_cast<double>(read_) - left) / static_cast<double>(bytes_);
}

void LineInput::drop_taken() {
  input_.erase(0, taken_);
  taken_ = 0;
}

Result<std::optional<LineInput::Line>> LineInput::next(std::size_t most) {
  TRY(drop_cut());
  std::size_t searched = 0;
  for (;;) {
    if (ends_on_stop_ && client::stop_requested()) return std::optional<Line>();
    const std::string_view input = std::string_view(input_).substr(taken_);
    const auto end = input.find('\n', searched);
    if (end <= most || input.size() > most) {
      ++number_;
      const bool too_long = end > most;
      cut_ = too_long;
      taken_ += too_long ? most : end + 1;
      return std::optional(Line{input.substr(0, too_long ? most : end), too_long});
    }
    searched = input.size();
    if (ends_on_stop_ && !TRY(client::wait_for_input_or_stop(descriptor()))) continue;
    const auto more = TRY(read());
    if (more) continue;
    if (input_.empty()) return std::optional<Line>();
    ++number_;
    taken_ = input_.size();
    return std::optional(Line{input_, false});
  }
}

Result<void> LineInput::drop_cut() {
  while (cut_) {
    const auto end = input_.find('\n', taken_);
    cut_ = end == input_.npos;
    taken_ = cut_ ? input_.size() : end + 1;
    if (!cut_) break;
    cut_ = TRY(read());
  }
  return {};
}

Result<void> LineInput::pass_over(std::uint64_t lines) {
  if (number_ >= lines) return {};
  while (number_ < lines) {
    const auto line = TRY(next(kPieceBytes));
    if (!line) break;
  }
  return drop_cut();
}

bool LineInput::ready() const {
  if (input_.find('\n', taken_) != input_.npos) return true;
  const auto readable = client::wait_for(descriptor(), POLLIN, Duration(0));
  return readable && *readable;
}

Result<void> LineInput::rest(const std::function<Result<void>(std::string_view piece)>& visit) {
  cut_ = false;
  for (;;) {
    TRY(visit(std::string_view(input_).substr(taken_)));
    taken_ = input_.size();
    const auto more = TRY(read());
    if (!more) return {};
  }
}

bool write_all(const os::Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file.number(), bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

Result<void> sync_directory_of(const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string name = slash == file.npos ? "." : file.substr(0, slash + 1);
  const os::Descriptor directory(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory && ::fsync(directory.number()) == 0) return {};
  return client::system_error(fmt::format("cannot sync the directory {}", name));
}

}  // namespace tubed::tubectl
