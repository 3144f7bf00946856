// Takes all replies of a conversation, as a client that reads everything at once.
#pragma once

#include <string>
#include <string_view>

#include "protocol/reply.h"

namespace tubed::protocol {

inline std::string take_replies(ReplyBuffer& replies) {
  std::string all;
  while (!replies.empty()) {
    std::string_view piece;
    replies.pieces({&piece, 1});
    all.append(piece);
    replies.take(piece.size());
  }
  return all;
}

}  // namespace tubed::protocol
