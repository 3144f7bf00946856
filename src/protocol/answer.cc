#include "protocol/answer.h"

#include "base/overloaded.h"

namespace tubed::protocol {

void render(const Answer& answer, ReplyBuffer& replies) {
  std::visit(Overloaded{[&](const Status& status) { replies.line(status.word); },
                        [&](const Number& number) { replies.line(number.word, number.value); },
                        [&](const Name& name) { replies.line(name.word, name.name); },
                        [&](const JobAnswer& job) { replies.job(job.word, job.id, job.body); },
                        [&](const TextBlock& block) { replies.block(block.text); },
                        [&](const BlockPart& part) {
                          if (part.block_bytes) replies.begin_block(*part.block_bytes);
                          replies.block_part(part.text);
                          if (part.last) replies.end_block();
                        },
                        [](Waiting) {}, [](Unfinished) {}, [](Close) {}},
             answer);
}

}  // namespace tubed::protocol
