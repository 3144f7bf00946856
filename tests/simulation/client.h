// A simulated client on the wire: it connects, sends commands, some of them pipelined or in pieces,
// judges the replies, and leaves.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/listen.h"
#include "tests/simulation/commands.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

// Decides on the commands of a client, which calls it.
class Script {
 public:
  virtual ~Script() = default;

  // Returns the commands to send now, if any.
  virtual std::vector<MadeCommand> next(std::size_t unanswered) = 0;
  // `line` is the reply to the command, without its line end.
  virtual void answered(const MadeCommand& command, std::string_view line) = 0;
  // The same, with the body of the job or block that follows the line.
  virtual void answered_with(const MadeCommand& command, std::string_view line,
                             std::string_view /*content*/) {
    answered(command, line);
  }
  // Receives each job of a batch, including the last. The answer follows.
  virtual void took_of_batch(std::string_view /*line*/, std::string_view /*body*/) {}
  // Returns the first commands of a connection: it watches a tube.
  virtual std::vector<MadeCommand> first(Chance& chance);
  // The connection has ended. The server may have run any of these commands.
  virtual void lost(const std::deque<MadeCommand>& unanswered) = 0;
  // False if the client does not read now, although it may send.
  virtual bool reads() const { return true; }
  // True if a command that was made need not be sent.
  virtual bool may_skip() const { return false; }
  // True if replies arrive when the server writes them, in the order of all its writes.
  virtual bool reads_at_once() const { return false; }
  // Returns how many of a thousand turns end the connection.
  virtual unsigned leaves() const = 0;

  virtual std::uint16_t port() const { return kDefaultPort; }
  // True if the word is a valid reply to the command although its row does not list it.
  virtual bool may_also_answer(const MadeCommand&, std::string_view) const { return false; }
  // True if the server may refuse the connection because of its role.
  virtual bool may_be_refused() const { return false; }
};

class Client {
 public:
  Client(World& world, Net& net, Knowledge& known, std::string name,
         std::unique_ptr<Script> script);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Starts acting, until it is destroyed or has sent all its commands.
  void begin() { act_later(); }
  // True if a command that does not wait has been unanswered for too long.
  bool is_forgotten() const;
  const std::string& name() const { return name_; }

 private:
  void act();
  void act_later();
  std::vector<MadeCommand> next();
  void connect();
  void leave();
  void send(const std::vector<MadeCommand>& commands);
  void send_held();
  void flush();
  void read();
  bool take_reply();
  bool take_job(std::string_view words_of_line, std::size_t line_bytes);
  void answer(std::string_view line, std::string_view content = {});
  bool is_refusal(std::string_view line) const;
  bool refuse(std::size_t line_bytes);
  void count_from_now();
  void check_ticks(const MadeCommand& command);
  void check_drain(const MadeCommand& command, std::string_view word);
  bool is_reply(std::string_view word) const;
  void end_connection();
  void fail(std::string_view what, std::string_view line);

  World& world_;
  Net& net_;
  Knowledge& known_;
  const std::string name_;
  Chance chance_;
  std::unique_ptr<Script> script_;
  const Range sends_;       // of the script's commands, not counting first()
  std::uint64_t made_ = 0;  // of these commands
  std::shared_ptr<Endpoint> connection_;
  std::uint64_t queue_ = 0;  // the queue of the connection
  std::string unsent_;
  std::string held_;  // the end of a slow body
  std::string received_;
  std::deque<MadeCommand> unanswered_;
  std::optional<std::uint64_t> batch_left_;  // jobs of a RESERVED_BATCH still to come
  Time first_since_;                         // when the first unanswered command became the first
  std::uint64_t first_tick_ = 0;             // number of iterations at that time
  bool has_tubes_ = false;                   // jobs are given with the names of their tubes
  Time connected_;
  std::uint64_t process_ = 0;                              // the process of the connection
  std::uint64_t answers_ = 0;                              // on this connection
  bool refused_ = false;                                   // the connection
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // lets events check that it is
};

// Sends any commands of the table.
std::unique_ptr<Script> any_commands(const World& world, Knowledge& known, const std::string& name,
                                     std::size_t most_unanswered);

}  // namespace tubed::simulation
