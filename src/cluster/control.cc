#include "cluster/control.h"

#include "cluster/envelope.h"

namespace tubed::cluster {

namespace {

enum ControlType : std::uint8_t {
  hello = kFirstControlType,
  welcome,
  request,
  response,
  challenge,
  proof
};

// The most bytes of a frame without its texts.
constexpr std::size_t kControlFixedBytes = 96;
// In a Hello: how the secret is proved. A nonce follows kHmacSha256.
constexpr std::uint8_t kNoProof = 0;
constexpr std::uint8_t kHmacSha256 = 1;

// A value of an enumeration that starts at 1.
template <class Value>
void put_value(FrameWriter& writer, Value value) {
  writer.put(static_cast<std::uint32_t>(value));
}

template <class Value>
bool take_value(FrameReader& reader, Value& value, Value last) {
  std::uint32_t number = 0;
  if (!reader.take(number) || number == 0 || number > static_cast<std::uint32_t>(last))
    return false;
  value = static_cast<Value>(number);
  return true;
}

template <class Value, class Put>
void put_list(FrameWriter& writer, const std::vector<Value>& list, Put put) {
  writer.put(static_cast<std::uint32_t>(list.size()));
  for (const Value& value : list) put(value);
}

// A list is not longer than the bytes that follow.
template <class Value, class Take>
bool take_list(FrameReader& reader, std::vector<Value>& list, Take take) {
  std::uint32_t count = 0;
  if (!reader.take(count)) return false;
  for (std::uint32_t number = 0; number < count; ++number) {
    if (!take(list.emplace_back())) return false;
  }
  return true;
}

bool take_settings(FrameReader& reader, std::vector<SettingDigest>& settings) {
  if (reader.at_end()) return true;
  return take_list(reader, settings, [&](SettingDigest& setting) {
    return settings.size() <= kMostSettingDigests && take_text(reader, setting.name) &&
           setting.name.size() <= kMostSettingName && reader.take(setting.digest);
  });
}

// Bytes that follow another scheme are those of a later version, as are those that follow the last
// field.
bool take_ending(FrameReader& reader, Hello& hello) {
  std::uint8_t scheme = kNoProof;
  if (!reader.take(scheme) || scheme > kHmacSha256) return true;
  std::string_view nonce;
  if (scheme == kHmacSha256 && !reader.take(nonce, kNonceBytes)) return false;
  hello.nonce = nonce;
  return take_settings(reader, hello.settings);
}

// The fields that are absent if they are empty.
void put_ending(FrameWriter& writer, const Hello& hello) {
  if (hello.nonce.empty() && hello.settings.empty()) return;
  writer.put(hello.nonce.empty() ? kNoProof : kHmacSha256);
  writer.append(hello.nonce);
  if (hello.settings.empty()) return;
  put_list(writer, hello.settings, [&](const SettingDigest& setting) {
    put_text(writer, setting.name);
    writer.put(setting.digest);
  });
}

void put_client(FrameWriter& writer, const ForwardedClient& client) {
  put_text(writer, client.address);
  put_text(writer, client.tls_name);
  put_text(writer, client.listener);
  writer.put(client.auth);
  put_text(writer, client.role);
  put_text(writer, client.subject);
  put_list(writer, client.names, [&](const std::string& name) { put_text(writer, name); });
  writer.put(std::uint8_t{client.has_process});
  writer.put(client.process);
  writer.put(client.user);
  put_list(writer, client.groups, [&](std::uint32_t group) { writer.put(group); });
}

bool take_client(FrameReader& reader, ForwardedClient& client) {
  std::uint8_t has_process = 0;
  const bool taken =
      take_text(reader, client.address) && take_text(reader, client.tls_name) &&
      take_text(reader, client.listener) && reader.take(client.auth) &&
      take_text(reader, client.role) && take_text(reader, client.subject) &&
      take_list(reader, client.names, [&](std::string& name) { return take_text(reader, name); }) &&
      reader.take(has_process) && has_process <= 1 && reader.take(client.process) &&
      reader.take(client.user) &&
      take_list(reader, client.groups, [&](std::uint32_t& group) { return reader.take(group); });
  client.has_process = has_process != 0;
  return taken;
}

std::string encode_bytes(ControlType type, std::string_view bytes) {
  FrameWriter writer(type, kControlFixedBytes);
  writer.append(bytes);
  return writer.finish();
}

std::optional<FrameReader> open(std::string_view frame, ControlType type) {
  auto reader = FrameReader::open(frame);
  if (reader && reader->type() != type) return std::nullopt;
  return reader;
}

}  // namespace

std::string encode(const Hello& frame) {
  FrameWriter writer(hello, kControlFixedBytes + frame.address.size() + frame.name.size());
  writer.put(frame.level);
  put_value(writer, frame.purpose);
  writer.put(frame.cluster);
  writer.put(frame.from);
  writer.put(frame.to);
  writer.put(frame.configuration_index);
  put_text(writer, frame.address);
  put_text(writer, frame.name);
  writer.put(std::uint8_t{frame.invites});
  if (frame.purpose == Purpose::client) put_client(writer, frame.client);
  put_ending(writer, frame);
  return writer.finish();
}

std::size_t encoded_bytes(const ForwardedClient& client) {
  FrameWriter writer(hello, 0);
  const std::size_t before = writer.bytes();
  put_client(writer, client);
  return writer.bytes() - before;
}

std::string encode(const Welcome& frame) {
  FrameWriter writer(welcome, kControlFixedBytes + frame.name.size());
  writer.put(frame.level);
  put_value(writer, frame.status);
  writer.put(frame.configuration_index);
  put_text(writer, frame.name);
  return writer.finish();
}

std::string encode(const Request& frame) {
  FrameWriter writer(request, kControlFixedBytes + frame.path.size() + frame.body.size());
  writer.put(std::uint16_t{0});
  put_text(writer, frame.path);
  put_text(writer, frame.body);
  return writer.finish();
}

std::string encode(const Response& frame) {
  FrameWriter writer(response, kControlFixedBytes + frame.body.size());
  writer.put(frame.status);
  put_text(writer, frame.body);
  return writer.finish();
}

std::string encode(const Challenge& frame) {
  return encode_bytes(challenge, frame.nonce);
}

std::string encode(const Proof& frame) {
  return encode_bytes(proof, frame.proof);
}

std::optional<Hello> decode_hello(std::string_view frame) {
  auto reader = open(frame, hello);
  Hello read;
  std::uint8_t invites = 0;
  if (!reader || !reader->take(read.level) || !take_value(*reader, read.purpose, Purpose::client) ||
      !reader->take(read.cluster) || !reader->take(read.from) || !reader->take(read.to) ||
      !reader->take(read.configuration_index) || !take_text(*reader, read.address) ||
      !take_text(*reader, read.name) || !reader->take(invites) || invites > 1 ||
      (read.purpose == Purpose::client && !take_client(*reader, read.client)) ||
      !take_ending(*reader, read)) {
    return std::nullopt;
  }
  read.invites = invites != 0;
  return read;
}

std::optional<Welcome> decode_welcome(std::string_view frame) {
  auto reader = open(frame, welcome);
  Welcome read;
  if (!reader || !reader->take(read.level) ||
      !take_value(*reader, read.status, WelcomeStatus::superseded) ||
      !reader->take(read.configuration_index) || !take_text(*reader, read.name)) {
    return std::nullopt;
  }
  return read;
}

std::optional<Request> decode_request(std::string_view frame) {
  auto reader = open(frame, request);
  Request read;
  std::uint16_t zero = 0;
  if (!reader || !reader->take(zero) || zero != 0 || !take_text(*reader, read.path) ||
      !take_text(*reader, read.body) || !reader->at_end()) {
    return std::nullopt;
  }
  return read;
}

std::optional<Response> decode_response(std::string_view frame) {
  auto reader = open(frame, response);
  Response read;
  if (!reader || !reader->take(read.status) || !take_text(*reader, read.body) ||
      !reader->at_end()) {
    return std::nullopt;
  }
  return read;
}

std::optional<Challenge> decode_challenge(std::string_view frame) {
  auto reader = open(frame, challenge);
  std::string_view nonce;
  if (!reader || !reader->take(nonce, kNonceBytes)) return std::nullopt;
  return Challenge{std::string(nonce)};
}

std::optional<Proof> decode_proof(std::string_view frame) {
  auto reader = open(frame, proof);
  std::string_view bytes;
  if (!reader || !reader->take(bytes, kProofBytes)) return std::nullopt;
  return Proof{std::string(bytes)};
}

}  // namespace tubed::cluster
