// Accepted and rejected lines for each row of the command table, generated from its schema.
#include "commands/table.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/commands/talk.h"

using namespace tubed;
using namespace tubed::commands;

namespace {

// Texts that a field of this type takes, and texts that it does not.
struct Examples {
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

Examples samples_of(std::string_view type) {
  if (type.starts_with("priority and delay")) {
    return {{"0 0", "1  2", "4294967295 4294967295", "0 500ms"},
            {"", "1", "1 x", "x 1", "-1 1", "1 4294967296", "1 2 ", "1ms 0"}};
  }
  const std::vector<std::string> not_numbers = {"-1", "+1", "x", "1x", "1.0", "", "0x1", "\t1"};
  Examples samples{{"0", "1", "007", "  2"}, not_numbers};
  if (type.find("2^64") != std::string_view::npos) {
    samples.good.push_back("18446744073709551615");
    samples.bad.push_back("18446744073709551616");
    return samples;
  }
  if (type.find("2^32") != std::string_view::npos) {
    samples.good.push_back("4294967295");
    samples.bad.push_back("4294967296");
    const bool takes_milliseconds = type.find("500ms") != std::string_view::npos;
    auto& of_milliseconds = takes_milliseconds ? samples.good : samples.bad;
    of_milliseconds.insert(of_milliseconds.end(), {"500ms", "0ms", "  4294967295000ms"});
    samples.bad.insert(samples.bad.end(), {"4294967295001ms", "5s", "ms", "5 ms", "5msx"});
    return samples;
  }
  if (type.starts_with("1 to 1000 ids")) {
    return {{"1", "1 2", "1  2", "18446744073709551615"}, {"", "x", "1 x", "-1", "1,2", "1 "}};
  }
  if (type.find("1 to 9999") != std::string_view::npos) {
    samples.good = {"1", "0042", "9999"};
    samples.bad.insert(samples.bad.end(), {"0", "10000", "4294967297"});
    return samples;
  }
  if (type.find("1 to 1000") != std::string_view::npos) {
    samples.good = {"1", "007", "1000"};
    samples.bad.insert(samples.bad.end(), {"0", "1001", "4294967297"});
    return samples;
  }
  if (constexpr std::string_view kWords = "one of: "; type.starts_with(kWords)) {
    std::istringstream words{std::string(type.substr(kWords.size()))};
    Examples examples{{}, {"", "x", "Ready", "buried,", " buried"}};
    for (std::string word; words >> word;) examples.good.push_back(word);
    return examples;
  }
  if (type.starts_with("words with spaces between")) {
    return {{"idp:k", "max:5", "ttl:0", "grp:g", "grp:g aft:g", "con:k", "con:k:5",
             "max:0:bury ttl:4294967295 idp:k", "idp:k:0", "  idp:user/42:4294967295",
             "idp:" + std::string(200, 'k')},
            {"",
             "idp",
             "idp:",
             "idp::1",
             "idp:k:",
             "idp:k:x",
             "idp:k:1:2",
             "idp:k:4294967296",
             "idp:-k",
             "idp:k idp:l",
             "idp:k ",
             "IDP:k",
             "x:k",
             "con:",
             "con:k:",
             "con:k:0",
             "con:k:x",
             "con:k:1:2",
             "con:k con:l",
             "max:",
             "max:a",
             "max:1:",
             "max:1:a:b",
             "max:1 max:2",
             "max:1:-a",
             "ttl:",
             "ttl:a",
             "ttl:1:2",
             "ttl:1 ttl:1",
             "idp:" + std::string(201, 'k')}};
  }
  if (type.starts_with("filters with a space between")) {
    return {{"body:x", "body:a%20b%0A%00", "body::=\xc3\xa9\xff", "age>0", "age<4294967295",
             "pri>7 pri<9", "failures>2", "tag:idp:k", "tag:con:k:5", "tag:max:5:bury",
             "age>1 age>2 age<9 body:a body:b tag:grp:g tag:grp:h", "body:" + repeated("%41", 200)},
            {"",
             "body",
             "body:",
             "body:%",
             "body:%4",
             "body:%4g",
             "body:a  age>1",
             "body:a ",
             "Body:a",
             "age",
             "age>",
             "age>x",
             "age>-1",
             "age>+1",
             "age=1",
             "age>=1",
             "age>1s",
             "age>4294967296",
             "pri<4294967296",
             "pri:1",
             "failures<1",
             "failures>",
             "tag:",
             "tag:idp",
             "tag:idp:",
             "tag:x:k",
             "tag:con:k:0",
             "state:ready",
             "x",
             "body:a\tb",
             "body:\x7f",
             "body:a" + repeated(" body:a", 8),
             "body:" + std::string(201, 'b'),
             "body:" + repeated("%41", 201)}};
  }
  if (type.starts_with("key of a policy")) {
    return {{"max-attempts 5", "dead t", "backoff 1:60:3", "rate 5/60", "keep -"},
            {"", "max-attempts", "max-attempts ", "max-attempts -1", "Dead t", "x 1", "rate 5",
             "backoff 9:1", "keep 2", "dead -a", "ttl 4294967296", "max-jobs 1 2"}};
  }
  if (type.starts_with("1 to 217 bytes")) {
    return {{"t", "\xc3\xa9", "~!\"#", std::string(217, 't')},
            {"", "a b", " a", "a ", "a\tb", "a\x7f", "a\rb", "a\nb", std::string(218, 't')}};
  }
  REQUIRE(type.find("tube name") != std::string_view::npos);
  return {{"a", "default", "A-Z/a+b;c.d$e_f(g)", std::string(200, 'n')},
          {"", "-a", "a\tb", "a,b", "\xc3\xa9", std::string(201, 'n')}};
}

// The longest text of a field of this type, without more spaces and zeros than are needed.
std::string longest_of(std::string_view type) {
  const std::string name(200, 'n');
  const std::string number = "4294967295";
  if (type.starts_with("words with spaces between")) {
    return "idp:" + name + ":" + number + " con:" + name + ":" + number + " grp:" + name +
           " aft:" + std::string(200, 'a') + " max:" + number + ":" + name + " ttl:" + number;
  }
  if (type.starts_with("key of a policy")) return "expired " + name;
  if (type.starts_with("filters with")) {
    return "body:" + repeated("%41", 200) + " age>" + number + " age<" + number + " pri>" + number +
           " pri<" + number + " failures>" + number;
  }
  if (type.starts_with("1 to 1000 ids")) {
    std::string ids;
    for (int i = 0; i < 1000; ++i) ids += (i == 0 ? "" : " ") + std::to_string(UINT64_MAX);
    return ids;
  }
  const auto& good = samples_of(type).good;
  std::string longest = *std::max_element(
      good.begin(), good.end(),
      [](const std::string& one, const std::string& other) { return one.size() < other.size(); });
  if (type.find("500ms") != std::string_view::npos && !type.starts_with("priority")) {
    longest = number + "000ms";
  }
  if (type.starts_with("priority and delay")) longest = number + " " + number + "000ms";
  if (type.find("integer from 1 to 1000") != std::string_view::npos) longest = "1000";
  return longest;
}

std::string longest_line_of(const Command& command) {
  std::string line(command.name);
  for (const ArgumentText& argument : command.arguments) {
    line.append(" ").append(longest_of(argument.type));
  }
  return line + "\r\n";
}

std::string line_of(const Command& command, std::size_t changed, const std::string& text) {
  std::string line(command.name);
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    // The list of the next jobs takes no filters.
    if (command.arguments[i].name == "filters" && text == "next") continue;
    const auto plain = samples_of(command.arguments[i].type).good.front();
    line.append(" ").append(i == changed ? text : plain);
  }
  return line + "\r\n";
}

bool is_error(const std::string& reply) {
  return reply.starts_with("BAD_FORMAT") || reply.starts_with("UNKNOWN_COMMAND") ||
         reply.starts_with("UNAUTHORIZED");
}

// The reply of an empty server to a line. If the line announces a body, a body is sent too.
std::string reply_to(const Command& command, const std::string& line, std::string_view body) {
  Talk talk;
  talk.host.answer_to_token = [](std::string_view token) -> Authentication {
    if (token.empty()) return Refused{};
    return Granted{};
  };
  auto client = &command == &auth_command()
                    ? std::make_unique<Conversation>(talk.service, Admission{.takes_tokens = true})
                    : talk.connect();
  client->end_input();  // a reserve then does not wait
  client->receive(line);
  if (command.begin_body != nullptr) client->receive(body);
  std::string reply = Talk::replies_of(*client);
  return client->finished() && command.name == "quit" ? "quit\r\n" : reply;
}

}  // namespace

TEST_CASE("every row is found by its name and by nothing else") {
  for (const Command& command : command_table()) {
    const bool found = &command != &auth_command();
    CHECK(find_command(command.name) == (found ? &command : nullptr));
    CHECK(find_command(std::string(command.name) + "x") == nullptr);
    CHECK(find_command(command.name.substr(1)) == nullptr);
    CHECK(&command_table()[command.counter] == &command);
  }
  CHECK(find_command("") == nullptr);
  CHECK(find_command(std::string(1000, 'a')) == nullptr);
}

TEST_CASE("every row takes what its schema says") {
  for (const Command& command : command_table()) {
    for (std::size_t i = 0; i < command.arguments.size(); ++i) {
      for (const std::string& good : samples_of(command.arguments[i].type).good) {
        // A body of 4 GiB is not made up here; JOB_TOO_BIG has transcripts of its own.
        const bool is_body = command.arguments[i].name == "bytes";
        if (is_body && good.size() > 3) continue;
        // Spaces are for numbers, and the last 24 bytes of a line for everything else.
        const std::string line = line_of(command, i, good);
        CAPTURE(line);
        const std::size_t size = is_body ? std::stoul(good) : 0;
        const std::string reply = reply_to(command, line, std::string(size, 'b') + "\r\n");
        CHECK_FALSE(reply.empty());
        CHECK_FALSE(is_error(reply));
      }
    }
    if (command.arguments.empty()) {
      CHECK_FALSE(is_error(reply_to(command, std::string(command.name) + "\r\n", "")));
    }
  }
}

TEST_CASE("every row takes its longest line, and none that is longer than its limit") {
  constexpr std::size_t kUsualLimit = 224;
  for (const Command& command : command_table()) {
    CAPTURE(command.name);
    const std::string line = longest_line_of(command);
    const std::size_t limit = std::max<std::size_t>(kUsualLimit, command.line_bytes);
    CHECK(line.size() <= limit);
    const bool is_auth = &command == &auth_command();
    Talk talk;
    talk.host.answer_to_token = [](std::string_view token) -> Authentication {
      if (token.empty()) return Refused{};
      return Granted{};
    };
    const auto connect = [&] {
      return is_auth ? std::make_unique<Conversation>(talk.service, Admission{.takes_tokens = true})
                     : talk.connect();
    };
    auto client = connect();
    client->end_input();  // a reserve then does not wait
    client->receive(line);
    const std::string reply = Talk::replies_of(*client);
    CHECK_FALSE(is_error(reply));
    const auto count = [&] { return talk.service.server_state().commands[command.counter].count; };
    CHECK(count() == 1);
    // More spaces before a number are legal, but not on a line that exceeds the limit.
    const auto number = line.find_last_of(' ');
    if (number == std::string::npos || line.size() > limit) continue;
    std::string longer = line;
    longer.insert(number, limit + 1 - line.size(), ' ');
    auto other = connect();
    other->receive(longer);
    CHECK(Talk::replies_of(*other) == (is_auth ? "UNAUTHORIZED\r\n" : "BAD_FORMAT\r\n"));
    CHECK(count() == 1);
  }
}

TEST_CASE("every row refuses what its schema does not take, and counts nothing") {
  for (const Command& command : command_table()) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < command.arguments.size(); ++i) {
      const bool may_lack = i + 1 < command.arguments.size() && command.arguments[i + 1].optional;
      for (const std::string& bad : samples_of(command.arguments[i].type).bad) {
        if (may_lack && bad.empty()) continue;  // two spaces before the next argument
        lines.push_back(line_of(command, i, bad));
      }
    }
    const std::string whole = line_of(command, SIZE_MAX, "");
    if (command.text_rule != TextRule::ignored) {
      for (const std::string junk : {" ", " x", "\t", " 1 1 1 1 1"}) {
        if (command.name == "delete-batch" && junk.size() > 2) continue;  // more ids
        lines.push_back(whole.substr(0, whole.size() - 2) + junk + "\r\n");
      }
    }
    lines.push_back(std::string(command.name) + std::string("\0", 1) + "\r\n");
    for (const std::string& line : lines) {
      CAPTURE(line);
      if (&command == &auth_command()) {
        CHECK(reply_to(command, line, "") == "UNAUTHORIZED\r\n");
        continue;
      }
      Talk talk;
      auto client = talk.connect();
      client->receive(line);
      if (command.begin_body != nullptr) client->receive("\r\n\r\n");  // a body of 0 or 1
      CHECK(is_error(Talk::replies_of(*client)));
      CHECK(talk.service.server_state().commands[command.counter].count == 0);
    }
  }
}

// Clients look these names up: no name ever changes or is removed.
TEST_CASE("capabilities lists what beanstalkd lacks, in alphabetical order") {
  constexpr std::array<std::string_view, 42> kNames = {"capabilities",
                                                       "delete-batch",
                                                       "delete-force",
                                                       "drain",
                                                       "flush-buried",
                                                       "flush-tube",
                                                       "flush-tube:state",
                                                       "kick-job:delay",
                                                       "kick-tube",
                                                       "list-clients",
                                                       "list-jobs",
                                                       "list-jobs:filter",
                                                       "move-job",
                                                       "move-jobs",
                                                       "peek-reserved",
                                                       "put-in-tube",
                                                       "put:aft",
                                                       "put:con",
                                                       "put:grp",
                                                       "put:idp",
                                                       "put:max",
                                                       "put:ttl",
                                                       "reload",
                                                       "reprioritize",
                                                       "reserve-batch",
                                                       "reserve-batch:timeout",
                                                       "reserve-mode",
                                                       "reserve-with-abort",
                                                       "set-caps",
                                                       "set-caps:1",
                                                       "set-caps:256",
                                                       "stats-group",
                                                       "stats-tube-times",
                                                       "stats-tubes",
                                                       "time:ms",
                                                       "touch-all",
                                                       "touch:seconds",
                                                       "truncate",
                                                       "tube-policy",
                                                       "undrain",
                                                       "wait",
                                                       "watch:weight"};
  std::string block = "---\n";
  for (const std::string_view name : kNames) block.append("- ").append(name).append("\n");
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "capabilities\r\n") ==
        "OK " + std::to_string(block.size()) + "\r\n" + block + "\r\n");
}

TEST_CASE("the word alone is answered as its row says") {
  for (const Command& command : command_table()) {
    Talk talk;
    auto client = talk.connect();
    const std::string reply = Talk::exchange(*client, std::string(command.name) + "\r\n");
    CAPTURE(command.name);
    if (command.text_rule == TextRule::needed) CHECK(reply == "UNKNOWN_COMMAND\r\n");
    if (command.text_rule == TextRule::needed_word_known) CHECK(reply == "BAD_FORMAT\r\n");
  }
}
