#include "disk/directory_tree.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/directory_lock.h"
#include "disk/file_calls.h"
#include "os/descriptor.h"

namespace tubed::disk {

namespace {

namespace fs = std::filesystem;

Error error_of(const std::string& operation, const std::error_code& code) {
  errno = code.value();
  return as_result(failure(operation)).error();
}

// Returns the folder part of a name; "": the directory itself.
std::string folder_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

}  // namespace

std::string DirectoryTree::path_of(const std::string& name) const {
  return name.empty() ? path_ : path_ + "/" + name;
}

Result<void> DirectoryTree::step() const {
  return before_step_ ? before_step_() : Result<void>();
}

Result<void> DirectoryTree::sync_folder_of(const std::string& name) const {
  const std::string folder = path_of(folder_of(name));
  auto opened = TRY(open_directory(folder));
  return as_result(fsync_directory(opened.number(), folder));
}

Result<bool> DirectoryTree::exists(const std::string& name) const {
  std::error_code code;
  const auto status = fs::symlink_status(path_of(name), code);
  if (status.type() == fs::file_type::not_found) return false;
  if (code) return error_of("status of " + path_of(name), code);
  return true;
}

Result<std::vector<std::string>> DirectoryTree::names(const std::string& folder) const {
  std::vector<std::string> names;
  const bool there = TRY(exists(folder));
  if (!there) return names;
  std::error_code code;
  fs::directory_iterator entry(path_of(folder), code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code))
    names.push_back(entry->path().filename().string());
  if (code) return error_of("listing of " + path_of(folder), code);
  std::ranges::sort(names);
  return names;
}

Result<std::optional<std::string>> DirectoryTree::read(const std::string& name,
                                                       std::size_t most) const {
  const std::string path = path_of(name);
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::optional<std::string>();
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0)
    return as_result(failure("opening of " + path)).error();
  if (!S_ISREG(status.st_mode)) return Error{path + ": not a regular file"};
  std::string contents(most + 1, '\0');
  std::size_t bytes = 0;
  while (bytes < contents.size()) {
    const ssize_t got = retry_eintr(
        [&] { return ::read(file.number(), contents.data() + bytes, contents.size() - bytes); });
    if (got < 0) return as_result(failure("read of " + path)).error();
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  if (bytes > most) return Error{fmt::format("{}: longer than {} bytes", path, most)};
  contents.resize(bytes);
  return std::optional(std::move(contents));
}

Result<void> DirectoryTree::store(const std::string& name, std::string_view contents) {
  TRY(step());
  const std::string path = path_of(name);
  const std::string unfinished = path + ".new";
  // A new file: what an interrupted call has left, or a link in its place, is not written to.
  if (::unlink(unfinished.c_str()) != 0 && errno != ENOENT)
    return as_result(failure("removal of " + unfinished));
  const os::Descriptor file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!file) return as_result(failure("creation of " + unfinished));
  if (const auto folder = open_directory(path_of(folder_of(name))))
    give(file.number(), owner_of_new_files(folder->number()));
  TRY(as_result(write_all(file.number(), unfinished, 0, {&contents, 1})));
  TRY(as_result(sync_new_file(file.number(), unfinished)));
  TRY(step());
  if (::rename(unfinished.c_str(), path.c_str()) != 0)
    return as_result(failure(fmt::format("renaming of {} to {}", unfinished, name)));
  return sync_folder_of(name);
}

Result<void> DirectoryTree::move(const std::string& from, const std::string& to) {
  TRY(step());
  if (rename_noreplace(AT_FDCWD, path_of(from).c_str(), AT_FDCWD, path_of(to).c_str()) != 0)
    return as_result(failure(fmt::format("move of {} to {}", path_of(from), path_of(to))));
  TRY(sync_folder_of(to));
  return folder_of(from) == folder_of(to) ? Result<void>() : sync_folder_of(from);
}

Result<void> DirectoryTree::remove(const std::string& name) {
  const bool there = TRY(exists(name));
  if (!there) return {};
  TRY(remove_files(name));
  return sync_folder_of(name);
}

// Syncs no folder within the removed folder, because it is removed too.
Result<void> DirectoryTree::remove_files(const std::string& name) {
  const std::string path = path_of(name);
  std::error_code code;
  if (fs::is_directory(fs::symlink_status(path, code))) {
    auto contents = TRY(names(name));
    for (const std::string& file : contents) TRY(remove_files(name + "/" + file));
  }
  TRY(step());
  if (!fs::remove(path, code) && code) return error_of("removal of " + path, code);
  return {};
}

}  // namespace tubed::disk
