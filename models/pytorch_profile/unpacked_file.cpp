#include "models/pytorch_profile/unpacked_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kLargestText = 4'000'000'000;  // bytes; 20 steps of a large network take some 1e9
constexpr std::size_t kLargestToken = 4'000'000;      // bytes

}  // namespace

UnpackedFile::UnpackedFile(const std::string& name)
    : name_(name), file_(gzopen(name.c_str(), "rb"), gzclose) {
  if (!file_) refuse("cannot read this file");
  gzbuffer(file_.get(), 1 << 17);
  refill();
}

void UnpackedFile::refill() {
  if (read_ > kLargestText)
    refuse(fmt::format("holds more than {} GB of JSON; profile fewer steps", kLargestText / 1'000'000'000));
  if (read_ - token_start_ > kLargestToken) refuse("holds a text of more than 4 MB; it is not a profile");
  int count = gzread(file_.get(), buffer_.data(), buffer_.size());
  int error = Z_OK;
  const char* text = gzerror(file_.get(), &error);
  if (error == Z_BUF_ERROR) refuse("the gzip data end too early: the file is truncated");
  if (count < 0 || error != Z_OK) refuse(fmt::format("cannot be unpacked: {}", text));
  read_ += count;
  replace_words(buffer_.data(), buffer_.data() + count);
  if (count == 0) {
    ended_ = true;
    buffer_[0] = '\0';
    count = 1;
  }
  next_ = buffer_.data();
  end_ = next_ + count;
}

/// Programs write what is no number as inf, NaN or N/A. Each becomes "" and spaces of the same length.
void UnpackedFile::replace_words(char* begin, char* end) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '/'; };
  const auto after = [&](const char* c) {
    if (c + 1 < end) return c[1];
    const int next = gzgetc(file_.get());
    if (next >= 0) gzungetc(next, file_.get());
    return static_cast<char>(std::max(next, 0));
  };
  for (char* c = begin; c < end; ++c) {
    if (in_text_) {
      if (!escaped_ && *c == '"') in_text_ = false;
      escaped_ = !escaped_ && *c == '\\';
    } else if (in_word_ && is_letter(*c)) {
      *c = opened_ ? '"' : ' ';
      opened_ = false;
    } else {
      in_word_ = *c == 'N' || *c == 'I' || *c == 'i' || (*c == 'n' && after(c) == 'a') ||
                 (*c == '-' && is_letter(after(c)));
      opened_ = in_word_;
      in_text_ = *c == '"';
      if (in_word_) *c = '"';
    }
  }
}

void UnpackedFile::refuse(const std::string& why) const {
  throw InputError(fmt::format("{}: {}", name_, why));
}

}  // namespace stepcast
