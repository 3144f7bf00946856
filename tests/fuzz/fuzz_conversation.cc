// Fuzzes the conversation: several clients, bytes cut anywhere, time, half-closes, drain mode.
//
// The input is a script of steps, played in test mode if the highest bit of its first byte is set.
// Its next two bits choose whether clients may do everything, have a role that may use some tubes,
// or must authenticate; the roles change with drain mode. A step is a control byte, whose low two
// bits select the client and whose other bits select the action. To send bytes, a length byte and
// that many bytes follow. The queue's invariants must hold after each step. The script is played
// with several clients and with one client, each time whole and byte by byte. A single client must
// get the same replies both times. With several clients the replies may differ: a waiting client
// may be served between two bytes of another client.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test_mode/test_mode.h"
#include "tests/commands/talk.h"

namespace {

using namespace tubed;
using namespace tubed::commands;

constexpr std::size_t kClients = 4;

// How the clients of a script begin.
enum class Begin : std::uint8_t { unrestricted, with_role, with_token, as_before };

Role some_role(bool wide) {
  Role role;
  role.name = "1";  // also its token
  role.produce = true;
  role.work = true;
  role.inspect = wide;
  role.admin = wide;
  if (!wide) role.tubes = {"default", "a*"};
  role.limits = {.connections = 3, .job_bytes = 256, .put_rate = 5, .job_memory = 8192, .tubes = 5};
  return role;
}

class Play {
 public:
  Play(bool one_client, bool byte_by_byte, bool test_mode, Begin begin)
      : talk_({.job_bytes = 512,
               .job_memory_bytes = 1 << 16,
               .tubes = 8,
               .watches = 24,
               .work_per_turn = 50}),
        one_client_(one_client),
        byte_by_byte_(byte_by_byte),
        begin_(begin) {
    service_.set_roles({some_role(false)});
    talk_.host.answer_to_token = [this](std::string_view token) -> Authentication {
      if (token == "1") return Granted{.role = service_.roles().find("1")};
      if (token == "2") return RefusedLater{};
      return Refused{};
    };
    talk_.host.on_audit = [](const AuditEvent& event) {
      TUBED_ASSERT(!name_of(event.what).empty());
    };
    service_.set_limits(service_.engine().limits(), {.output_bytes = 4096});
    if (test_mode) {
      test_mode_.emplace(service_, test_mode::ClockMode::manual, kStart,
                         [this] { service_.set_draining(false); });
    }
  }

  std::array<std::string, kClients> play(std::string_view script) {
    while (!script.empty()) {
      const auto control = static_cast<std::uint8_t>(script.front());
      script.remove_prefix(1);
      const std::size_t client = one_client_ ? 0 : control % kClients;
      act(client, control / kClients, script);
      talk_.run_until_idle(clients_);
    }
    std::array<std::string, kClients> replies;
    for (std::size_t i = 0; i < kClients; ++i) {
      replies[i] = std::move(clients_[i].received);
      hide_input_memory(replies[i]);
    }
    return replies;
  }

 private:
  void act(std::size_t client, unsigned action, std::string_view& script) {
    constexpr unsigned kActions = 8;
    switch (action % kActions) {
      case 0:
        service_.begin_tick(service_.tick_time() + std::chrono::milliseconds(300));
        break;
      case 1:
        service_.begin_tick(service_.tick_time() + std::chrono::seconds(2));
        break;
      case 2:
        clients_[client].conversation.reset();
        break;
      case 3:
        if (clients_[client].conversation != nullptr) clients_[client].conversation->end_input();
        break;
      case 4:
        service_.set_draining(!service_.draining());
        service_.set_roles({some_role(service_.draining())});
        break;
      default:
        send(client, script);
        break;
    }
  }

  void send(std::size_t client, std::string_view& script) {
    if (script.empty()) return;
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(script.front()));
    script.remove_prefix(1);
    const std::string_view bytes = script.substr(0, length);
    script.remove_prefix(bytes.size());
    auto& conversation = clients_[client].conversation;
    if (conversation == nullptr) conversation = connect();
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = byte_by_byte_ ? 1 : bytes.size();
      if (conversation == nullptr) return;
      conversation->receive(bytes.substr(at, count));
      talk_.run_until_idle(clients_);
      at += count;
    }
  }

  std::unique_ptr<Conversation> connect() {
    Admission admission;
    if (begin_ == Begin::with_role) admission.role = service_.roles().find("1");
    admission.takes_tokens = begin_ == Begin::with_token;
    return std::make_unique<Conversation>(service_, std::move(admission));
  }

  // Removes the value of input-memory, which depends on how the input is cut.
  static void hide_input_memory(std::string& replies) {
    constexpr std::string_view kKey = "input-memory: ";
    for (std::size_t at = 0; (at = replies.find(kKey, at)) != std::string::npos; ++at) {
      const std::size_t digits = at + kKey.size();
      const std::size_t end = std::min(replies.find('\n', digits), replies.size());
      replies.erase(digits, end - digits);
    }
    constexpr std::string_view kBlock = "OK ";  // its length includes the digits
    for (std::size_t at = 0; (at = replies.find(kBlock, at)) != std::string::npos; ++at) {
      const std::size_t digits = at + kBlock.size();
      const std::size_t end = std::min(replies.find('\r', digits), replies.size());
      replies.erase(digits, end - digits);
    }
  }

  Talk talk_;
  Service& service_ = talk_.service;
  std::optional<test_mode::TestMode> test_mode_;
  bool one_client_;
  bool byte_by_byte_;
  Begin begin_;
  std::array<Talker, kClients> clients_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const bool test_mode = !script.empty() && (data[0] & 0x80) != 0;
  const auto begin = static_cast<Begin>(script.empty() ? 0 : data[0] >> 5 & 3);
  Play(false, false, test_mode, begin).play(script);
  Play(false, true, test_mode, begin).play(script);
  const auto whole = Play(true, false, test_mode, begin).play(script);
  const auto cut = Play(true, true, test_mode, begin).play(script);
  TUBED_ASSERT(whole == cut);
  return 0;
}
