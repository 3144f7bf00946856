// TLS and authentication of listeners, and roles: every key of elements.cc, and what the keys need
// of one another.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

using config::Kind;
using config::Type;

constexpr std::string_view kEmpty = "is empty; for the default, leave it out";

// A listener that `key = toml` belongs to, in the third line.
std::string listener_with(std::string_view key, std::string_view toml) {
  const bool is_tls = key.starts_with("tls.") && key != "tls.certificate";
  return fmt::format("[[listen]]\naddress = \"unix:/a\"\n{} = {}\n{}", key, toml,
                     is_tls ? "tls.certificate = \"/c\"\n" : "");
}

// A role that `key = toml` belongs to, in the third line or, for name and verbs, in place of it.
std::string role_with(std::string_view key, std::string_view toml) {
  if (key == "name") return fmt::format("[[role]]\nverbs = []\nname = {}\n", toml);
  if (key == "verbs") return fmt::format("[[role]]\nname = \"worker\"\nverbs = {}\n", toml);
  return fmt::format("[[role]]\nname = \"worker\"\n{} = {}\nverbs = [\"work\"]\n", key, toml);
}

// Values of the file that are no value of the type, with a part of the reason.
std::vector<std::pair<std::string, std::string>> bad_values(const Type& type) {
  switch (type.kind) {
    case Kind::count:
    case Kind::bytes:
      return {{"0", "0 is below the minimum of 1"},
              {"9223372036854775807", "is above the maximum of "},
              {"true", ", not a boolean"},
              {"\"many\"", type.kind == Kind::count ? "not a string" : "\"many\" is not "}};
    case Kind::list: {
      std::vector<std::pair<std::string, std::string>> values{{"7", ", not an integer"},
                                                              {"[\"a\", 7]", ", not an integer"},
                                                              {"{a = 1}", ", not a table"},
                                                              {"[\"\"]", "\"\" is empty"},
                                                              {"\"a\\nb\"", "control characters"}};
      if (!type.may_be_empty) values.emplace_back("[]", kEmpty);
      return values;
    }
    case Kind::choice:
      return {{"7", ", not an integer"}, {"\"nonsense\"", "\"nonsense\" is not one of "}};
    case Kind::text:
      return {{"7", ", not an integer"},
              {"[\"a\"]", ", not an array"},
              {"\"a\\nb\"", "control characters"}};
    default:
      return {{"true", ", not a boolean"}};
  }
}

// Every value of `toml` that the file may have, which is the row's own and the bounds.
std::vector<std::string> good_values(const Type& type, std::string_view example) {
  std::vector<std::string> values{to_toml(type, value_from_text(type, example).value())};
  if (type.kind == Kind::count || type.kind == Kind::bytes) {
    values.push_back(to_toml(type, type.minimum));
    values.push_back(to_toml(type, type.maximum));
  }
  return values;
}

TEST_CASE("each key of a role takes its example and its bounds, and refuses other values") {
  for (const auto& row : config::role_table()) {
    CAPTURE(row.key);
    for (const auto& toml : good_values(row.type, row.example)) {
      CAPTURE(toml);
      const auto settings = load(role_with(row.key, toml));
      REQUIRE_MESSAGE(settings.ok(), load_error(role_with(row.key, toml)));
      REQUIRE(settings.value().roles.size() == 1);
      CHECK(to_toml(row.type, row.get(settings.value().roles[0])) == toml);
    }
    for (const auto& [toml, reason] : bad_values(row.type)) {
      const std::string shown(toml);
      CAPTURE(shown);
      const auto error = load_error(role_with(row.key, toml));
      CAPTURE(error);
      CHECK(error.starts_with(fmt::format("tubed.toml:3: role.{}: ", row.key)));
      CHECK(error.find(reason) != std::string::npos);
    }
  }
}

TEST_CASE("each key of a listener refuses other values") {
  for (const auto& row : config::listen_table()) {
    if (row.key == "address") continue;
    CAPTURE(row.key);
    for (const auto& [toml, reason] : bad_values(row.type)) {
      const std::string shown(toml);
      CAPTURE(shown);
      const auto error = load_error(listener_with(row.key, toml));
      CAPTURE(error);
      CHECK(error.starts_with(fmt::format("tubed.toml:3: listen.{}: ", row.key)));
      CHECK(error.find(reason) != std::string::npos);
    }
  }
}

// The lists and texts that may be empty allow nothing then. All others are refused, as a key that
// is left out may allow everything.
TEST_CASE("an empty list or text allows nothing, or is refused") {
  for (const auto& row : config::role_table()) {
    CAPTURE(row.key);
    if (row.type.kind != Kind::list) continue;
    const auto settings = load(role_with(row.key, "[]"));
    const bool names_clients =
        row.key == "tokens" || row.key == "subjects" || row.key == "users" || row.key == "groups";
    CHECK(settings.ok() == (names_clients || row.key == "verbs"));
    if (!settings) {
      CHECK(settings.error().message == fmt::format("tubed.toml:3: role.{}: {}", row.key, kEmpty));
      continue;
    }
    const RoleSettings& role = settings.value().roles[0];
    CHECK((role.tokens.empty() && role.subjects.empty() && role.users.empty() &&
           role.groups.empty()));
    CHECK(role.role.work == names_clients);
    CHECK((!role.role.produce && !role.role.inspect && !role.role.admin));
  }
  for (const auto& row : config::listen_table()) {
    CAPTURE(row.key);
    const bool is_list = row.type.kind == Kind::list;
    if (!is_list && row.type.kind != Kind::text) continue;
    CHECK(load_error(listener_with(row.key, is_list ? "[]" : "\"\"")) ==
          fmt::format("tubed.toml:3: listen.{}: {}", row.key, kEmpty));
  }
  for (const auto* key : {"role", "tls.certificate", "tls.key", "tls.client_ca"}) {
    CAPTURE(key);
    const auto row =
        std::ranges::find(config::settings_table(), fmt::format("http.{}", key),
                          [](const config::Setting& one) { return std::string(one.key); });
    REQUIRE(row != config::settings_table().end());
    const auto* const empty = row->type.kind == Kind::list ? "[]" : "\"\"";
    CHECK(load_error(fmt::format("[http]\n{} = {}\n", key, empty)) ==
          fmt::format("tubed.toml:2: http.{}: {}", key, kEmpty));
    const auto exit = refuse({row->flag(), ""});
    CHECK(exit.code == 78);
    CHECK(exit.text.find(fmt::format("{}: {}", row->flag(), kEmpty)) != std::string::npos);
  }
  CHECK(load("http.hosts = []\n").value() == Settings());
  CHECK(load("role = []\npolicy = []\n").value() == Settings());
}

TEST_CASE("setting one key changes no other") {
  for (const auto& row : config::role_table()) {
    CAPTURE(row.key);
    RoleSettings role;
    row.set(role, value_from_text(row.type, row.example).value());
    for (const auto& other : config::role_table()) {
      const bool is_changed = !(other.get(role) == other.get(RoleSettings()));
      CHECK(is_changed == (other.key == row.key));
    }
  }
  for (const auto& row : config::listen_table()) {
    CAPTURE(row.key);
    Listen listen;
    row.set(listen, value_from_text(row.type, row.example).value());
    for (const auto& other : config::listen_table()) {
      const bool is_changed = !(other.get(listen) == other.get(Listen()));
      CHECK(is_changed == (other.key == row.key));
    }
  }
}

TEST_CASE("words and enumerators are in the same order") {
  const auto auth = [](std::string_view word) {
    return load(fmt::format("auth.tokens = \"/t\"\n[[listen]]\naddress = \"{}\"\nauth = \"{}\"\n"
                            "tls = {{ certificate = \"/c\", client_ca = \"/d\" }}\n",
                            word == "peer" ? "unix:/a" : "10.0.0.1", word))
        .value()
        .listeners[0]
        .auth;
  };
  CHECK(auth("none") == AuthMode::none);
  CHECK(auth("token") == AuthMode::token);
  CHECK(auth("mtls") == AuthMode::mtls);
  CHECK(auth("peer") == AuthMode::peer);
  const auto version = [](std::string_view word) {
    const auto line = fmt::format("tls = {{ certificate = \"/c\", min_version = \"{}\" }}", word);
    const auto settings =
        load(fmt::format("[http]\n{}\n[[listen]]\naddress = \"::1\"\n{}\n", line, line)).value();
    CHECK(settings.http_tls.min_version == settings.listeners[0].tls.min_version);
    return settings.http_tls.min_version;
  };
  CHECK(version("1.2") == TlsVersion::v1_2);
  CHECK(version("1.3") == TlsVersion::v1_3);
  const auto role = [](std::string_view verb) {
    return load(role_with("verbs", fmt::format("\"{}\"", verb))).value().roles[0].role;
  };
  CHECK(role("produce").produce);
  CHECK(role("work").work);
  CHECK(role("inspect").inspect);
  CHECK(role("admin").admin);
  CHECK_FALSE(role("admin").inspect);
  const auto all = load(role_with("verbs", "[\"admin\", \"produce\"]")).value().roles[0].role;
  CHECK((all.produce && !all.work && !all.inspect && all.admin));
}

TEST_CASE("the TLS of a listener is an inline table, a table of its own or dotted keys") {
  for (const auto* tls :
       {"tls = { certificate = [\"/a\", \"/b\"], key = [\"/c\", \"/d\"], client_ca "
        "= \"/e\", min_version = \"1.3\" }\n",
        "[listen.tls]\ncertificate = [\"/a\", \"/b\"]\nkey = [\"/c\", \"/d\"]\n"
        "client_ca = \"/e\"\nmin_version = \"1.3\"\n",
        "tls.certificate = [\"/a\", \"/b\"]\ntls.key = [\"/c\", \"/d\"]\n"
        "tls.client_ca = \"/e\"\ntls.min_version = \"1.3\"\n"}) {
    CAPTURE(tls);
    const auto contents =
        std::string("[[listen]]\naddress = \"::1\"\n[[listen]]\naddress = \"::2\"\n") + tls +
        "[[listen]]\naddress = \"::3\"\n";
    const auto settings = load(contents);
    REQUIRE_MESSAGE(settings.ok(), load_error(contents));
    const auto& listeners = settings.value().listeners;
    REQUIRE(listeners.size() == 3);
    CHECK(listeners[1].tls == TlsSettings{{"/a", "/b"}, {"/c", "/d"}, "/e", TlsVersion::v1_3});
    CHECK_FALSE(listeners[0].tls.enabled());
    CHECK_FALSE(listeners[2].tls.enabled());
  }
  CHECK(load("[http.tls]\ncertificate = \"/a\"\n").value().http_tls.certificates ==
        std::vector<std::string>{"/a"});
}

TEST_CASE("mistakes in tables within tables") {
  const std::string listener = "[[listen]]\naddress = \"::1\"\n";
  CHECK(load_error(listener + "tls = \"/a\"\n").starts_with("tubed.toml:3: listen.tls: "));
  CHECK(load_error(listener + "tls = { certificat = \"/a\" }\n") ==
        "tubed.toml:3: listen.tls.certificat: unknown key; did you mean listen.tls.certificate?");
  CHECK(load_error(listener + "[listen.tls]\n\nkey = 7\n") ==
        "tubed.toml:5: listen.tls.key: expected an array of strings, not an integer");
  CHECK(load_error("http.tls = 7\n").starts_with("tubed.toml:1: http.tls: expected a table"));
  CHECK(load_error("[http.tls]\ncert = \"/a\"\n")
            .starts_with("tubed.toml:2: http.tls.cert: unknown"));
  CHECK(load_error("[role]\nname = \"worker\"\n") ==
        "tubed.toml:1: role: expected tables, each opened by [[role]], not a table");
  CHECK(load_error("[[role]]\nverbs = []\n") == "tubed.toml:1: role.name: missing");
  CHECK(load_error("[[role]]\nname = \"worker\"\n") == "tubed.toml:1: role.verbs: missing");
  CHECK(load_error("[[role]]\nname = \"\"\nverbs = []\n") == "tubed.toml:1: role.name: is empty");
  CHECK(load_error(role_with("token", "[\"a\"]")) ==
        "tubed.toml:3: role.token: unknown key; did you mean role.tokens?");
  CHECK(load_error(role_with("verbs", "[\"work\", \"inspekt\"]")) ==
        "tubed.toml:3: role.verbs: \"inspekt\" is not one of produce, work, inspect, admin");
}

TEST_CASE("either all certificates of a listener have keys, or no certificate") {
  const auto error = [](std::string_view tls) {
    return load_error(fmt::format("\n[[listen]]\naddress = \"10.0.0.1\"\ntls = {{ {} }}\n", tls));
  };
  const std::string place = "tubed.toml:3: listen 10.0.0.1:11300: ";
  CHECK(error("key = \"/k\"") == place + "tls.key without tls.certificate");
  CHECK(error("certificate = [], key = \"/k\"") ==
        fmt::format("tubed.toml:4: listen.tls.certificate: {}", kEmpty));
  CHECK(error("client_ca = \"/c\"") == place + "tls.client_ca without tls.certificate");
  CHECK(error("min_version = \"1.3\"") == place + "tls.min_version without tls.certificate");
  CHECK(error("certificate = [\"/a\", \"/b\"], key = \"/k\"") ==
        place + "2 files in tls.certificate and 1 in tls.key");
  CHECK(error("certificate = \"/a\", key = [\"/k\", \"/l\"]") ==
        place + "1 files in tls.certificate and 2 in tls.key");
  CHECK(error("certificate = [\"/a\", \"/b\"]") == "");
  CHECK(error("certificate = [\"/a\", \"/b\"], key = [\"/k\", \"/l\"]") == "");
}

TEST_CASE("the authentication of HTTP has what it needs") {
  const auto error = [](std::string_view http, std::string_view others = {}) {
    return load_error(fmt::format("{}[http]\n{}\n", others, http));
  };
  const auto accepted = [](std::string_view http, std::string_view others = {}) {
    return load(fmt::format("{}[http]\n{}\n", others, http)).value().http;
  };
  CHECK(error("auth = \"token\"") == "tubed.toml:2: http.auth: auth = \"token\" needs auth.tokens");
  const std::string_view tokens = "auth.tokens = \"/t\"\n";
  CHECK(accepted("auth = \"token\"", tokens).auth == AuthMode::token);
  CHECK(error("listen = \"10.0.0.1\"\nauth = \"token\"", tokens) ==
        "tubed.toml:4: http.auth: auth = \"token\" needs tls, or other machines could read the "
        "tokens on their way");
  CHECK(
      accepted("listen = \"10.0.0.1\"\nauth = \"token\"\ntls.certificate = \"/c\"", tokens).auth ==
      AuthMode::token);
  CHECK(error("auth = \"mtls\"") == "tubed.toml:2: http.auth: auth = \"mtls\" needs tls.client_ca");
  CHECK(accepted("auth = \"mtls\"\ntls = {certificate = \"/c\", client_ca = \"/d\"}").auth ==
        AuthMode::mtls);
  CHECK(error("listen = \"127.0.0.1\"\nauth = \"peer\"") ==
        "tubed.toml:3: http.auth: auth = \"peer\" needs a unix: address");
  // The address of a socket that is passed on is not known here.
  CHECK(accepted("auth = \"peer\"").auth == AuthMode::peer);
  CHECK(accepted("listen = \"unix:/a\"\nauth = \"peer\"").auth == AuthMode::peer);
  CHECK(error("role = \"none\"") == "tubed.toml:2: http.role: no [[role]] has the name \"none\"");
  CHECK(error("role = \"w\"\nauth = \"peer\"") ==
        "tubed.toml:2: http.role: role is for auth = \"none\": here [[role]] names its clients");
  CHECK(load("[http]\nrole = \"w\"\napi = \"full\"\nhosts = [\"a\"]\n[[role]]\nname = \"w\"\n"
             "verbs = \"inspect\"\n")
            .value()
            .http.role == "w");
  CHECK(accepted("api = \"off\"").api == HttpApiLevel::off);
  CHECK(accepted("api = \"read\"").api == HttpApiLevel::read);
  CHECK(accepted("api = \"full\"").api == HttpApiLevel::full);
}

TEST_CASE("a title that is too long and a color that the console does not know are refused") {
  CHECK(load("http.title = \"" + std::string(64, 'x') + "\"\n").value().http.title.size() == 64);
  CHECK(load_error("\nhttp.title = \"" + std::string(65, 'x') + "\"\n") ==
        "tubed.toml:2: http.title: \"" + std::string(65, 'x') + "\" has 65 bytes, more than 64");
  // The bound is one of bytes: these are 33 characters.
  std::string wide;
  for (int i = 0; i < 33; ++i) wide += "\xc3\xa4";
  CHECK(load_error("http.title = \"" + wide + "\"\n").ends_with(" has 66 bytes, more than 64"));
  for (const char* const good : {"red", "gray", "#000000", "#fFfFfF"}) {
    CAPTURE(good);
    CHECK(load(fmt::format("http.color = \"{}\"\n", good)).value().http.color == good);
  }
  for (const char* const bad :
       {"Red", "crimson", "#fff", "#12345g", "#1234567", "123456", " red", "#", "url(x)", "red;"}) {
    CAPTURE(bad);
    CHECK(load_error(fmt::format("[http]\ncolor = \"{}\"\n", bad)) ==
          fmt::format("tubed.toml:2: http.color: \"{}\" is neither one of red, orange, yellow, "
                      "green, teal, blue, purple, pink, brown, gray nor #rrggbb",
                      bad));
  }
  CHECK(load_error("", accept({"--http-color", "cyan"})).starts_with("--http-color: \"cyan\""));
  CHECK(
      load_error("", accept({"--http-title", std::string(65, 'x')})).starts_with("--http-title: "));
}

TEST_CASE("patterns that match no tube and hosts that no request names are refused") {
  for (const std::string bad : {"mail.*,sms.*", "mail *", "-mail*", "mail[.]x[", "ma\xc3\xafl",
                                "mail\\\\", "a:b", "\\\\ ", "*/x\\\\"}) {
    CAPTURE(bad);
    const auto error = load_error(role_with("tubes", fmt::format("[\"mail\", \"{}\"]", bad)));
    CHECK(error.starts_with("tubed.toml:1: role.tubes: \""));
    CHECK(error.ends_with("\" matches the name of no tube"));
    CHECK(load_error(fmt::format("[[policy]]\ntubes = \"{}\"\nmax-jobs = 1\n", bad))
              .ends_with("\" matches the name of no tube"));
  }
  const std::string long_name(201, 'a');
  CHECK(load_error(role_with("tubes", fmt::format("\"{}\"", long_name))) != "");
  CHECK(load_error(role_with("tubes", fmt::format("\"{}*\"", long_name.substr(1)))) == "");
  for (const auto* good :
       {"*", "mail.*", "[a-c]?", "[!-]*", "[]]", "a\\\\.b", "default", "$(x);/+_"}) {
    CAPTURE(good);
    CHECK(load_error(role_with("tubes", fmt::format("\"{}\"", good))) == "");
  }
  for (const auto* bad : {"https://queue", "queue:80", "queue.", "a b", "*.example", "[::1]"}) {
    CAPTURE(bad);
    CHECK(load_error(fmt::format("\nhttp.hosts = [\"a\", \"{}\"]\n", bad)) ==
          fmt::format("tubed.toml:2: http.hosts: \"{}\" is not the name of a host, which has "
                      "neither a scheme nor a port",
                      bad));
  }
  CHECK(load_error("http.hosts = [\"queue\", \"a-b_c.Example\"]\n") == "");
}

TEST_CASE("either all certificates of HTTP have keys, or no certificate") {
  CHECK(load_error("[http]\n\ntls.key = \"/k\"\n") ==
        "tubed.toml:3: http.tls.key: tls.key without tls.certificate");
  CHECK(load_error("http.tls.client_ca = \"/k\"\n") ==
        "tubed.toml:1: http.tls.client_ca: tls.client_ca without tls.certificate");
  CHECK(load_error("http.tls.min_version = \"1.3\"\n") ==
        "tubed.toml:1: http.tls.min_version: tls.min_version without tls.certificate");
  CHECK(load_error("[http.tls]\ncertificate = \"/a\"\nkey = [\"/k\", \"/l\"]\n") ==
        "tubed.toml:2: http.tls.certificate: 1 files in tls.certificate and 2 in tls.key");
  CHECK(load_error("", accept({"--http-tls-key", "/k"})) ==
        "--http-tls-key: tls.key without tls.certificate");
  CHECK(load_error("", accept({"--http-tls-key", "/k,/l", "--http-tls-certificate", "/a,/b"})) ==
        "");
}

TEST_CASE("tokens need their file, and TLS wherever other machines are") {
  const auto error = [](std::string_view address, std::string_view more, bool has_file = true) {
    return load_error(fmt::format("{}[[listen]]\naddress = \"{}\"\nauth = \"token\"\n{}",
                                  has_file ? "auth.tokens = \"/t\"\n" : "\n", address, more));
  };
  CHECK(error("unix:/a", "", false) ==
        "tubed.toml:3: listen unix:/a: auth = \"token\" needs auth.tokens");
  CHECK(error("10.0.0.1", "") ==
        "tubed.toml:3: listen 10.0.0.1:11300: auth = \"token\" needs tls, or other machines could "
        "read the tokens on their way");
  CHECK(error("0.0.0.0", "").starts_with("tubed.toml:3: listen 0.0.0.0:11300: auth = \"token\""));
  CHECK(error("::", "").starts_with("tubed.toml:3: listen [::]:11300: auth = \"token\" needs tls"));
  CHECK(error("10.0.0.1", "tls.certificate = \"/c\"\n") == "");
  CHECK(error("127.0.0.1", "") == "");
  CHECK(error("::1", "") == "");
  CHECK(error("unix:/a", "") == "");
  CHECK(error("unix:/a", "role = \"worker\"\n") ==
        "tubed.toml:3: listen unix:/a: role is for auth = \"none\": here [[role]] names its "
        "clients");
  CHECK(load_error("[[listen]]\naddress = \"unix:/a\"\nauth = \"token\"\n",
                   accept({"--auth-tokens", "/t"})) == "");
}

TEST_CASE("certificates of clients need an authority, and users a unix socket") {
  const auto error = [](std::string_view listener) {
    return load_error(fmt::format("[[listen]]\n{}\n", listener));
  };
  CHECK(error("address = \"10.0.0.1\"\nauth = \"mtls\"") ==
        "tubed.toml:2: listen 10.0.0.1:11300: auth = \"mtls\" needs tls.client_ca");
  CHECK(error("address = \"10.0.0.1\"\nauth = \"mtls\"\ntls.certificate = \"/c\"") ==
        "tubed.toml:2: listen 10.0.0.1:11300: auth = \"mtls\" needs tls.client_ca");
  CHECK(
      error(
          "address = \"::1\"\nauth = \"mtls\"\ntls.certificate = \"/c\"\ntls.client_ca = \"/d\"") ==
      "");
  CHECK(error("address = \"127.0.0.1\"\nauth = \"peer\"") ==
        "tubed.toml:2: listen 127.0.0.1:11300: auth = \"peer\" needs a unix: address");
  CHECK(error("address = \"unix:/a\"\nauth = \"peer\"") == "");
  CHECK(error("address = \"unix:/a\"\nauth = \"peer\"\nrole = \"x\"") ==
        "tubed.toml:2: listen unix:/a: role is for auth = \"none\": here [[role]] names its "
        "clients");
}

TEST_CASE("the role of a listener is one of the roles") {
  const std::string listener = "[[listen]]\naddress = \"10.0.0.1\"\nrole = \"worker\"\n";
  CHECK(load_error(listener) ==
        "tubed.toml:2: listen 10.0.0.1:11300: no [[role]] has the name \"worker\"");
  CHECK(load_error(listener + "[[role]]\nname = \"work\"\nverbs = []\n") ==
        "tubed.toml:2: listen 10.0.0.1:11300: no [[role]] has the name \"worker\"");
  CHECK(load_error(listener + "[[role]]\nname = \"worker\"\nverbs = []\n") == "");
  // With the listeners of flags, the file's are not used.
  CHECK(load_error(listener, accept({"-l", "10.0.0.1"})) == "");
}

TEST_CASE("a name is of one role, and a client is in one role") {
  const auto roles = [](std::string_view first, std::string_view second) {
    return load_error(
        fmt::format("[[role]]\nname = \"one\"\nverbs = []\n{}\n[[role]]\n"
                    "name = \"two\"\nverbs = []\n{}\n",
                    first, second));
  };
  CHECK(
      load_error("[[role]]\nname = \"one\"\nverbs = []\n[[role]]\nname = \"one\"\nverbs = []\n") ==
      "tubed.toml:4: role.name: \"one\" is another role already (line 1)");
  for (const auto* key : {"tokens", "subjects", "users", "groups"}) {
    CAPTURE(key);
    CHECK(roles(fmt::format("{} = [\"a\", \"b\"]", key), fmt::format("{} = [\"c\", \"b\"]", key)) ==
          fmt::format("tubed.toml:5: role.{}: \"b\" is in the role \"one\" already", key));
    CHECK(roles(fmt::format("{} = [\"a\", \"b\"]", key), fmt::format("{} = \"c\"", key)) == "");
  }
  // A token and a user may have the same name.
  CHECK(roles("tokens = \"a\"", "users = \"a\"") == "");
}

}  // namespace
}  // namespace tubed::config_test
