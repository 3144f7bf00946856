// Roles of the API that change while a request is under way.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/server/http_rig.h"

namespace tubed::server_test {

using loop_test::status_in;

namespace {

// HTTP whose clients all have the role "ops".
struct RoleRig final : HttpRig {
  RoleRig() {
    settings.http.role = "ops";
    set_role(true);
  }

  // `exists`: with all families.
  void set_role(bool exists) {
    RoleSettings role;
    role.role.name = "ops";
    role.role.produce = role.role.work = role.role.inspect = role.role.admin = true;
    authenticator.apply(exists ? std::vector{role} : std::vector<RoleSettings>(), {});
    api.apply(settings);
  }

  // The answer to a request whose last byte arrives after `change`.
  std::string call_across(const std::string& method, const std::string& path,
                          const std::string& body, const std::function<void()>& change) {
    const std::string whole = request(method, path, body, "Expect: 100-continue\r\n");
    const os::Socket client = send(whole.substr(0, whole.size() - body.size()));
    std::string answer;
    REQUIRE(run_until([&] {
      answer += loop_test::read_some(client);
      return answer.find("100 Continue") != std::string::npos;
    }));
    change();
    loop_test::write_all(client, body);
    return status_in(take_all(client)).substr(9, 3);
  }
};

}  // namespace

TEST_CASE("a request whose role is removed while its body arrives is refused") {
  const std::string kick = R"({"bound":1})";
  {
    RoleRig rig;
    CHECK(rig.call_across("POST", "/tubes/t/kick", kick, [] {}) == "200");
    CHECK(rig.call_across("POST", "/tubes/t/kick", kick, [&] { rig.set_role(false); }) == "401");
    CHECK(rig.service.engine().info().sessions == 0);
  }
  {
    RoleRig rig;
    const auto restart = [&] {
      rig.set_role(false);
      rig.set_role(true);
    };
    CHECK(rig.call_across("POST", "/tubes/t/kick", kick, restart) == "200");
  }
  {
    // The put has opened its client before its body arrives.
    RoleRig rig;
    CHECK(rig.call_across("POST", "/tubes/t/jobs", "x", [&] { rig.set_role(false); }) == "503");
    CHECK(rig.service.engine().info().total_jobs == 0);
  }
}

TEST_CASE("a request whose rights change while its body arrives has the new rights") {
  RoleRig rig;
  const auto to_read = [&] {
    rig.settings.http.api = HttpApiLevel::read;
    rig.set_role(true);
  };
  CHECK(rig.call_across("POST", "/tubes/t/kick", R"({"bound":1})", to_read) == "403");
  // A put, and a request for a reservation, have a client before their body has arrived.
  rig.settings.http.api = HttpApiLevel::full;
  rig.set_role(true);
  const std::string body(9000, 'x');
  CHECK(rig.call_across("POST", "/tubes/t/jobs", body, to_read) == "403");
  CHECK(rig.service.engine().info().total_jobs == 0);
  rig.settings.http.api = HttpApiLevel::full;
  rig.set_role(true);
  CHECK(rig.call_across("POST", "/tubes/t/jobs", body, [] {}) == "201");
  const std::string token = text_member(rig.call("POST", "/tubes/t/reserve"), "token");
  const std::string release = "/reservations/" + token + "/release";
  CHECK(rig.call_across("POST", release, R"({"pri":1})", to_read) == "403");
  CHECK(rig.service.engine().info().jobs.reserved == 1);
  rig.settings.http.api = HttpApiLevel::full;
  rig.set_role(true);
  CHECK(rig.call("POST", release).starts_with("200 "));
  const std::pair<std::string, std::string> requests[] = {{"/tubes/t/kick", R"({"bound":1})"},
                                                          {"/tubes/t/jobs", body}};
  for (const auto& request : requests) {
    CAPTURE(request.first);
    RoleRig other;
    const auto to_token = [&other] {
      other.settings.http.role.clear();
      other.settings.http.auth = AuthMode::token;
      other.set_role(true);
    };
    CHECK(other.call_across("POST", request.first, request.second, to_token) == "401");
    CHECK(other.service.engine().info().total_jobs == 0);
  }
}

}  // namespace tubed::server_test
