#include "scenario_document.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "scenario_limits.hpp"
#include "scenario_text.hpp"

namespace portwave::scenario_file {
namespace {

// Reads the text and tells how far the parser has come; nlohmann's events carry no positions.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** latest) : at_(at), latest_(latest) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *latest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ != b.at_;
  }

 private:
  const char* at_;
  const char** latest_;
};

// A value that is no JSON number but was meant as one: [begin, end) of the text.
struct BadNumber {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string problem;
};

// Builds the document from the parser's events. Of duplicate keys the first is kept.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Builder(std::string_view text, const char* const& latest, Document& document)
      : text_(text), latest_(latest), document_(document) {}

  bool null() { return put(nullptr) != nullptr; }
  bool boolean(bool value) { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) { return put(value) != nullptr; }
  bool string(string_t& value) { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    Level& level = levels_.back();
    level.key = name;
    const std::size_t end = static_cast<std::size_t>(latest_ - text_.data());
    const auto [seen, is_new] = level.keys.emplace(name, end);
    level.discards = !is_new;
    if (level.discards) fail_duplicate(name, seen->second, end);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) {
    bad_number_ = find_bad_number(position, token, error);
    if (bad_number_) {
      fail(place(), bad_number_->problem);
      document_.settled.insert(place());
    } else {
      fail("", describe(position, token, error));
    }
    return false;
  }

  const std::optional<BadNumber>& bad_number() const { return bad_number_; }

 private:
  struct Level {
    Json* value;
    std::string key;
    bool discards = false;
    std::unordered_map<std::string, std::size_t> keys;
  };

  bool is_full() const { return document_.issues.size() >= scenario_limits::kDefects; }

  void fail(std::string where, std::string what) {
    document_.issues.push_back({std::move(where), std::move(what)});
  }

  void fail_duplicate(const std::string& key, std::size_t first, std::size_t again) {
    if (is_full()) return;  // lines take a while to count
    fail(place(), fmt::format("duplicate key {}: first on line {}, again on line {}",
                              in_quotes(key), line_of(text_, first), line_of(text_, again)));
  }

  Json* put(Json value) {
    if (levels_.empty()) {
      document_.root = std::move(value);
      return &document_.root;
    }
    Level& level = levels_.back();
    if (level.discards) return &discarded_.emplace_back(std::move(value));
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    auto& members = level.value->get_ref<Json::object_t&>();
    return &members.emplace_back(level.key, std::move(value)).second;
  }

  bool open(Json container) {
    if (levels_.size() >= static_cast<std::size_t>(scenario_limits::kNesting)) {
      fail("", fmt::format("{}: nested deeper than {} levels",
                           line_and_column(text_, static_cast<std::size_t>(latest_ - text_.data())),
                           scenario_limits::kNesting));
      return false;
    }
    levels_.push_back({put(std::move(container)), {}, false, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  // The JSON pointer of the value that is being read.
  std::string place() const {
    std::string pointer;
    for (const Level& level : levels_) {
      pointer += '/';
      pointer += level.value->is_array() ? std::to_string(index_in(level)) : escape_key(level.key);
    }
    return pointer;
  }

  // An open container is already the last element of the array that holds it.
  std::size_t index_in(const Level& level) const {
    return &level == &levels_.back() ? level.value->size() : level.value->size() - 1;
  }

  // Where the token that ends before `position` begins.
  std::size_t token_begin(std::size_t position, const std::string& token) const {
    constexpr std::string_view kPunctuation = "{}[]:,";
    const char last = text_[position - 1];
    if (kPunctuation.find(last) != std::string_view::npos) return position - 1;
    if (last == '"') return position - std::min(position, token.size());
    const auto is_in_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
    };
    std::size_t begin = position - 1;
    while (begin > 0 && is_in_word(last) && is_in_word(text_[begin - 1])) --begin;
    return begin;
  }

  std::optional<BadNumber> find_bad_number(std::size_t position, const std::string& token,
                                           const nlohmann::detail::exception& error) const {
    const std::string_view message = error.what();
    const bool in_key = message.find("object key") != std::string_view::npos;
    if (position == 0 || position > text_.size() || in_key) return std::nullopt;
    const std::size_t begin = token_begin(position, token);
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      const std::string number = printable(text_.substr(begin, position - begin), 40);
      return BadNumber{begin, position, fmt::format("the number {} is too large", number)};
    }
    constexpr std::array<std::string_view, 3> kWords = {"nan", "infinity", "inf"};
    const bool is_signed = text_[begin] == '-' || text_[begin] == '+';
    const std::string_view rest = text_.substr(begin);
    for (const std::string_view word : kWords) {
      const std::size_t length = word.size() + (is_signed ? 1 : 0);
      if (!starts_with_word(rest.substr(is_signed ? 1 : 0), word)) continue;
      return BadNumber{begin, begin + length,
                       fmt::format("must be a finite number, got {}", rest.substr(0, length))};
    }
    return std::nullopt;
  }

  static bool starts_with_word(std::string_view text, std::string_view word) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    const bool matches =
        text.size() >= word.size() &&
        std::equal(word.begin(), word.end(), text.begin(),
                   [&lower](char wanted, char found) { return wanted == lower(found); });
    return matches && (text.size() == word.size() ||
                       std::isalnum(static_cast<unsigned char>(text[word.size()])) == 0);
  }

  std::string describe(std::size_t position, const std::string& token,
                       const nlohmann::detail::exception& error) const {
    if (position > text_.size()) {
      const std::size_t last = text_.find_last_not_of(" \t\r\n");
      return fmt::format("{}: the file ends too early{}", line_and_column(text_, last + 1),
                         enclosing());
    }
    const std::string reason = reason_of(error.what());
    const bool is_unexpected = reason.starts_with("unexpected");
    const bool is_literal = reason.starts_with("invalid literal");
    const std::size_t begin =
        is_unexpected || is_literal ? token_begin(position, token) : position - 1;
    const std::string_view line = text_.substr(begin, text_.find('\n', begin) - begin);
    return fmt::format("{}: this is not JSON: {}, at '{}'{}", line_and_column(text_, begin), reason,
                       printable(line, 30), hint(begin, reason));
  }

  // "unexpected '}'; expected string literal": nlohmann's message without what it has read so far,
  // which may be several tokens.
  static std::string reason_of(std::string_view message) {
    const std::size_t dash = message.find(" - ");
    if (dash != std::string_view::npos) message.remove_prefix(dash + 3);
    const std::size_t read = message.find("; last read: ");
    if (read == std::string_view::npos) return printable(message, 200);
    const std::size_t expected = message.rfind("; expected ");
    std::string reason(message.substr(0, read));
    if (expected != std::string_view::npos && expected > read) reason += message.substr(expected);
    return printable(reason, 200);
  }

  // " inside /subsystems/0", the object or array that is still open.
  std::string enclosing() const {
    std::string pointer = place();
    if (pointer.empty()) return {};
    pointer.resize(pointer.rfind('/'));
    return pointer.empty() ? "" : " inside " + pointer;
  }

  // What people mean when they write what is at `begin`.
  std::string hint(std::size_t begin, const std::string& reason) const {
    const char found = text_[begin];
    const std::size_t before = text_.substr(0, begin).find_last_not_of(" \t\r\n");
    const bool after_comma = before != std::string_view::npos && text_[before] == ',';
    if ((found == '}' || found == ']') && after_comma) {
      return "\nThe comma before it is one too many.";
    }
    const bool starts_value = found == '"' || found == '{' || found == '[';
    if (starts_value && (reason.ends_with("expected '}'") || reason.ends_with("expected ']'"))) {
      return "\nIs there a comma missing before it?";
    }
    if (found == '/' || found == '#') return "\nJSON has no comments.";
    if (found == '\'') return "\nJSON quotes text with \".";
    return {};
  }

  std::string_view text_;
  const char* const& latest_;
  Document& document_;
  std::vector<Level> levels_;
  std::deque<Json> discarded_;
  std::optional<BadNumber> bad_number_;
};

// What makes the text unfit for a JSON parser; "" if nothing.
std::string text_defect(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view content = text;
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  if (content.find_first_not_of(" \t\r\n") == std::string_view::npos) return "the file is empty";
  if (const auto offset = find_invalid_utf8(text)) {
    return fmt::format("{}: byte 0x{:02x} is not UTF-8", line_and_column(text, *offset),
                       static_cast<unsigned>(static_cast<unsigned char>(text[*offset])));
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return fmt::format("{}: a zero byte; this is not a text file", line_and_column(text, zero));
  }
  return {};
}

// One pass. A bad number is reported and blanked out, so that the next pass gets beyond it.
bool parse_once(std::string& text, Document& document) {
  const char* latest = text.data();
  Builder builder(text, latest, document);
  const bool readable =
      Json::sax_parse(CountingIterator(text.data(), &latest),
                      CountingIterator(text.data() + text.size(), &latest), &builder);
  if (!builder.bad_number()) {
    document.readable = readable;
    return true;
  }
  const BadNumber& bad = *builder.bad_number();
  text.replace(bad.begin, bad.end - bad.begin, bad.end - bad.begin, ' ');
  text.replace(bad.begin, 2, "\"\"");
  return false;
}

}  // namespace

Document parse_document(std::string text) {
  Document document;
  if (std::string defect = text_defect(text); !defect.empty()) {
    document.issues.push_back({"", std::move(defect)});
    return document;
  }
  constexpr int kPasses = 50;
  Issues numbers;
  for (int pass = 0; pass < kPasses; ++pass) {
    const bool done = parse_once(text, document);
    if (done) break;
    // The next pass finds all but the bad number again.
    numbers.push_back(document.issues.back());
    document.issues.clear();
  }
  document.issues.insert(document.issues.end(), numbers.begin(), numbers.end());
  return document;
}

}  // namespace portwave::scenario_file
