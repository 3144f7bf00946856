#include "tests/simulation/shorten.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

namespace tubed::simulation {

namespace {

// Processor time of a child. A life takes a second; the limit ends endless loops.
constexpr rlim_t kMostSeconds = 600;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File temporary_file() {
  File file(std::tmpfile());
  TUBED_ASSERT(file != nullptr);
  return file;
}

std::string contents_of(std::FILE* file) {
  std::string contents;
  std::array<char, 4096> buffer;
  std::rewind(file);
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), file))
    contents.append(buffer.data(), bytes);
  return contents;
}

// Returns the first line with a letter, which names the assertion or finding.
std::string first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; }))
      return std::string(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return ::strsignal(WTERMSIG(status));
  return fmt::format("the process ends with {}", WEXITSTATUS(status));
}

class Shortener {
 public:
  Shortener(const LifeOptions& options, std::vector<std::string> clients,
            const std::function<Ending(const LifeOptions&)>& live, unsigned most_lives)
      : options_(options), clients_(std::move(clients)), live_(live), most_lives_(most_lives) {
    for (std::string& client : clients_) client = Reductions::word_for(std::move(client));
  }

  Shortened run() {
    const Ending before = live_(options_);
    ++lives_;
    after_ = before;
    kind_ = kind_of(before.problem);
    for (bool again = !before.problem.empty(); again && lives_ < most_lives_;) {
      const unsigned kept = kept_;
      leave_out_clients();
      reduce(&Reductions::ends);
      if (options_.operated) reduce(&Reductions::acts);
      calm_down();
      for (const std::string& client : clients_) reduce_commands(client);
      shorten_time();
      again = kept_ > kept;
    }
    LifeOptions options = options_;
    options.most_events = 0;
    return {.options = options, .before = before, .after = after_, .lives = lives_};
  }

 private:
  enum class If : std::uint8_t { not_much_longer, not_longer, shorter };

  // Keeps the options if a life with them fails in the same way.
  bool keep(LifeOptions options, If length = If::not_longer) {
    if (lives_ >= most_lives_) return false;
    ++lives_;
    options.most_events = after_.events + (length == If::shorter ? 0 : 1);
    if (length == If::not_much_longer) options.most_events += after_.events / 4;
    Ending ending = live_(options);
    const bool is_longer = ending.events >= options.most_events;
    if (is_longer || ending.problem.empty() || kind_of(ending.problem) != kind_) return false;
    ++kept_;
    options_ = std::move(options);
    after_ = std::move(ending);
    return true;
  }

  // Omits as many items as possible, first many at once. `set` stores the remaining items in
  // options.
  template <class Item, class Set>
  void drop(std::vector<Item> items, If length, const Set& set) {
    for (std::size_t size = items.size(); size > 0; size /= 2) {
      for (std::size_t at = 0; at < items.size();) {
        std::vector<Item> rest = items;
        const auto from = rest.begin() + static_cast<std::ptrdiff_t>(at);
        rest.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, rest.size() - at)));
        LifeOptions options = options_;
        set(options, rest);
        if (keep(std::move(options), length)) {
          items = std::move(rest);
        } else {
          at += size;
        }
      }
    }
  }

  bool is_left_out(const std::string& client) const {
    return options_.reductions.left_out.contains(client);
  }

  void leave_out_clients() {
    std::vector<std::string> there;
    for (const std::string& client : clients_) {
      if (!is_left_out(client)) there.push_back(client);
    }
    drop(there, If::not_much_longer,
         [this](LifeOptions& options, const std::vector<std::string>& rest) {
           Reductions& reductions = options.reductions;
           for (const std::string& client : clients_) {
             if (std::ranges::find(rest, client) != rest.end()) continue;
             reductions.left_out.insert(client);
             reductions.commands.erase(client);
           }
         });
  }

  void reduce(Kept Reductions::*member) {
    if (!(options_.reductions.*member)) begin_reducing(member);
    const Kept kept = options_.reductions.*member;
    if (!kept) return;
    drop(std::vector(kept->begin(), kept->end()), If::not_longer,
         [member](LifeOptions& options, const std::vector<std::uint64_t>& rest) {
           options.reductions.*member = Kept(std::in_place, rest.begin(), rest.end());
         });
  }

  // Tries to keep none, or the first 1, 3, 7, …
  void begin_reducing(Kept Reductions::*member) {
    constexpr std::uint64_t kMost = 1023;
    for (std::uint64_t count = 0; count <= kMost; count = 2 * count + 1) {
      LifeOptions options = options_;
      std::set<std::uint64_t>& kept = (options.reductions.*member).emplace();
      for (std::uint64_t number = 1; number <= count; ++number) kept.insert(number);
      if (keep(std::move(options))) return;
    }
  }

  void calm_down() {
    if (options_.reductions.is_calm) return;
    LifeOptions options = options_;
    options.reductions.is_calm = true;
    keep(std::move(options));
  }

  // Tries fewer commands at the end, then at the beginning.
  void reduce_commands(const std::string& client) {
    if (is_left_out(client)) return;
    const auto keep_range = [&](const Range& range, If length) {
      LifeOptions options = options_;
      options.reductions.commands[client] = range;
      return keep(std::move(options), length);
    };
    const auto range = [&] {
      const auto found = options_.reductions.commands.find(client);
      return found == options_.reductions.commands.end() ? Range{} : found->second;
    };
    constexpr std::uint64_t kMost = 1023;
    for (std::uint64_t count = 1; count <= kMost; count = 2 * count + 1) {
      const Range fewer{.first = range().first, .last = range().first - 1 + count};
      if (fewer.last >= range().last || keep_range(fewer, If::not_longer)) break;
    }
    constexpr std::uint64_t kStep = 32;
    for (std::uint64_t step = kStep; step > 0; step /= 2) {
      while (range().last - range().first >= step &&
             keep_range({.first = range().first + step, .last = range().last}, If::shorter)) {
      }
    }
  }

  void shorten_time() {
    const auto tries = [this](Duration duration) {
      LifeOptions options = options_;
      options.duration = std::chrono::floor<std::chrono::milliseconds>(duration);
      return options.duration < options_.duration && keep(std::move(options));
    };
    while (tries(options_.duration / 2) || tries(options_.duration * 3 / 4) ||
           tries(options_.duration * 9 / 10)) {
    }
  }

  LifeOptions options_;
  std::vector<std::string> clients_;  // by their words
  const std::function<Ending(const LifeOptions&)>& live_;
  const unsigned most_lives_;
  std::string kind_;
  Ending after_;
  unsigned lives_ = 0;
  unsigned kept_ = 0;  // lives
};

}  // namespace

std::string kind_of(std::string_view problem) {
  std::string kind;
  const std::string_view text = problem.substr(0, problem.find('"'));
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  for (auto at = text.begin(); at != text.end();) {
    const auto end = is_word(static_cast<unsigned char>(*at))
                         ? std::find_if_not(at, text.end(), is_word)
                         : at + 1;
    const bool has_digit =
        std::any_of(at, end, [](unsigned char c) { return std::isdigit(c) != 0; });
    kind += has_digit ? "#" : std::string(at, end);
    at = end;
  }
  return kind;
}

Ending run_apart(const std::function<LifeReport(std::uint64_t* events)>& live) {
  const File report = temporary_file();
  const File errors = temporary_file();
  void* const shared = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TUBED_ASSERT(shared != MAP_FAILED);
  auto* const events = static_cast<std::uint64_t*>(shared);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  TUBED_ASSERT(child >= 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = kMostSeconds, .rlim_max = kMostSeconds};
    ::setrlimit(RLIMIT_CPU, &limit);
    ::dup2(::fileno(errors.get()), STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);  // a test program has a handler
    const std::string problem = live(events).problem;
    std::fwrite(problem.data(), 1, problem.size(), report.get());
    std::fflush(report.get());
    ::_exit(0);
  }
  int status = 0;
  TUBED_ASSERT(::waitpid(child, &status, 0) == child);
  Ending ending{.problem = contents_of(report.get()), .events = *events};
  ::munmap(shared, sizeof(std::uint64_t));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string reason = first_line(contents_of(errors.get()));
    ending.problem =
        reason.empty() ? end_of(status) : fmt::format("{}: {}", end_of(status), reason);
  }
  return ending;
}

Shortened shorten(const LifeOptions& options, const std::vector<std::string>& clients,
                  const std::function<Ending(const LifeOptions&)>& live, unsigned most_lives) {
  return Shortener(options, clients, live, most_lives).run();
}

Shortened shorten(std::uint64_t seed, const LifeOptions& options, unsigned most_lives) {
  const auto live_in_child = [seed](const LifeOptions& of) {
    return run_apart([&](std::uint64_t* events) {
      LifeOptions counted = of;
      counted.events_seen = events;
      counted.prints_story = false;
      return live(seed, counted);
    });
  };
  return shorten(options, clients_of(seed, options), live_in_child, most_lives);
}

}  // namespace tubed::simulation
