#include "tests/simulation/http_clients.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "json/json.h"
#include "tests/simulation/http_call.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

// More than the network needs to show the server that a client has left.
constexpr Duration kArrival = 1ms;
// The server releases a job within this time.
constexpr Duration kGivenBack = 30ms;

const api::Operation& operation_named(std::string_view id) {
  return *std::ranges::find(api::operations(), id, &api::Operation::id);
}

HttpCall::End an_end(Chance& chance) {
  return static_cast<HttpCall::End>(chance.below(3));
}

std::string encoded(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == ' ' || c == '&' || c == '%' || c == '?') {
      made += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      made += c;
    }
  }
  return made;
}

class Acting : public HttpClient {
 public:
  Acting(World& world, Net& net, Knowledge& known, const std::string& name)
      : world_(world),
        net_(net),
        known_(known),
        name_(name),
        chance_(world.seed(), name),
        sends_(known.reductions.commands_of(name)) {}

  void begin() override { act_later(); }

 protected:
  virtual void act() = 0;

  // Returns null if nothing listens, or the life omits this request.
  std::unique_ptr<HttpCall> call(HttpRequest request, HttpCall::Done done) {
    if (!sends_.has(++calls_)) return nullptr;
    auto made = std::make_unique<HttpCall>(world_, net_, known_, chance_, name_, std::move(request),
                                           std::move(done));
    return made->is_connected() ? std::move(made) : nullptr;
  }
  void act_later() {
    world_.at(world_.grid_after(chance_.up_to(3ms)), [this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      act();
      act_later();
    });
  }
  void fail(std::string_view what) { world_.fail(fmt::format("{}: {}", name_, what)); }
  // Destroys a call in a later event, because the call itself may be running.
  void drop_later(std::unique_ptr<HttpCall>& call) {
    world_.after({}, [kept = std::shared_ptr<HttpCall>(std::move(call))] {});
  }

  World& world_;
  Net& net_;
  Knowledge& known_;
  const std::string name_;
  Chance chance_;
  const Range sends_;
  std::uint64_t calls_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

// --- Any operations

class AnyOperations final : public Acting {
 public:
  using Acting::Acting;

 private:
  void act() override {
    if (call_ != nullptr) {
      call_->act();
      if (call_ == nullptr || !chance_.percent(3)) return;
      call_->leave(an_end(chance_));
      call_.reset();
    }
    if (!chance_.percent(70)) return;
    std::vector<std::string> bodies;
    HttpRequest request = make(bodies);
    const api::Kind kind = request.operation->kind;
    call_ = call(std::move(request), [this, kind, bodies](const HttpAnswer& answer) {
      drop_later(call_);
      take(kind, bodies, answer);
    });
  }

  void take(api::Kind kind, const std::vector<std::string>& bodies, const HttpAnswer& answer) {
    if (api::reserves_jobs(kind) && answer.status == 201) {
      const std::string token = member_of(answer.body, "token");
      Knowledge::add(known_.tokens, token);
      for (const json::Json& job : list_in(answer, "jobs"))
        Knowledge::add(known_.tokens, fmt::format("{}.{}", token, *job.find("id")->number()));
    }
    if (kind == api::Kind::put && answer.status == 201)
      has_put(leading_number(member_of(answer.body, "id")), bodies.front());
    if (kind != api::Kind::put_many || answer.status != 200) return;
    const std::vector<json::Json> results = list_in(answer, "results");
    if (results.size() != bodies.size()) return fail("a job has no result");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].find("status")->number() == 201)
        has_put(*results[i].find("id")->number(), bodies[i]);
    }
  }

  // Returns the elements of a member; empty: it has none.
  static std::vector<json::Json> list_in(const HttpAnswer& answer, std::string_view name) {
    const auto object = json::Json::parse_document(answer.body);
    const json::Json* list = object ? object->find(name) : nullptr;
    return list == nullptr ? std::vector<json::Json>() : *list->elements();
  }

  void has_put(JobId id, const std::string& body) {
    if (!known_.by_id.emplace(id, body).second) return fail("an id was given twice");
    known_.bodies[body] = id;
    known_.add_recent(id);
  }

  // `bodies`: of the jobs that it puts.
  HttpRequest make(std::vector<std::string>& bodies) {
    static constexpr std::array<std::string_view, 8> kFrequent = {
        "putJob",    "putJob",
        "reserve",   "reserve",
        "reserve",   "deleteReservation",
        "deleteJob", "releaseReservation"};
    const api::Operation* operation = chance_.percent(50)
                                          ? &operation_named(chance_.one_of(kFrequent))
                                          : &chance_.one_of(api::operations());
    if (operation->id == "drain" && !chance_.percent(10)) operation = &operation_named("undrain");
    HttpRequest request{.operation = operation, .target = std::string(operation->path)};
    std::string query;
    for (const api::Parameter& parameter : api::parameters_of(*operation)) {
      if (!parameter.needed && chance_.percent(50)) continue;
      const std::string value = encoded(a_value_of(parameter.name));
      if (parameter.name == operation->waits) request.waits = leading_number(value) > 0;
      const std::string place = fmt::format("{{{}}}", parameter.name);
      if (const std::size_t at = request.target.find(place); at != std::string::npos) {
        request.target.replace(at, place.size(), value);
      } else {
        query += fmt::format("{}{}={}", query.empty() ? '?' : '&', parameter.name, value);
      }
    }
    if (chance_.percent(2)) query += query.empty() ? "?unknown=1" : "&unknown=1";
    request.target += query;
    if (!api::has_job_body(operation->kind)) return request;
    const bool is_many = operation->kind == api::Kind::put_many;
    const std::uint64_t count = is_many ? 1 + chance_.below(4) : 1;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string body = fmt::format("http {} ", known_.puts++);
      if (chance_.percent(5)) body.append(chance_.below(9000), 'x');
      known_.bodies.emplace(body, 0);
      request.body +=
          is_many ? fmt::format(R"({}{{"body":"{}"}})", i == 0 ? "[" : ",", body) : body;
      bodies.push_back(std::move(body));
    }
    if (is_many) request.body += ']';
    return request;
  }

  std::string a_value_of(std::string_view name) {
    const auto one = [this](std::vector<std::string_view> words) {
      return std::string(chance_.one_of(words));
    };
    if (name == "tube" || name == "to" || name == "filter") return std::string(a_tube(chance_));
    // Small numbers are jobs of ledgers.
    if (name == "id")
      return known_.recent.empty() ? "1099511627776"
                                   : fmt::to_string(chance_.one_of(known_.recent));
    if (name == "ids") return a_value_of("id") + ',' + a_value_of("id");
    if (name == "token") return known_.tokens.empty() ? "none" : chance_.one_of(known_.tokens);
    if (name == "group") return one({"g", "h"});
    if (name == "key") return one({"max-attempts", "dead", "backoff", "keep", "ttl"});
    if (name == "value") return one({"3", "b", "1:60:3", "60"});
    if (name == "state") return one({"ready", "delayed", "buried"});
    if (name == "sort") return one({"ready", "name"});
    if (name == "order") return one({"asc", "desc"});
    if (name == "tags") return one({"idp:k1", "ttl:1", "grp:g", "con:c1:1 aft:h"});
    if (name == "timeout" || name == "seconds") return one({"0", "1", "50", "50"});
    if (name == "ttr") return one({"1", "60"});
    if (name == "q") return one({"http 1", "x", "%", "body"});
    if (name == "tag") return one({"idp:k1", "grp:g", "con:c1:1"});
    return fmt::to_string(chance_.below(4));
  }

  std::unique_ptr<HttpCall> call_;
};

// --- A ledger

class HttpLedger final : public Acting {
 public:
  HttpLedger(World& world, Net& net, Knowledge& known, Ledger& ledger, const std::string& name)
      : Acting(world, net, known, name), ledger_(ledger) {}

 private:
  void act() override {
    if (call_ != nullptr) return call_->act();
    if (ledger_.there.empty() || chance_.percent(60)) return put();
    remove();
  }

  void put() {
    const std::string body = fmt::format("kept over http {} ", known_.puts++);
    known_.bodies.emplace(body, 0);
    HttpRequest request{
        .operation = &operation_named("putJob"), .target = "/tubes/kept/jobs", .body = body};
    call_ =
        call(std::move(request), [this, body, sent = ledger_.loss_count](const HttpAnswer& answer) {
          drop_later(call_);
          if (answer.status != 201) return;
          const JobId id = leading_number(member_of(answer.body, "id"));
          if (!known_.by_id.emplace(id, body).second) return fail("an id was given twice");
          if (holds(sent)) ledger_.added(id, world_.now());
        });
  }

  void remove() {
    const auto index = static_cast<std::ptrdiff_t>(chance_.below(ledger_.there.size()));
    const JobId id = *std::next(ledger_.there.begin(), index);
    HttpRequest request{.operation = &operation_named("deleteJob"),
                        .target = fmt::format("/jobs/{}", id)};
    call_ =
        call(std::move(request), [this, id, sent = ledger_.loss_count](const HttpAnswer& answer) {
          drop_later(call_);
          if (!holds(sent)) return;
          if (answer.status == 200) ledger_.deleted(id, world_.now());
          if (answer.status == 404 || answer.status == 409)
            fail(fmt::format("job {} was acknowledged", id));
          // A request that ended with 503 may have run.
          if (answer.status > 200 && answer.status != 503) ledger_.there.insert(id);
        });
    if (call_ != nullptr) ledger_.doubt(id, world_.now());
  }

  // `sent` is Ledger::loss_count when the request was sent. Returns false if the answer comes from
  // a process whose last changes were lost.
  bool holds(unsigned sent) const { return sent == ledger_.loss_count; }

  Ledger& ledger_;
  std::unique_ptr<HttpCall> call_;
};

// --- Clients that leave

class Leaver final : public Acting {
 public:
  using Acting::Acting;

 private:
  std::string tube() const { return "of-" + name_.substr(name_.rfind(' ') + 1); }

  void act() override {
    if (process_ != known_.process) reset();
    if (reserve_ != nullptr) reserve_->act();
    if (put_ != nullptr) return put_->act();
    if (job_ != 0) return check_job();
    if (reserve_ == nullptr && !left_) return reserve();
    if (left_ ? world_.now() < *left_ + kArrival : chance_.percent(70)) return;
    if (!left_ && chance_.percent(70)) {
      reserve_->leave(an_end(chance_));
      reserve_.reset();
      left_ = world_.now();
      return;
    }
    put();
  }

  void reset() {
    process_ = known_.process;
    reserve_.reset();
    put_.reset();
    left_.reset();
    job_ = 0;
    token_.clear();
  }

  void reserve() {
    const bool is_batch = chance_.percent(30);
    const std::string_view verb = is_batch ? "reserve-batch" : "reserve";
    HttpRequest request{.operation = &operation_named(is_batch ? "reserveJobs" : "reserve"),
                        .target = fmt::format("/tubes/{}/{}?timeout=50", tube(), verb),
                        .waits = true};
    reserve_ = call(std::move(request), [this](const HttpAnswer& answer) {
      drop_later(reserve_);
      if (answer.status == 201) token_ = member_of(answer.body, "token");
    });
  }

  void put() {
    const std::string body = fmt::format("http {} ", known_.puts++);
    known_.bodies.emplace(body, 0);
    HttpRequest request{.operation = &operation_named("putJob"),
                        .target = fmt::format("/tubes/{}/jobs?ttr=1000", tube()),
                        .body = body};
    put_ = call(std::move(request), [this](const HttpAnswer& answer) {
      drop_later(put_);
      if (answer.status != 201) return;
      job_ = leading_number(member_of(answer.body, "id"));
      put_at_ = world_.now();
    });
  }

  // A job that was given to a client that had left must be ready again.
  void check_job() {
    const Time since = std::max(put_at_, known_.conditions.stalled_until());
    if (known_.engine == nullptr || world_.now() < since + kGivenBack) return;
    const auto job = known_.engine->queries().job_info(world_.now(), job_);
    if (left_ && job && job->state == JobState::reserved)
      return fail(fmt::format("job {} is held by a client that has left", job_));
    if (call_left_over_ == nullptr) return remove();
    call_left_over_->act();
  }

  // Removes the job, by its token if the client has one.
  void remove() {
    HttpRequest request{.operation = &operation_named("deleteJob"),
                        .target = fmt::format("/jobs/{}", job_)};
    if (!token_.empty()) {
      request = {.operation = &operation_named("deleteReservation"),
                 .target = "/reservations/" + token_};
    }
    const bool is_there = left_ || !token_.empty();
    call_left_over_ = call(std::move(request), [this, is_there](const HttpAnswer& answer) {
      drop_later(call_left_over_);
      const bool is_lost = answer.status == 404 || answer.status == 409;
      if (is_lost && is_there) fail(fmt::format("job {} has got lost", job_));
      if (answer.status == 200) reset();
    });
  }

  std::uint64_t process_ = 0;
  std::unique_ptr<HttpCall> reserve_;
  std::unique_ptr<HttpCall> put_;
  std::unique_ptr<HttpCall> call_left_over_;
  std::optional<Time> left_;  // when the client of reserve_ left
  Time put_at_;
  JobId job_ = 0;
  std::string token_;
};

// --- A crowd

class Crowd final : public Acting {
 public:
  using Acting::Acting;

 private:
  void act() override {
    constexpr std::size_t kCrowd = 80;
    std::erase_if(calls_, [](const auto& call) { return call == nullptr; });
    for (int i = 0; i < 8 && calls_.size() < kCrowd; ++i) {
      HttpRequest request{.operation = &operation_named("reserve"),
                          .target = "/tubes/crowd/reserve?timeout=50",
                          .waits = true};
      const auto place = calls_.insert(calls_.end(), nullptr);
      *place = call(std::move(request), [this, place](const HttpAnswer&) { drop_later(*place); });
    }
  }

  std::list<std::unique_ptr<HttpCall>> calls_;
};

}  // namespace

std::unique_ptr<HttpClient> any_operations(World& world, Net& net, Knowledge& known,
                                           const std::string& name) {
  return std::make_unique<AnyOperations>(world, net, known, name);
}

std::unique_ptr<HttpClient> keep_http_ledger(World& world, Net& net, Knowledge& known,
                                             Ledger& ledger, const std::string& name) {
  return std::make_unique<HttpLedger>(world, net, known, ledger, name);
}

std::unique_ptr<HttpClient> reserve_and_leave(World& world, Net& net, Knowledge& known,
                                              const std::string& name) {
  return std::make_unique<Leaver>(world, net, known, name);
}

std::unique_ptr<HttpClient> crowd(World& world, Net& net, Knowledge& known,
                                  const std::string& name) {
  return std::make_unique<Crowd>(world, net, known, name);
}

}  // namespace tubed::simulation
