// The keys of the tables that a file may have several times: [[listen]] and [[role]].
//
// Without a key, a listener or a role may allow everything. So an empty text or list is refused,
// except where it allows nothing, as without the key: the verbs and the clients of a role.
#include <array>

#include "base/assert.h"
#include "config/table.h"
#include "config/types.h"

namespace tubed::config {
namespace {

using namespace types;

constexpr auto kVerbs = std::to_array<std::string_view>({"produce", "work", "inspect", "admin"});

// Not given if it is empty.
Value given(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}
Value given(const std::vector<std::string>& list) {
  return list.empty() ? Value() : Value(list);
}
// Not given if it is the first word, or zero.
Value given(std::int64_t number) {
  return number == 0 ? Value() : Value(number);
}

void set_address(Listen& listen, const Value& value) {
  const auto parsed = parse_listen(value.text);
  TUBED_ASSERT(parsed);
  listen.kind = parsed.value().kind;
  listen.host = parsed.value().host;
  listen.port = parsed.value().port;
  listen.path = parsed.value().path;
}

constexpr auto kListenKeys = std::to_array<ListenKey>({
    {.key = "address",
     .type = {.kind = Kind::address},
     .required = true,
     .unix_only = false,
     .example = "unix:/run/tubed/tubed.sock",
     .doc = "HOST:PORT, [HOST]:PORT or unix:PATH. A host is numeric; the default port is 11300, "
            "and port 0 lets the kernel choose.",
     .get = [](const Listen& listen) { return Value(to_string(listen)); },
     .set = set_address},
    {.key = "mode",
     .type = {.kind = Kind::mode},
     .required = false,
     .unix_only = true,
     .example = "0660",
     .doc = "Permissions of the socket file, octal. The default is given by the umask.",
     .get = [](const Listen& l) { return l.mode ? Value(std::int64_t{*l.mode}) : Value(); },
     .set = [](Listen& l, const Value& v) { l.mode = static_cast<unsigned>(v.number); }},
    {.key = "group",
     .type = text("NAME"),
     .required = false,
     .unix_only = true,
     .example = "tubed",
     .doc = "Group that owns the socket file. The default is the group of the process.",
     .get = [](const Listen& l) { return given(l.group); },
     .set = [](Listen& l, const Value& v) { l.group = v.text; }},
    {.key = "auth",
     .type = choice(kAuthentications),
     .example = "token",
     .doc = "How clients show which role they have: token, by the command auth with a token of "
            "auth.tokens; mtls, by their TLS certificate; peer, by their user or group on a unix "
            "socket; none, not at all. The default is none.",
     .get = [](const Listen& l) { return given(static_cast<std::int64_t>(l.auth)); },
     .set = [](Listen& l, const Value& v) { l.auth = static_cast<AuthMode>(v.number); }},
    {.key = "role",
     .type = text("NAME"),
     .example = "worker",
     .doc = "With auth = \"none\": the [[role]] of all clients. The default is none, and clients "
            "may do everything.",
     .get = [](const Listen& l) { return given(l.role); },
     .set = [](Listen& l, const Value& v) { l.role = v.text; }},
    {.key = "proxy_protocol",
     .type = list("NETWORKS"),
     .example = "10.0.0.0/8",
     .doc = "The networks of the proxies, such as load balancers, as \"10.0.0.0/8\" or "
            "\"fd00::/8\": each connection comes from one of them and begins with a header of the "
            "PROXY protocol, version 1 or 2, which names the client's address. Other connections "
            "are closed. For a unix: address, \"unix\". The default is none: connections come from "
            "clients, without a header.",
     .get = [](const Listen& l) { return given(l.proxies); },
     .set = [](Listen& l, const Value& v) { l.proxies = v.list; }},
    {.key = "tls.certificate",
     .type = list("FILES"),
     .example = "/etc/tubed/tls/certificate.pem",
     .doc = "Serve TLS alone, with this certificate: a PEM file that begins with the server's own "
            "certificate, and has those of its issuers after it. An array of several files is for "
            "several names: the client asks for one (SNI), and the first file is the default.",
     .get = [](const Listen& l) { return given(l.tls.certificates); },
     .set = [](Listen& l, const Value& v) { l.tls.certificates = v.list; }},
    {.key = "tls.key",
     .type = list("FILES"),
     .example = "/etc/tubed/tls/key.pem",
     .doc = "The private key of each certificate, PEM without a passphrase, in files that others "
            "cannot read. The default is the certificate's own file.",
     .get = [](const Listen& l) { return given(l.tls.keys); },
     .set = [](Listen& l, const Value& v) { l.tls.keys = v.list; }},
    {.key = "tls.client_ca",
     .type = text("FILE"),
     .example = "/etc/tubed/tls/clients.pem",
     .doc = "Accept only clients with a certificate that one of these has signed.",
     .get = [](const Listen& l) { return given(l.tls.client_ca); },
     .set = [](Listen& l, const Value& v) { l.tls.client_ca = v.text; }},
    {.key = "tls.min_version",
     .type = choice(kTlsVersions),
     .example = "1.3",
     .doc = "The oldest version of TLS that is accepted. The default is 1.2.",
     .get = [](const Listen& l) { return given(static_cast<std::int64_t>(l.tls.min_version)); },
     .set = [](Listen& l,
               const Value& v) { l.tls.min_version = static_cast<TlsVersion>(v.number); }},
});

bool has_verb(const Value& value, std::string_view verb) {
  return std::ranges::find(value.list, verb) != value.list.end();
}

Value verbs_of(const RoleSettings& settings) {
  const Role& role = settings.role;
  std::vector<std::string> verbs;
  for (std::size_t i = 0; i < kVerbs.size(); ++i) {
    if (std::array{role.produce, role.work, role.inspect, role.admin}[i])
      verbs.emplace_back(kVerbs[i]);
  }
  return verbs;
}

void set_verbs(RoleSettings& settings, const Value& value) {
  settings.role.produce = has_verb(value, kVerbs[0]);
  settings.role.work = has_verb(value, kVerbs[1]);
  settings.role.inspect = has_verb(value, kVerbs[2]);
  settings.role.admin = has_verb(value, kVerbs[3]);
}

constexpr std::int64_t kMaxCount = 1'000'000'000;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

// `Member` of the limits of a role.
template <auto Member>
constexpr RoleKey limit(RoleKey row) {
  row.get = [](const RoleSettings& r) {
    return given(static_cast<std::int64_t>(r.role.limits.*Member));
  };
  row.set = [](RoleSettings& r, const Value& v) {
    auto& member = r.role.limits.*Member;
    member = static_cast<std::remove_reference_t<decltype(member)>>(v.number);
  };
  return row;
}

// `Member` is a list of texts that name clients.
template <auto Member>
constexpr RoleKey clients(RoleKey row) {
  row.get = [](const RoleSettings& r) { return given(r.*Member); };
  row.set = [](RoleSettings& r, const Value& v) { r.*Member = v.list; };
  return row;
}

constexpr auto kRoleKeys = std::to_array<RoleKey>({
    {.key = "name",
     .type = text_or_none("NAME"),  // its error names no default
     .required = true,
     .example = "worker",
     .doc = "The name of the role, for the log and for role of [[listen]].",
     .get = [](const RoleSettings& r) { return Value(r.role.name); },
     .set = [](RoleSettings& r, const Value& v) { r.role.name = v.text; }},
    {.key = "verbs",
     .type = {.kind = Kind::list, .unit = "VERBS", .choices = kVerbs, .may_be_empty = true},
     .required = true,
     .example = "produce,work",
     .doc = "The families of commands that its clients may use: produce, work, inspect, admin. "
            "Every other command is answered DENIED.",
     .get = verbs_of,
     .set = set_verbs},
    {.key = "tubes",
     .type = list("PATTERNS"),
     .example = "mail.*",
     .doc = "The tubes that its clients may use, as names or patterns like \"mail.*\". A job of "
            "another tube is NOT_FOUND for them. The default is all tubes.",
     .get = [](const RoleSettings& r) { return given(r.role.tubes); },
     .set = [](RoleSettings& r, const Value& v) { r.role.tubes = v.list; }},
    clients<&RoleSettings::tokens>(
        {.key = "tokens",
         .type = list_or_none("NAMES"),
         .example = "web-1",
         .doc = "The tokens that give the role, by their names in the file auth.tokens."}),
    clients<&RoleSettings::subjects>(
        {.key = "subjects",
         .type = list_or_none("SUBJECTS"),
         .example = "CN=worker",
         .doc = "The certificates that give the role with auth = \"mtls\": whole subjects in the "
                "form of RFC 2253, as openssl x509 -subject -nameopt RFC2253 prints them, or "
                "alternative names as DNS:NAME, email:ADDRESS or URI:URI. The names of a "
                "certificate go "
                "before its subject."}),
    clients<&RoleSettings::users>(
        {.key = "users",
         .type = list_or_none("USERS"),
         .example = "www-data",
         .doc = "The users whose processes have the role with auth = \"peer\": names or numbers."}),
    clients<&RoleSettings::groups>(
        {.key = "groups",
         .type = list_or_none("GROUPS"),
         .example = "mail",
         .doc = "The groups whose processes have the role with auth = \"peer\": names or numbers. "
                "A user's own role goes before those of its groups; a user whose groups are in "
                "several roles has none of them."}),
    limit<&RoleLimits::connections>(
        {.key = "max_connections",
         .type = count("connections", 1, kMaxCount),
         .example = "100",
         .doc =
             "Its clients at once. A further client is answered OUT_OF_MEMORY and disconnected."}),
    limit<&RoleLimits::job_bytes>(
        {.key = "max_job_bytes",
         .type = bytes(1, kMaxJobBytesCeiling),
         .example = "4KiB",
         .doc =
             "The largest body that its clients may put. A larger body is answered JOB_TOO_BIG."}),
    limit<&RoleLimits::put_rate>(
        {.key = "max_put_rate",
         .type = count("jobs a second", 1, kMaxCount),
         .example = "1000",
         .doc = "The jobs that its clients may put in a second, all together. A further put is "
                "answered OUT_OF_MEMORY."}),
    limit<&RoleLimits::job_memory>(
        {.key = "max_job_memory",
         .type = bytes(1, kMaxBytes),
         .example = "512MiB",
         .doc = "A put of its clients is answered OUT_OF_MEMORY while the jobs of the server, with "
                "those of other roles, use more memory than this. The rest of limits.job_memory is "
                "for other roles."}),
    limit<&RoleLimits::tubes>(
        {.key = "max_tubes",
         .type = count("tubes", 1, kMaxCount),
         .example = "1000",
         .doc = "A command of its clients that would create a tube is answered OUT_OF_MEMORY while "
                "the server has this many."}),
    limit<&RoleLimits::policies>(
        {.key = "max_policies",
         .type = count("values", 1, kMaxCount),
         .example = "100",
         .doc = "A tube-policy of its clients that would set a further value is answered "
                "OUT_OF_MEMORY while this many are set, with those of other roles."}),
});

}  // namespace

std::span<const ListenKey> listen_table() {
  return kListenKeys;
}
std::span<const RoleKey> role_table() {
  return kRoleKeys;
}

}  // namespace tubed::config
