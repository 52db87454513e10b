#include "validate/real_mail.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "ranks.hpp"
#include "strategies/worker.hpp"
#include "validate/letter.hpp"

namespace stepcast {
namespace {

Message letter(int from, int tag, double value) {
  Message message;
  message.from = from;
  message.tag = tag;
  message.value = value;
  message.buffer = {Array::parameters, {3, 5}, {8}};
  return message;
}

/// Asks and waits.
Message received(RealMail& mail, Completions& completions, int tag, int role,
                 std::vector<float>* payload = nullptr) {
  const auto operation = std::make_shared<Operation>();
  mail.receive(tag, role, operation, [payload](const Buffer&) {
    return payload == nullptr ? std::span<float>() : std::span<float>(*payload);
  });
  Pending done;
  while (!(done = completions.next())) {
  }
  return done->message;
}

}  // namespace

TEST_CASE("mail brings messages whole, by tag and role, in the order of their sender", "[validate][mail]") {
  const std::string kind = GENERATE("memory", "sockets");
  constexpr std::size_t kLong = 300'000;  // more than a ring of memory holds
  run_ranks(kind, 3, [&](Transport& transport, Transport& other) {
    Completions completions;
    {
      RealMail mail(transport);
      mail.begin(1, completions);
      if (transport.rank() > 0) {
        std::vector<float> payload(kLong);
        std::iota(payload.begin(), payload.end(), static_cast<float>(transport.rank()));
        for (int i = 0; i < 3; ++i) mail.send(0, letter(transport.rank(), 7, i), payload, nullptr);
        mail.send(0, letter(transport.rank(), 8, 100), {}, nullptr);
        received(mail, completions, 9, 0);
      } else {
        CHECK(received(mail, completions, 8, 2).value == 100);  // overtakes what nobody has asked for
        std::vector<float> payload(kLong);
        for (int i = 0; i < 3; ++i) {
          const Message message = received(mail, completions, 7, 2, &payload);
          CHECK(message.value == i);
          CHECK(message.from == 2);
          CHECK(message.buffer.elements.begin == 3);
          CHECK(payload.front() == 2);
          CHECK(payload.back() == 2 + static_cast<float>(kLong) - 1);
        }
        for (int i = 0; i < 3; ++i) CHECK(received(mail, completions, 7, kAnyone).value == i);
        const auto sent = std::make_shared<Operation>();
        mail.send(1, letter(0, 9, 0), {}, sent);
        mail.send(2, letter(0, 9, 0), {}, sent);
        int posted = 0;
        while (posted < 2) posted += completions.next() == sent ? 1 : 0;
      }
      barrier(other);  // nobody hangs up before all has come
    }
  });
}

TEST_CASE("who waits for anyone gets the letter that is first complete, not the one that began first",
          "[validate][mail]") {
  constexpr std::size_t kLong = 50'000;
  run_ranks("memory", 3, [&](Transport& transport, Transport& other) {
    Completions completions;
    std::vector<float> payload(kLong, static_cast<float>(transport.rank()));
    if (transport.rank() == 1) {  // without mail: half a letter, and the rest when the other one has come
      const Letter slow = letter_of(letter(1, 7, 1), 1, kLong);
      send(transport, 0, slow.header.data(), kLetterHeader);
      send(transport, 0, payload.data(), kLong / 2);
      barrier(other);
      barrier(other);
      send(transport, 0, payload.data(), kLong / 2);
    } else {
      RealMail mail(transport);
      mail.begin(1, completions);
      if (transport.rank() == 2) {
        barrier(other);
        mail.send(0, letter(2, 7, 2), payload, nullptr);
        received(mail, completions, 9, 0);
        barrier(other);
      } else {
        const auto first = std::make_shared<Operation>();
        const auto into = [&payload](const Buffer&) { return std::span<float>(payload); };
        mail.receive(7, kAnyone, first, into);
        barrier(other);
        while (completions.next() != first) {
        }
        CHECK(first->message.from == 2);
        CHECK(payload == std::vector<float>(kLong, 2));
        mail.send(2, letter(0, 9, 0), {}, nullptr);
        barrier(other);
        CHECK(received(mail, completions, 7, kAnyone, &payload).from == 1);
        CHECK(payload == std::vector<float>(kLong, 1));
      }
      barrier(other);
      return;
    }
    barrier(other);
  });
}

TEST_CASE("letters of an earlier run are not delivered in a later one", "[validate][mail]") {
  run_ranks("memory", 2, [&](Transport& transport, Transport& other) {
    Completions completions;
    RealMail mail(transport);
    mail.begin(1, completions);
    if (transport.rank() == 1) {
      mail.send(0, letter(1, 5, 1), {}, nullptr);
      mail.begin(2, completions);
      mail.send(0, letter(1, 5, 2), {}, nullptr);
      received(mail, completions, 6, 0);
    } else {
      mail.begin(2, completions);
      CHECK(received(mail, completions, 5, 1).value == 2);
      const auto sent = std::make_shared<Operation>();
      mail.send(1, letter(0, 6, 0), {}, sent);
      while (completions.next() != sent) {
      }
    }
    barrier(other);
  });
}

}  // namespace stepcast
