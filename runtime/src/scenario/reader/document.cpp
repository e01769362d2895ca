#include "scenario/reader/document.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_in_word(char c) {
  const char letter = static_cast<char>(c | 0x20);
  return is_digit(c) || (letter >= 'a' && letter <= 'z') || c == '+' || c == '-' || c == '.' ||
         c == '_';
}

bool is_word(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [&lower](char found, char wanted) { return lower(found) == wanted; });
}

// True for a decimal number beyond the largest double; one that is too small is taken as 0.
bool is_too_large(std::string_view text) {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc::result_out_of_range || stop != end) return false;
  // Out of range on which side: the place of the first digit that counts, moved by the exponent.
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::size_t sign = std::min(e + 1, text.size());
  std::int64_t exponent = 0;
  const char* const digits = text.data() + sign + (text.substr(sign).starts_with('+') ? 1 : 0);
  if (std::from_chars(digits, end, exponent).ec == std::errc::result_out_of_range) {
    return !text.substr(sign).starts_with('-');
  }
  const std::size_t first = text.find_first_of("123456789");
  const std::size_t point = std::min(text.find('.'), e);
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return place > -exponent;
}

// "" unless the word was meant as a number and is none.
std::string number_defect(std::string_view word) {
  constexpr std::size_t kSafeDigits = 300;  // without an exponent
  if (word.size() < kSafeDigits && is_digit(word.front()) &&
      std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || c == '.'; })) {
    return {};
  }
  const std::string_view magnitude =
      word.starts_with('-') || word.starts_with('+') ? word.substr(1) : word;
  for (const std::string_view name : {"nan", "infinity", "inf"}) {
    if (is_word(magnitude, name)) return fmt::format("must be a finite number, got {}", word);
  }
  if (is_too_large(word)) return fmt::format("the number {} is too large", printable(word, 40));
  return {};
}

bool is_key(std::string_view rest) {
  const std::size_t next = rest.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && rest[next] == ':';
}

}  // namespace

std::vector<BadNumber> blank_bad_numbers(std::string& text) {
  std::vector<BadNumber> found;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && is_in_word(text[i])) {
      const auto stop =
          std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), is_in_word);
      const auto end = static_cast<std::size_t>(stop - text.begin());
      const std::string_view word = std::string_view(text).substr(i, end - i);
      std::string problem = number_defect(word);
      if (!problem.empty() && !is_key(std::string_view(text).substr(end))) {
        std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(i), end - i, ' ');
        text[i] = text[i + 1] = '"';  // every bad number has two characters or more
        if (found.size() < scenario_limits::kDefects) found.push_back({i + 2, std::move(problem)});
      }
      i = end - 1;
    }
  }
  return found;
}

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

 private:
  const char* at_;
  const char** latest_;
};

// Builds the document from the parser's events. Of duplicate keys the first is kept.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Builder(std::string_view text, const std::vector<BadNumber>& bad_numbers,
          const char* const& latest, Document& document)
      : text_(text), bad_numbers_(bad_numbers), latest_(latest), document_(document) {}

  bool null() { return put_last(nullptr); }
  bool boolean(bool value) { return put_last(value); }
  bool number_integer(number_integer_t value) { return put_last(value); }
  bool number_unsigned(number_unsigned_t value) { return put_last(value); }
  bool number_float(number_float_t value, const string_t&) { return put_last(value); }
  bool string(string_t& value) {
    if (value.empty()) note_bad_number();
    return put_last(std::move(value));
  }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    Level& level = levels_.back();
    const std::size_t first = offset_of_key(level, name);
    level.key = std::move(name);
    level.discards = first != 0;
    if (level.discards) {
      fail_duplicate(level.key, first, offset());
    } else {
      note_key(level);
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) {
    fail("", describe(position, token, error));
    return false;
  }

 private:
  struct Level {
    Json* value;
    std::string key;
    bool discards = false;
    std::vector<std::size_t> ends = {};  ///< of the keys of an object, in the order of its members
    std::unordered_map<std::string, std::size_t> places =
        {};  ///< the same by key, of large objects
  };
  static constexpr std::size_t kLargeObject = 16;

  // Where the key ends that `name` repeats; 0 when it repeats none.
  static std::size_t offset_of_key(const Level& level, const std::string& name) {
    if (!level.places.empty()) {
      const auto found = level.places.find(name);
      return found == level.places.end() ? 0 : found->second;
    }
    const auto& members = level.value->get_ref<const Json::object_t&>();
    for (std::size_t i = 0; i < members.size(); ++i) {
      if ((members.begin() + static_cast<std::ptrdiff_t>(i))->first == name) return level.ends[i];
    }
    return 0;
  }

  void note_key(Level& level) const {
    level.ends.push_back(offset());
    if (!level.places.empty()) {
      level.places.emplace(level.key, offset());
    } else if (level.ends.size() > kLargeObject) {
      std::size_t i = 0;
      for (const auto& member : level.value->get_ref<const Json::object_t&>()) {
        level.places.emplace(member.first, level.ends[i++]);
      }
      level.places.emplace(level.key, offset());
    }
  }

  bool is_full() const { return document_.issues.size() >= scenario_limits::kDefects; }

  void fail(std::string where, std::string what) {
    document_.issues.push_back({std::move(where), std::move(what)});
  }

  // Reports the number that the string just read stands in for, if any.
  void note_bad_number() {
    const std::size_t here = offset();
    while (next_ < bad_numbers_.size() && bad_numbers_[next_].end < here) ++next_;
    if (next_ == bad_numbers_.size() || bad_numbers_[next_].end != here || is_full()) return;
    fail(place(), bad_numbers_[next_].problem);
    document_.settled.insert(place());
  }

  std::size_t offset() const { return static_cast<std::size_t>(latest_ - text_.data()); }

  void fail_duplicate(const std::string& key, std::size_t first, std::size_t again) {
    if (is_full()) return;  // lines take a while to count
    fail(place(), fmt::format("duplicate key {}: first on line {}, again on line {}",
                              in_quotes(key), line_of(text_, first), line_of(text_, again)));
  }

  // A value that nothing follows in its place, so that its key is not needed any more.
  bool put_last(Json value) {
    if (levels_.empty() || levels_.back().discards || levels_.back().value->is_array()) {
      return put(std::move(value)) != nullptr;
    }
    auto& members = levels_.back().value->get_ref<Json::object_t&>();
    members.emplace_back(std::move(levels_.back().key), std::move(value));
    return true;
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
      fail("", fmt::format("{}: nested deeper than {} levels", line_and_column(text_, offset()),
                           scenario_limits::kNesting));
      return false;
    }
    levels_.push_back({put(std::move(container)), {}});
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
    if (found == ',' && after_comma) return "\nThere is one comma too many.";
    const bool starts_value = found == '"' || found == '{' || found == '[';
    if (starts_value && (reason.ends_with("expected '}'") || reason.ends_with("expected ']'"))) {
      return "\nIs there a comma missing before it?";
    }
    if (found == '/' || found == '#') return "\nJSON has no comments.";
    if (found == '\'') return "\nJSON quotes text with \".";
    return {};
  }

  std::string_view text_;
  const std::vector<BadNumber>& bad_numbers_;
  std::size_t next_ = 0;  ///< the first bad number that may lie ahead
  const char* const& latest_;
  Document& document_;
  std::vector<Level> levels_;
  std::deque<Json> discarded_;
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

}  // namespace

Document parse_document(std::string text) {
  Document document;
  if (std::string defect = text_defect(text); !defect.empty()) {
    document.issues.push_back({"", std::move(defect)});
    return document;
  }
  const std::vector<BadNumber> bad_numbers = blank_bad_numbers(text);
  const char* latest = text.data();
  Builder builder(text, bad_numbers, latest, document);
  document.readable =
      Json::sax_parse(CountingIterator(text.data(), &latest),
                      CountingIterator(text.data() + text.size(), &latest), &builder);
  return document;
}

}  // namespace portwave::scenario_file
