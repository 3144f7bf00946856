#include "cluster/leader_frames.h"

namespace tubed::cluster {

void LeaderFrames::heard(NodeId leader, Term term, Time sent) {
  Heard& heard = heard_[leader];
  if (term != heard.term || sent > heard.sent) heard = {.term = term, .sent = sent};
}

Time LeaderFrames::newest(NodeId leader, Term term) const {
  const auto heard = heard_.find(leader);
  return heard != heard_.end() && heard->second.term == term ? heard->second.sent : Time();
}

std::optional<Message> LeaderFrames::take(const Part& part) {
  const auto whole = assembly_.take(part);
  if (!whole) return std::nullopt;
  auto message = decode(*whole);
  const bool is_append = message && message->type == MessageType::append &&
                         message->cluster == part.cluster && message->from == part.from &&
                         message->to == part.to && message->term == part.term;
  if (!is_append) return std::nullopt;
  message->sent = part.sent;
  return message;
}

}  // namespace tubed::cluster
