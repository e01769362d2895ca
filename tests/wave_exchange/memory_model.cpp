#include "memory_model.hpp"

#include <cstring>
#include <stdexcept>

namespace portwave::weak_memory {

Memory::Memory(int threads, int cells, const std::vector<int>& initial_values)
    : views_(threads), cells_(cells), locations_(int(initial_values.size())) {
  if (locations_ > kAtomics || cells * (1 + threads) > kKnowledge) {
    throw std::length_error("the memory model is built for fewer locations");
  }
  for (int value : initial_values)
    messages_.push_back({.value = std::uint8_t(value), .carried = {}});
  for (int i = 0; i <= kAtomics; ++i) begin_[i] = std::uint16_t(std::min(i, locations_));
  // Everything was constructed before the threads were started.
  for (View& view : views_) {
    for (int cell = 0; cell < cells; ++cell) view.known.set(written(cell));
  }
}

int Memory::load(int thread, int location, Order order, Choices& choices) {
  const int newest = size(location) - 1;
  const int i = newest - choices.stale(newest - views_[thread].oldest[location] + 1);
  take(thread, location, i, order);
  return message(location, i).value;
}

void Memory::store(int thread, int location, int value, Order order, Choices& choices) {
  const int before = choose_unbound(thread, location, choices);
  Message added{.value = std::uint8_t(value), .carried = {}};
  if (releases(order)) added.carried = views_[thread];
  insert(thread, location, before + 1, added);
}

int Memory::exchange_if(int thread, int location, int expected, int desired, Order order,
                        Choices& choices) {
  std::array<int, Choices::kLargest> readable{};
  int count = 0;
  for (int i = size(location) - 1; i >= views_[thread].oldest[location]; --i) {
    if (message(location, i).value != expected || !bound(location, i)) readable.at(count++) = i;
  }
  const int i = readable[choices.stale(count)];
  const int seen = message(location, i).value;
  if (seen == expected) {
    replace(thread, location, i, desired, order);
  } else {
    take(thread, location, i, Order::relaxed);
  }
  return seen;
}

bool Memory::can_exchange(int thread, int location, int expected) const {
  for (int i = size(location) - 1; i >= views_[thread].oldest[location]; --i) {
    if (message(location, i).value == expected && !bound(location, i)) return true;
  }
  return false;
}

/// A message behind which there is room.
int Memory::choose_unbound(int thread, int location, Choices& choices) {
  std::array<int, Choices::kLargest> unbound{};
  int count = 0;
  for (int i = size(location) - 1; i >= views_[thread].oldest[location]; --i) {
    if (!bound(location, i)) unbound.at(count++) = i;
  }
  return unbound[choices.stale(count)];
}

void Memory::replace(int thread, int location, int i, int value, Order order) {
  Message added{
      .value = std::uint8_t(value), .follows_read = true, .carried = message(location, i).carried};
  take(thread, location, i, order);
  if (releases(order)) added.carried.join(views_[thread]);
  insert(thread, location, i + 1, added);
}

void Memory::take(int thread, int location, int i, Order order) {
  View& view = views_[thread];
  view.oldest[location] = std::max(view.oldest[location], std::uint8_t(i));
  if (acquires(order)) view.join(message(location, i).carried);
}

void Memory::insert(int thread, int location, int i, Message added) {
  const auto shift = [&](View& view) {
    if (view.oldest[location] >= i) ++view.oldest[location];
  };
  for (View& view : views_) shift(view);
  for (Message& m : messages_) shift(m.carried);
  shift(added.carried);
  messages_.insert(messages_.begin() + begin_[location] + i, added);
  for (int l = location + 1; l <= kAtomics; ++l) ++begin_[l];
  views_[thread].oldest[location] = std::uint8_t(i);
}

int Memory::read(int thread, int cell, const char* name) {
  Knowledge& known = views_[thread].known;
  if (!known.has(written(cell))) {
    throw Violation{std::string("data race: ") + name + " is read while it is written"};
  }
  cells_[cell].readers |= std::uint8_t(1 << thread);
  forget(read_by(cell, thread));
  known.set(read_by(cell, thread));
  return cells_[cell].value;
}

void Memory::write(int thread, int cell, int value, const char* name) {
  Knowledge& known = views_[thread].known;
  if (!known.has(written(cell))) {
    throw Violation{std::string("data race: ") + name + " is written by two threads"};
  }
  for (int reader = 0; reader < int(views_.size()); ++reader) {
    if ((cells_[cell].readers >> reader & 1) && !known.has(read_by(cell, reader))) {
      throw Violation{std::string("data race: ") + name + " is written while it is read"};
    }
    forget(read_by(cell, reader));
  }
  forget(written(cell));
  known.set(written(cell));
  cells_[cell] = {.value = std::uint8_t(value), .readers = 0};
}

void Memory::forget(int bit) {
  for (View& view : views_) view.known.clear(bit);
  for (Message& m : messages_) m.carried.known.clear(bit);
}

void Memory::make_canonical() {
  View common = views_[0];  // what every thread has seen
  for (const View& view : views_) {
    for (int l = 0; l < locations_; ++l) {
      common.oldest[l] = std::min(common.oldest[l], view.oldest[l]);
    }
    for (std::size_t w = 0; w < common.known.words.size(); ++w) {
      common.known.words[w] &= view.known.words[w];
    }
  }
  int kept = 0;
  for (int l = 0; l < locations_; ++l) {
    const int begin = begin_[l], end = begin_[l + 1];
    begin_[l] = std::uint16_t(kept);
    for (int i = begin + common.oldest[l]; i < end; ++i) messages_[kept++] = messages_[i];
    // Nothing goes before the first message, so what it was bound to does not matter.
    messages_[begin_[l]].follows_read = false;
    begin_[l + 1] = std::uint16_t(end);
  }
  for (int l = locations_; l <= kAtomics; ++l) begin_[l] = std::uint16_t(kept);
  messages_.resize(kept);
  const auto reduce = [&](View& view) {
    for (int l = 0; l < locations_; ++l) {
      view.oldest[l] = std::uint8_t(std::max(view.oldest[l] - common.oldest[l], 0));
    }
  };
  for (View& view : views_) reduce(view);
  for (int l = 0; l < locations_; ++l) {
    for (int i = 0; i < size(l); ++i) {
      View& carried = message(l, i).carried;
      reduce(carried);
      carried.oldest[l] = 0;  // whoever reads the message has come this far
      carried.known.join(common.known);
    }
  }
}

void Memory::append_to(std::vector<std::uint8_t>& key) const {
  const std::size_t known_words = (cells_.size() * (1 + views_.size()) + 31) / 32;
  const auto append = [&](const void* from, std::size_t bytes) {
    const std::size_t at = key.size();
    key.resize(at + bytes);
    std::memcpy(key.data() + at, from, bytes);
  };
  const auto append_view = [&](const View& view) {
    append(view.oldest.data(), std::size_t(locations_));
    append(view.known.words.data(), known_words * sizeof(std::uint32_t));
  };
  for (const View& view : views_) append_view(view);
  append(cells_.data(), cells_.size() * sizeof(Cell));
  append(begin_.data(), begin_.size() * sizeof begin_[0]);
  for (const Message& m : messages_) {
    key.push_back(m.value);
    key.push_back(std::uint8_t(m.follows_read));
    append_view(m.carried);
  }
}

}  // namespace portwave::weak_memory
