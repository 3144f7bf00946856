// ClusterSecrets: the secrets with which the nodes of a cluster prove that they belong to it
// (cluster.secret_file).
//
// A node proves with the first secret and accepts each, so a secret can be changed node by node.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tubed::node {

using ClusterSecret = std::array<unsigned char, 32>;

class ClusterSecrets {
 public:
  static constexpr std::size_t kMost = 2;

  // Reads lines "tbc_" and 43 letters, digits, - and _: 32 bytes in base64url. Empty lines and
  // those that begin with # are comments. `file` is the name of the file in errors, which are one
  // line without the secrets. At least one and at most kMost, which differ. [tubectl cluster
  // secret]
  static Result<ClusterSecrets> parse(std::string_view text, const std::string& file);
  // Reads a file that only its owner can read. An empty path: no secrets.
  static Result<ClusterSecrets> read(const std::string& file);

  bool empty() const { return secrets_.empty(); }
  // In the order of the file.
  const std::vector<ClusterSecret>& all() const { return secrets_; }
  bool contains(const ClusterSecret& secret) const;

  friend bool operator==(const ClusterSecrets&, const ClusterSecrets&) = default;

 private:
  std::vector<ClusterSecret> secrets_;
};

}  // namespace tubed::node
