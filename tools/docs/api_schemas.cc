// The statistics and the columns of a tube are made from the rows of src/stats, and the policy from
// its keys. The columns of the other lists and the answers that no command gives are tables here;
// openapi_test.py compares them with the answers of the server.
#include "tools/docs/api_schemas.h"

#include <fmt/format.h>

#include "api/history.h"
#include "commands/table.h"
#include "engine/policy.h"
#include "stats/stats.h"
#include "stats/tube_columns.h"

namespace tubed::docs {

using json::Json;

namespace {

// An object, whose members come one after the other.
class Object {
 public:
  Object& add(std::string_view key, Json schema, std::string_view meaning, bool required = true) {
    if (!meaning.empty()) schema["description"] = meaning;
    properties_[key] = std::move(schema);
    if (required) required_.emplace_back(key);
    return *this;
  }
  Object& integer(std::string_view key, std::string_view meaning) {
    return add(key, {{"type", "integer"}}, meaning);
  }
  Object& text(std::string_view key, std::string_view meaning) {
    return add(key, {{"type", "string"}}, meaning);
  }
  Json schema(std::string_view description) const {
    Json schema = {{"type", "object"}, {"description", description}};
    if (!required_.empty()) schema["required"] = texts(required_);
    schema["properties"] = properties_;
    return schema;
  }

 private:
  Json properties_ = Json::object();
  std::vector<std::string> required_;
};

Json type(std::string_view name) {
  return {{"type", name}};
}
Json one_of(std::vector<std::string> words) {
  return {{"type", "string"}, {"enum", texts(words)}};
}
Json or_null(std::string_view name) {
  return {{"type", texts({std::string(name), "null"})}};
}
Json array_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

template <class State>
void add_rows(stats::Rows<State> rows, Object& object, bool required = true) {
  for (const stats::Row<State>& row : rows) {
    if (row.key.empty()) continue;
    const bool is_text = row.text != nullptr || row.plain != nullptr || row.composed != nullptr;
    const std::string_view name = is_text                  ? "string"
                                  : row.flag != nullptr    ? "boolean"
                                  : row.seconds != nullptr ? "number"
                                                           : "integer";
    object.add(row.key, type(name), row.meaning, required && row.shown == nullptr);
  }
}

void add_counters(stats::CounterPlace place, Object& object) {
  for (const stats::CommandCount& command : commands::command_counts()) {
    if (command.place == place)
      object.integer(stats::counter_key(command), stats::counter_meaning(command));
  }
}

Json server() {
  Object object;
  add_rows(stats::job_count_rows(), object);
  add_counters(stats::CounterPlace::beanstalkd, object);
  add_rows(stats::beanstalkd_rows(), object);
  add_counters(stats::CounterPlace::own, object);
  add_rows(stats::own_rows(), object);
  add_counters(stats::CounterPlace::last, object);
  add_rows(stats::newest_rows(), object);
  add_rows(stats::cluster_rows(), object, false);
  return object.schema("The lines of stats.");
}

Json tube() {
  Object object;
  add_rows(stats::tube_rows(), object);
  return object.schema("The lines of stats-tube.");
}

Json job() {
  Object object;
  add_rows(stats::job_rows(), object);
  return object.schema("The lines of stats-job.");
}

Json policy() {
  Object object;
  for (const PolicyKeyRow& row : policy_keys()) {
    const std::string key(row.name);
    object.add(key, row.is_place ? type("string") : Json{{"type", texts({"integer", "string"})}},
               fmt::format("{} ({})", row.meaning, row.form));
    object.add(key + "-from", one_of({"wire", "file", "default"}),
               "Where the value is from: a command, the settings, or neither.");
  }
  return object.schema("The policy of a tube.");
}

Json group() {
  return Object()
      .text("name", "The name of the group.")
      .integer("ready", "Its ready members.")
      .integer("reserved", "Its members that clients hold.")
      .integer("delayed", "Its delayed members.")
      .integer("buried", "Its buried members.")
      .integer("waiting-jobs", "Jobs that wait for the group.")
      .schema("The members of a group.");
}

Json page(std::string_view rows, const Json& row, std::string_view next) {
  return Object().integer("next", next).add(rows, array_of(row), "").schema("A page of a list.");
}

Json tubes() {
  Object columns;
  for (const stats::TubeColumn& column : stats::kTubeColumns) {
    if (column.listed.empty()) continue;
    if (column.number == nullptr) {
      columns.text(column.listed, column.meaning);
    } else {
      columns.integer(column.listed, column.meaning);
    }
  }
  const Json row = columns.schema("A tube.");
  Json schema = page("tubes", row, "The number of the first tube of the next page; 0: none.");
  schema["properties"]["total"] = {
      {"type", "integer"}, {"description", "How many tubes all pages have, of a sorted list."}};
  return schema;
}

Json times() {
  const Json row =
      Object()
          .add("seconds", {{"type", texts({"number", "string"})}},
               "The upper bound of the bucket; more: the last bucket.")
          .integer("queue",
                   "Jobs that waited for so long from their put to their first reservation.")
          .integer("processing", "Jobs that clients held for so long until their deletion.")
          .schema("A bucket, with those times that are in no bucket before it.");
  return page("times", row, "0.");
}

Json jobs() {
  Object row;
  row.integer("id", "The id of the job.")
      .add("state", one_of({"ready", "delayed", "buried", "reserved", "held"}),
           "Its state; held: it waits for a group.")
      .integer("pri", "Its priority.")
      .integer("age", "Seconds since it was put.")
      .integer("delay", "Its delay in seconds.")
      .integer("ttr", "Its TTR in seconds.")
      .integer("time-left", "Seconds until it is ready again; 0 unless it is reserved or delayed.");
  for (const std::string_view key : {"reserves", "timeouts", "releases", "buries", "kicks"})
    row.integer(key, "How often that happened to it.");
  row.integer("bytes", "The size of its body.")
      .add("tags", type("string"), "Its tags, if it has any, as in a put.", false);
  return page("jobs", row.schema("A job."), "The least id of the next page; 0: there is none.");
}

Json clients() {
  const Json row =
      Object()
          .integer("id", "The id of the session, which a later client may have after this client.")
          .text("address", "Its address and port, or unix:uid:pid.")
          .text("role", "Its role, or -.")
          .text("used", "The tube that its puts go to.")
          .integer("waiting", "1 in a reserve or a wait.")
          .integer("held", "How many jobs it holds.")
          .integer("idle", "For how many seconds it has sent nothing.")
          .text(
              "watched",
              "The watched tubes with a comma between them, at most 20, then the number of others.")
          .schema("A client.");
  return page("clients", row, "The least id of the next page; 0: there is none.");
}

// Of a job, as text or in base64.
void add_body(Object& object) {
  object.add("body", type("string"), "The body, if it is UTF-8.", false)
      .add("body_base64", {{"type", "string"}, {"contentEncoding", "base64"}},
           "The body, if it is not UTF-8.", false);
}

Json body() {
  Object object;
  object.integer("id", "The id of the job.");
  add_body(object);
  return object.schema("A job with its body.");
}

Json reserved() {
  Object object;
  object.text("token", "The token that names the reservation.").integer("id", "The id of the job.");
  add_body(object);
  return object.schema(
      "The reservation, with the members of Job if the role of the client has inspect.");
}

Json settings() {
  const Json row = Object()
                       .text("key", "The key, or the name of a table.")
                       .text("value", "The value in force, as TOML.")
                       .text("default", "The default, as TOML.")
                       .add("changed", type("boolean"), "The value is not the default.")
                       .add("reloadable", type("boolean"), "A reload changes it.")
                       .schema("A setting.");
  return Object().add("settings", array_of(row), "").schema("The settings in force.");
}

Json history() {
  std::vector<std::string> columns = {"time"};
  for (const std::string_view key : api::History::kKeys) columns.emplace_back(key);
  return Object()
      .integer("interval", "Seconds between two samples.")
      .add("columns", array_of(one_of(columns)),
           "What the numbers of a sample are: the time in seconds since 1970, and keys of stats.")
      .add("samples", array_of(array_of(type("integer"))), "The oldest is the first.")
      .schema("Samples of the last hour.");
}

Json cluster() {
  const Json member = Object()
                          .text("name", "Its name.")
                          .text("id", "Its id: 16 hexadecimal digits.")
                          .text("address", "Its address for the other nodes.")
                          .add("votes", type("boolean"), "It is a voter; false: it is a standby.")
                          .add("leads", type("boolean"), "It is the leader.")
                          .add("self", type("boolean"), "It is the node that answers.")
                          .add("match", or_null("integer"),
                               "The last entry that it is known to have; null: not known.")
                          .add("silent_ms", or_null("integer"),
                               "Milliseconds since its last answer; null: not known.")
                          .schema("A member of the cluster.");
  return Object()
      .text("name", "The name of the node that answers.")
      .text("id", "Its id: 16 hexadecimal digits.")
      .text("cluster", "The id of the cluster: 16 hexadecimal digits; 0: it belongs to none yet.")
      .add("role", one_of({"waiting", "fetching", "standby", "follower", "candidate", "leader"}),
           "Its role.")
      .add("serves", type("boolean"), "It serves clients.")
      .add("leader", or_null("string"), "The name of the leader; null: not known.")
      .integer("term", "The number of the election.")
      .integer("committed", "The last entry that a majority has.")
      .integer("applied", "The last entry that is in its queue.")
      .integer("stored", "The last entry that its disk has.")
      .add("lease_ms", or_null("integer"),
           "For how many milliseconds its lease lasts; null unless it is the leader.")
      .integer("raft_log_bytes", "The size of its raft log.")
      .integer("raft_log_limit", "cluster.log_size.")
      .integer("held_over", "Jobs that it holds for clients of a former leader.")
      .integer("feature_level", "The features that all nodes have.")
      .add("fetched_bytes", or_null("integer"),
           "While it fetches the state of another node, the bytes so far; else null.")
      .add("fetch_bytes", or_null("integer"), "The bytes of that state; null: not known.")
      .add("members", array_of(member), "In the order of the configuration.")
      .schema("The cluster, as one of its nodes sees it.");
}

Json access() {
  return Object()
      .add("api", one_of({"read", "full"}), "http.api.")
      .add("auth", one_of({"none", "token", "mtls", "peer"}), "http.auth.")
      .add("role", or_null("string"), "The role; null: the client may do everything.")
      .add("verbs",
           {{"type", texts({"array", "null"})},
            {"items", one_of({"produce", "work", "inspect", "admin"})}},
           "The families that the role may use; null: all.")
      .add("tubes", {{"type", texts({"array", "null"})}, {"items", type("string")}},
           "The patterns of the tubes that the role may use; null: all.")
      .text("version", "The version of the server.")
      .schema("What the client may do.");
}

Json problem() {
  return Object()
      .add("type", {{"type", "string"}, {"format", "uri"}},
           "urn:tubed:problem: and the kind of problem.")
      .text("title", "The kind of problem.")
      .integer("status", "The status of the response.")
      .text("detail", "What is wrong.")
      .add("reply", type("string"), "The reply of the command, if it is one.", false)
      .schema("Why the request was refused (RFC 9457).");
}

}  // namespace

Json texts(const std::vector<std::string>& values) {
  return Json::array({values.begin(), values.end()});
}

Json api_schemas() {
  return {
      {"Access", access()},   {"Body", body()},         {"Capabilities", array_of(type("string"))},
      {"Clients", clients()}, {"Cluster", cluster()},   {"Group", group()},
      {"History", history()}, {"Job", job()},           {"Jobs", jobs()},
      {"Policy", policy()},   {"Problem", problem()},   {"Reserved", reserved()},
      {"Server", server()},   {"Settings", settings()}, {"Times", times()},
      {"Tube", tube()},       {"Tubes", tubes()}};
}

}  // namespace tubed::docs
