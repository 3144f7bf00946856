#include "tubectl/token.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/system_error.h"
#include "client/tls.h"
#include "os/descriptor.h"
#include "tubectl/files.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

using client::system_error;

constexpr std::string_view kTokenPrefix = "tbd_";
constexpr std::string_view kSecretPrefix = "tbc_";
constexpr std::size_t kMaxNameBytes = 64;
constexpr mode_t kOthers = 0007;

// Reads enough to find out whether the line is too long.
Result<std::string> read_beginning(int file, const std::string& name) {
  std::array<char, kMaxTokenBytes + 3> bytes{};
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
    if (got == 0) break;
    if (got > 0) {
      size += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return system_error("cannot read the token in " + name);
    }
  }
  return std::string(bytes.data(), size);
}

// The Error does not include the text, which is or was meant to be a secret.
Result<std::string> checked(std::string text, const std::string& name) {
  if (text.ends_with('\n')) text.pop_back();
  const auto no_token = [&name](std::string_view why) {
    return Error{fmt::format("{} has no token: {}", name, why)};
  };
  if (text.empty()) return no_token("it is empty");
  if (text.find('\n') != text.npos) return no_token("it has more than one line");
  if (text.size() > kMaxTokenBytes) {
    return no_token(fmt::format("its line is longer than {} bytes", kMaxTokenBytes));
  }
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; })) {
    return no_token("it has white space, or characters that are not printable ASCII");
  }
  return text;
}

// Returns the prefix and 32 random bytes in base64url.
Result<std::string> random_text(std::string_view prefix) {
  std::array<char, 32> bytes{};
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + size, bytes.size() - size, 0);
    if (got > 0) {
      size += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return system_error("the kernel has no random bytes");
    }
  }
  std::string text = to_base64({bytes.data(), bytes.size()});
  text.erase(text.find('='));
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return std::string(prefix) + text;
}

}  // namespace

Result<std::string> make_token() {
  return random_text(kTokenPrefix);
}

Result<std::string> make_cluster_secret() {
  return random_text(kSecretPrefix);
}

Result<std::string> read_token(const std::string& path) {
  if (path == "-") {
    auto text = TRY(read_beginning(STDIN_FILENO, "standard input"));
    return checked(std::move(text), "standard input");
  }
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0) {
    return system_error("cannot read the token in " + path);
  }
  if ((status.st_mode & kOthers) != 0) {
    return Error{fmt::format("the token in {} is open to other users: chmod o= {}", path, path)};
  }
  auto text = TRY(read_beginning(file.number(), path));
  return checked(std::move(text), path);
}

Result<void> write_token(const std::string& path, const std::string& token) {
  const os::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) return system_error("cannot create " + path);
  if (write_all(file, token + "\n") && ::fsync(file.number()) == 0) return {};
  auto failed = system_error("cannot write the token");
  ::unlink(path.c_str());
  return failed;
}

bool is_token_name(std::string_view name) {
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@";
  return !name.empty() && name.size() <= kMaxNameBytes &&
         name.find_first_not_of(kCharacters) == name.npos;
}

std::string token_hash(std::string_view token) {
  return "sha256:" + client::sha256_hex(token);
}

}  // namespace tubed::tubectl
