// The statistics and the columns of a tube are made from the rows of src/stats, and the policy from
// its keys. The members of the other answers are rows here; openapi_test.py compares them with the
// answers of the server.
#include "tools/docs/api_schemas.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/day_history.h"
#include "api/history.h"
#include "commands/table.h"
#include "facts/policy.h"
#include "stats/stats.h"
#include "stats/tube_columns.h"

namespace tubed::docs {

using json::Json;

namespace {

// Types as JSON: the value of "type", and other keys of the schema.
constexpr std::string_view kString = R"("string")";
constexpr std::string_view kStringOrNull = R"(["string", "null"])";
constexpr std::string_view kInteger = R"("integer")";
constexpr std::string_view kIntegerOrNull = R"(["integer", "null"])";
constexpr std::string_view kBoolean = R"("boolean")";
constexpr std::string_view kArray = R"("array")";
constexpr std::string_view kNames = R"("array", "items": {"type": "string"})";
constexpr std::string_view kBase64 = R"("string", "contentEncoding": "base64")";
constexpr std::string_view kSource = R"("string", "enum": ["wire", "file", "default"])";

struct Member {
  std::string_view object;
  std::string_view key;
  std::string_view type;
  std::string_view meaning;
  bool required = true;
  std::string_view items = {};  // of an array of objects: the object
};
constexpr auto kMembers = std::to_array<Member>({
    {"Access", "api", R"("string", "enum": ["read", "full"])", "http.api."},
    {"Access", "auth", R"("string", "enum": ["none", "token", "mtls", "peer"])", "http.auth."},
    {"Access", "role", kStringOrNull, "The role; null: the client may do everything."},
    {"Access", "verbs",
     R"(["array", "null"], "items": {"type": "string", "enum": ["produce", "work", "inspect", "admin"]})",
     "The families that the role may use; null: all."},
    {"Access", "tubes", R"(["array", "null"], "items": {"type": "string"})",
     "The patterns of the tubes that the role may use; null: all."},
    {"Access", "version", kString, "The version of the server."},
    {"Access", "title", kStringOrNull, "http.title; null: none."},
    {"Access", "color", kStringOrNull, "http.color; null: none."},
    {"Body", "id", kInteger, "The id of the job."},
    {"Body", "body", kString, "The body, if it is UTF-8.", false},
    {"Body", "body_base64", kBase64, "The body, if it is not UTF-8.", false},
    {"Clients", "next", kInteger, "The least id of the next page; 0: there is none."},
    {"Clients", "clients", kArray, "", true, "ClientsRow"},
    {"ClientsRow", "id", kInteger,
     "The id of the session, which a later client may have after this client."},
    {"ClientsRow", "address", kString,
     "Its address and port, or unix:uid:pid; behind a proxy, as the proxy reports it."},
    {"ClientsRow", "role", kString, "Its role, or -."},
    {"ClientsRow", "used", kString, "The tube that its puts go to."},
    {"ClientsRow", "waiting", kInteger, "1 in a reserve or a wait."},
    {"ClientsRow", "held", kInteger, "How many jobs it holds."},
    {"ClientsRow", "idle", kInteger, "For how many seconds it has sent nothing."},
    {"ClientsRow", "watched", kString,
     "The watched tubes with a comma between them, at most 20, then the number of others."},
    {"ClientsRow", "tls-name", kString,
     "The common name of its certificate, if a proxy has reported it.", false},
    {"Cluster", "name", kString, "The name of the node that answers."},
    {"Cluster", "id", kString, "Its id: 16 hexadecimal digits."},
    {"Cluster", "cluster", kString,
     "The number of the cluster, the same on all its nodes: 16 hexadecimal digits; 0: it "
     "belongs to none yet."},
    {"Cluster", "role",
     R"("string", "enum": ["waiting", "fetching", "standby", "follower", "candidate", "leader"])",
     "Its role."},
    {"Cluster", "serves", kBoolean, "It serves clients."},
    {"Cluster", "leader", kStringOrNull, "The name of the leader; null: not known."},
    {"Cluster", "term", kInteger, "The number of the election."},
    {"Cluster", "committed", kInteger, "The last entry that a majority has."},
    {"Cluster", "applied", kInteger, "The last entry that is in its queue."},
    {"Cluster", "stored", kInteger, "The last entry that its disk has."},
    {"Cluster", "lease_ms", kIntegerOrNull,
     "For how many milliseconds its lease lasts; null unless it is the leader."},
    {"Cluster", "raft_log_bytes", kInteger, "The size of its raft log."},
    {"Cluster", "raft_log_limit", kInteger, "cluster.log_size."},
    {"Cluster", "held_over", kInteger, "Jobs that it holds for clients of a former leader."},
    {"Cluster", "feature_level", kInteger, "The feature level in use."},
    {"Cluster", "fetched_bytes", kIntegerOrNull,
     "While it fetches the state of another node, the bytes so far; else null."},
    {"Cluster", "fetch_bytes", kIntegerOrNull, "The bytes of that state; null: not known."},
    {"Cluster", "members_index", kInteger,
     "The entry with the newest change of the members. The change is final when committed is not "
     "less."},
    {"Cluster", "members", kArray, "In the order of the configuration.", true, "ClusterMember"},
    {"Cluster", "settings_differ", kArray,
     "The settings that should be the same on all nodes, and differ, as far as this node "
     "knows.",
     true, "DifferingSetting"},
    {"ClusterMember", "name", kString, "Its name."},
    {"ClusterMember", "id", kString, "Its id: 16 hexadecimal digits."},
    {"ClusterMember", "address", kString, "Its address for the other nodes."},
    {"ClusterMember", "votes", kBoolean, "It is a voter; false: it is a standby."},
    {"ClusterMember", "leads", kBoolean, "It is the leader."},
    {"ClusterMember", "self", kBoolean, "It is the node that answers."},
    {"ClusterMember", "match", kIntegerOrNull,
     "The last entry that it is known to have; null: not known."},
    {"ClusterMember", "silent_ms", kIntegerOrNull,
     "Milliseconds since its last answer; null: not known."},
    {"ClusterMember", "level", kIntegerOrNull,
     "The highest feature level that its version knows; null: not known."},
    {"ClusterMember", "failure", kStringOrNull,
     "Why the node that answers has no connection to it; null: it has one, or waits for an "
     "answer."},
    {"ClusterMember", "lag_ms", kIntegerOrNull,
     "Milliseconds since the oldest entry was appended that its disk lacks; 0: it has all; null: "
     "not known."},
    {"ClusterMember", "stays", kBoolean,
     "It is a standby that does not become a voter until it is promoted."},
    {"ClusterMember", "clock_difference_ms", kIntegerOrNull,
     "Milliseconds by which its wall clock differs from the leader's; null: not known."},
    {"ClusterMember", "reached_at", kStringOrNull,
     "Where the node that answers reaches it, if that is not its address: where it says that it "
     "listens; of the node that answers, its cluster.address; null: its address."},
    {"Group", "name", kString, "The name of the group."},
    {"Group", "ready", kInteger, "Its ready members."},
    {"Group", "reserved", kInteger, "Its members that clients hold."},
    {"Group", "delayed", kInteger, "Its delayed members."},
    {"Group", "buried", kInteger, "Its buried members."},
    {"Group", "waiting-jobs", kInteger, "Jobs that wait for the group."},
    {"Jobs", "next", kInteger,
     "The least id of the next page, or its first row in a sorted list; 0: there is none."},
    {"Jobs", "looked", kInteger,
     "With a filter: how many jobs the page has looked at, or the sorted list.", false},
    {"Jobs", "jobs", kArray, "", true, "JobsRow"},
    {"Jobs", "total", kInteger, "How many jobs all pages have, of a sorted list.", false},
    {"JobsRow", "id", kInteger, "The id of the job."},
    {"JobsRow", "state", R"("string", "enum": ["ready", "delayed", "buried", "reserved", "held"])",
     "Its state; held: it waits for a group."},
    {"JobsRow", "pri", kInteger, "Its priority."},
    {"JobsRow", "age", kInteger, "Seconds since it was put."},
    {"JobsRow", "delay", kInteger, "Its delay in seconds."},
    {"JobsRow", "ttr", kInteger, "Its TTR in seconds."},
    {"JobsRow", "time-left", kInteger,
     "Seconds until it is ready again; 0 unless it is reserved or delayed."},
    {"JobsRow", "reserves", kInteger, "How often that happened to it."},
    {"JobsRow", "timeouts", kInteger, "How often that happened to it."},
    {"JobsRow", "releases", kInteger, "How often that happened to it."},
    {"JobsRow", "buries", kInteger, "How often that happened to it."},
    {"JobsRow", "kicks", kInteger, "How often that happened to it."},
    {"JobsRow", "bytes", kInteger, "The size of its body."},
    {"JobsRow", "failures", kInteger,
     "With a filter: how many reservations of it have ended without its deletion.", false},
    {"JobsRow", "dead-from", kString, "With a filter: the tube where it was dead or expired, or -.",
     false},
    {"JobsRow", "tags", kString, "Its tags, if it has any, as in a put.", false},
    {"Problem", "type", R"("string", "format": "uri")",
     "urn:tubed:problem: and the kind of problem."},
    {"Problem", "title", kString, "The kind of problem."},
    {"Problem", "status", kInteger, "The status of the response."},
    {"Problem", "detail", kString, "What is wrong."},
    {"Problem", "reply", kString, "The reply of the command, if it is one.", false},
    {"Problem", "parameter", kString, "The name of the wrong parameter, if it is known.", false},
    {"Problem", "leader", kString, "The name of the node that serves clients, if another does.",
     false},
    {"Problem", "state", kString, "The state of the job, if that is the reason.", false},
    {"Reload", "changed", kNames,
     "The settings that have changed, also because a file that they name has."},
    {"Reload", "needs-restart", kNames, "The settings that differ, and that need a restart."},
    {"Reserved", "token", kString, "The token that names the reservation."},
    {"Reserved", "id", kInteger, "The id of the job."},
    {"Reserved", "body", kString, "The body, if it is UTF-8.", false},
    {"Reserved", "body_base64", kBase64, "The body, if it is not UTF-8.", false},
    {"ReservedJobs", "token", kString, "The token that names the jobs together."},
    {"ReservedJobs", "jobs", kArray, "", true, "Reserved"},
    {"Results", "results", kArray, "", true, "Result"},
    {"Result", "id", kInteger, "The id of the job.", false},
    {"Result", "status", kInteger, "The status that a request for this job alone has."},
    {"Result", "result", kString, "The reply, if it is a success.", false},
    {"Result", "state", kString, "The state of the job, if it is the reason, or the job was there.",
     false},
    {"Result", "pri", kInteger, "The priority of a job that was there, if it is new.", false},
    {"Result", "type", R"("string", "format": "uri")", "Of a problem, as the members below.",
     false},
    {"Result", "title", kString, "The kind of problem.", false},
    {"Result", "detail", kString, "What is wrong.", false},
    {"Result", "reply", kString, "The reply of the command.", false},
    {"Settings", "settings", kArray, "", true, "SettingsRow"},
    {"SettingsRow", "key", kString, "The key, or the name of a table."},
    {"SettingsRow", "value", kString, "The value in force, as TOML."},
    {"SettingsRow", "default", kString, "The default, as TOML."},
    {"SettingsRow", "changed", kBoolean, "The value is not the default."},
    {"SettingsRow", "reloadable", kBoolean, "A reload changes it."},
    {"Times", "next", kInteger, "0."},
    {"Times", "times", kArray, "", true, "TimesRow"},
    {"TimesRow", "seconds", R"(["number", "string"])",
     "The upper bound of the bucket; more: the last bucket."},
    {"TimesRow", "queue", kInteger,
     "Jobs that waited for so long from their put to their first reservation."},
    {"TimesRow", "processing", kInteger,
     "Jobs that clients held for so long until their deletion."},
    {"Tubes", "next", kInteger, "The number of the first tube of the next page; 0: none."},
    {"Tubes", "tubes", kArray, "", true, "TubesRow"},
    {"Tubes", "total", kInteger, "How many tubes all pages have, of a sorted list.", false},
});

// An object, whose members come one after the other.
class Object {
 public:
  // `type`: as in kMembers.
  void add(std::string_view key, std::string_view type, std::string_view meaning,
           bool required = true, std::string_view items = {});
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

template <class State>
void add_rows(stats::Rows<State> rows, Object& object, bool required = true) {
  for (const stats::Row<State>& row : rows) {
    if (row.key.empty()) continue;
    const bool is_text = row.text != nullptr || row.plain != nullptr || row.composed != nullptr;
    const std::string_view type = is_text                  ? kString
                                  : row.flag != nullptr    ? kBoolean
                                  : row.seconds != nullptr ? R"("number")"
                                                           : kInteger;
    object.add(row.key, type, row.meaning, required && row.shown == nullptr);
  }
}

void add_counters(stats::CounterPlace place, Object& object) {
  for (const stats::CommandCount& command : commands::command_counts()) {
    if (command.place == place)
      object.add(stats::counter_key(command), kInteger, stats::counter_meaning(command));
  }
}

void add_server(Object& object) {
  add_rows(stats::job_count_rows(), object);
  add_counters(stats::CounterPlace::beanstalkd, object);
  add_rows(stats::beanstalkd_rows(), object);
  add_counters(stats::CounterPlace::own, object);
  add_rows(stats::own_rows(), object);
  add_counters(stats::CounterPlace::last, object);
  add_rows(stats::newest_rows(), object);
  add_rows(stats::cluster_rows(), object, false);
}

void add_tube(Object& object) {
  add_rows(stats::tube_rows(), object);
}

void add_job(Object& object) {
  add_rows(stats::job_rows(), object);
}

void add_policy(Object& object) {
  for (const PolicyKeyRow& row : policy_keys()) {
    object.add(row.name, row.is_place ? kString : R"(["integer", "string"])",
               fmt::format("{} ({})", row.meaning, row.form));
    object.add(fmt::format("{}-from", row.name), kSource,
               "Where the value is from: a command, the settings, or neither.");
  }
}

void add_columns(Object& object) {
  for (const stats::TubeColumn& column : stats::kTubeColumns) {
    if (!column.listed.empty())
      object.add(column.listed, column.number == nullptr ? kString : kInteger, column.meaning);
  }
}

void add_history(Object& object) {
  using api::DayHistory;
  using api::History;
  std::vector<std::string_view> columns = {"time"};
  columns.insert(columns.end(), History::kKeys.begin(), History::kKeys.end());
  columns.emplace_back("seconds");
  columns.insert(columns.end(), DayHistory::kTubeGauges.begin(), DayHistory::kTubeGauges.end());
  columns.insert(columns.end(), DayHistory::kCounts.begin(), DayHistory::kCounts.end());
  object.add("interval", kInteger, "Seconds between two samples.");
  object.add("columns",
             fmt::format(R"("array", "items": {{"type": "string", "enum": ["{}"]}})",
                         fmt::join(columns, R"(", ")")),
             "What the numbers of a sample are: the time in seconds since 1970, and keys of stats. "
             "With an interval of 60, the time is the begin of a minute, seconds is how much of it "
             "is known, the states of jobs are those at its end, and puts, reserves, deletes and "
             "timeouts are how many there were in it.");
  object.add("samples", R"("array", "items": {"type": "array", "items": {"type": "integer"}})",
             "The oldest is the first.");
  object.add("tubes", R"("array", "items": {"type": "string"})",
             "Of the day of the server: the tubes that have a history, and that the role may use.",
             false);
}

void add_differing(Object& object) {
  object.add("name", kString, "Its key, policy, role or listen.");
  object.add("nodes", R"("array", "items": {"type": "array", "items": {"type": "string"}})",
             "The names of the nodes, those with the same value together.");
}

struct ObjectRow {
  std::string_view name;
  std::string_view description;
  void (*add)(Object&) = nullptr;  // the members that have no row
};
constexpr auto kObjects = std::to_array<ObjectRow>({
    {"Access", "What the client may do."},
    {"Body", "A job with its body."},
    {"Clients", "A page of a list."},
    {"ClientsRow", "A client."},
    {"Cluster", "The cluster, as one of its nodes sees it."},
    {"ClusterMember", "A member of the cluster."},
    {"DifferingSetting", "A setting that differs between nodes.", add_differing},
    {"Group", "The members of a group."},
    {"History", "Samples of the last hour or day.", add_history},
    {"Job", "The lines of stats-job.", add_job},
    {"Jobs", "A page of a list."},
    {"JobsRow", "A job."},
    {"Policy", "The policy of a tube.", add_policy},
    {"Problem", "Why the request was refused (RFC 9457)."},
    {"Reload", "The changes of a reload."},
    {"Reserved", "The reservation, with the members of Job if the role of the client has inspect."},
    {"ReservedJobs", "Reservations of several jobs."},
    {"Result", "The result of one job."},
    {"Results", "The results of several jobs."},
    {"Server", "The lines of stats.", add_server},
    {"Settings", "The settings in force."},
    {"SettingsRow", "A setting."},
    {"Times", "A page of a list."},
    {"TimesRow", "A bucket, with those times that are in no bucket before it."},
    {"Tube", "The lines of stats-tube.", add_tube},
    {"Tubes", "A page of a list."},
    {"TubesRow", "A tube.", add_columns},
});

Json schema_of(std::string_view name) {
  const ObjectRow& row = *std::ranges::find(kObjects, name, &ObjectRow::name);
  Object object;
  if (row.add != nullptr) row.add(object);
  for (const Member& member : kMembers) {
    if (member.object == name)
      object.add(member.key, member.type, member.meaning, member.required, member.items);
  }
  return object.schema(row.description);
}

void Object::add(std::string_view key, std::string_view type, std::string_view meaning,
                 bool required, std::string_view items) {
  Json schema = *Json::parse_document(fmt::format(R"({{"type": {}}})", type));
  if (!items.empty()) schema["items"] = schema_of(items);
  if (!meaning.empty()) schema["description"] = meaning;
  properties_[key] = std::move(schema);
  if (required) required_.emplace_back(key);
}

}  // namespace

Json texts(const std::vector<std::string>& values) {
  return Json::array({values.begin(), values.end()});
}

Json api_schemas() {
  Json schemas;
  for (const std::string_view name :
       {"Access",  "Body",   "Capabilities", "Clients", "Cluster", "Group",    "History",
        "Job",     "Jobs",   "Policy",       "Problem", "Reload",  "Reserved", "ReservedJobs",
        "Results", "Server", "Settings",     "Times",   "Tube",    "Tubes"}) {
    schemas[name] = name == "Capabilities"
                        ? Json{{"type", "array"}, {"items", {{"type", "string"}}}}
                        : schema_of(name);
  }
  return schemas;
}

}  // namespace tubed::docs
