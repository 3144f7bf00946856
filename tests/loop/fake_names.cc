#include "tests/loop/fake_names.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <netdb.h>

namespace tubed::loop_test {

namespace {

// Never destroyed: a lookup may outlive main().
struct NameTable {
  std::mutex mutex;
  std::condition_variable released;
  std::map<std::string, std::vector<std::string>> hosts;
  bool held = false;
  std::size_t begun = 0;
  std::size_t ended = 0;
};

NameTable& names() {
  static auto& table = *new NameTable;
  return table;
}

// The thread that looks up a name ends after it has passed on the result.
struct EndOfThread {
  EndOfThread() = default;
  EndOfThread(const EndOfThread&) = delete;
  EndOfThread& operator=(const EndOfThread&) = delete;
  ~EndOfThread() {
    const std::lock_guard lock(names().mutex);
    ++names().ended;
  }
};

using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

int system_getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                       addrinfo** found) {
  static const auto function = reinterpret_cast<GetAddrInfo>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return function(node, service, hints, found);
}

int fake_getaddrinfo(const std::string& name, const addrinfo* hints, addrinfo** found) {
  thread_local const EndOfThread end_of_thread;
  NameTable& table = names();
  std::unique_lock lock(table.mutex);
  ++table.begun;
  table.released.wait(lock, [&table] { return !table.held; });
  addrinfo numeric = *hints;
  numeric.ai_flags = AI_NUMERICHOST;
  addrinfo** end = found;
  *end = nullptr;
  for (const std::string& host : table.hosts[name]) {
    if (const int code = system_getaddrinfo(host.c_str(), nullptr, &numeric, end); code != 0)
      return code;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return *found == nullptr ? EAI_NONAME : 0;
}

}  // namespace

FakeNames::FakeNames() {
  release();
}

FakeNames::~FakeNames() {
  {
    const std::lock_guard lock(names().mutex);
    names().hosts.clear();
  }
  release();
}

void FakeNames::set(const std::string& name, std::vector<std::string> hosts) {
  const std::lock_guard lock(names().mutex);
  names().hosts[name] = std::move(hosts);
}

void FakeNames::hold() {
  const std::lock_guard lock(names().mutex);
  names().held = true;
}

void FakeNames::release() {
  const std::lock_guard lock(names().mutex);
  names().held = false;
  names().released.notify_all();
}

std::size_t FakeNames::begun() {
  const std::lock_guard lock(names().mutex);
  return names().begun;
}

std::size_t FakeNames::ended() {
  const std::lock_guard lock(names().mutex);
  return names().ended;
}

}  // namespace tubed::loop_test

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using namespace tubed::loop_test;
  const bool is_fake = node != nullptr && std::string_view(node).ends_with(".test");
  return is_fake ? fake_getaddrinfo(node, hints, found)
                 : system_getaddrinfo(node, service, hints, found);
}
