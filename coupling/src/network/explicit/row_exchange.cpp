#include "network/explicit/row_exchange.hpp"

#include <algorithm>
#include <numeric>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

RowExchange::RowExchange(NetworkPeers& peers, std::vector<int> rank_of_row,
                         std::span<const Reads> reads, int most_arrays)
    : peers_(peers), rank_of_row_(std::move(rank_of_row)), counts_(at(peers.size()), 0) {
  const int own = peers.rank();
  std::vector<std::vector<int>> sent(at(peers.size())), received(at(peers.size()));
  for (const Reads& read : reads) {
    read.map.for_entries([&](int i, int row) {
      if (at(row) >= rank_of_row_.size()) return;  // no row of this kind
      const int reader = read.rank_of_row[at(i)], owner = rank_of_row_[at(row)];
      if (owner == reader) return;
      if (owner == own) sent[at(reader)].push_back(row);
      if (reader == own) received[at(owner)].push_back(row);
    });
  }
  for (int rank = 0; rank < peers.size(); ++rank) {
    for (std::vector<int>* rows : {&sent[at(rank)], &received[at(rank)]}) {
      std::ranges::sort(*rows);
      const auto same = std::ranges::unique(*rows);
      rows->erase(same.begin(), same.end());
    }
    if (sent[at(rank)].empty() && received[at(rank)].empty()) continue;
    neighbours_.push_back({rank, std::move(sent[at(rank)]), std::move(received[at(rank)])});
  }
  for (int arrays = 1; arrays <= most_arrays; ++arrays) {
    std::vector<NetworkPeers::Neighbour> connected;
    for (const Neighbour& neighbour : neighbours_) {
      connected.push_back({neighbour.rank, at(arrays) * neighbour.sent.size(),
                           at(arrays) * neighbour.received.size()});
    }
    messages_.push_back(peers.connect(connected));
  }
  for (const int rank : rank_of_row_) ++counts_[at(rank)];
  own_.resize(counts_[at(own)]);
  all_.resize(rank_of_row_.size());
}

void RowExchange::begin(std::initializer_list<double*> arrays) {
  if (neighbours_.empty()) return;
  NetworkPeers::Messages& messages = *messages_[arrays.size() - 1];
  for (int n = 0; n < static_cast<int>(neighbours_.size()); ++n) {
    double* to = messages.outgoing(n).data();
    for (const double* const array : arrays) {
      for (const int row : neighbours_[at(n)].sent) *to++ = array[row];
    }
  }
  messages.send();
}

void RowExchange::finish(std::initializer_list<double*> arrays) {
  if (neighbours_.empty()) return;
  NetworkPeers::Messages& messages = *messages_[arrays.size() - 1];
  messages.receive();
  for (int n = 0; n < static_cast<int>(neighbours_.size()); ++n) {
    const double* from = messages.incoming(n).data();
    for (double* const array : arrays) {
      for (const int row : neighbours_[at(n)].received) array[row] = *from++;
    }
  }
  messages.release();
}

bool RowExchange::is_sent(int row) const {
  return std::ranges::any_of(neighbours_, [row](const Neighbour& own) {
    return std::ranges::binary_search(own.sent, row);
  });
}

void RowExchange::complete(double* array) {
  const int own = peers_.rank();
  const auto rows = static_cast<int>(rank_of_row_.size());
  std::size_t next = 0;
  for (int row = 0; row < rows; ++row) {
    if (rank_of_row_[at(row)] == own) own_[next++] = array[row];
  }
  peers_.gather(own_, counts_, all_);
  std::vector<std::size_t> from(counts_.size(), 0);
  std::exclusive_scan(counts_.begin(), counts_.end(), from.begin(), std::size_t{0});
  for (int row = 0; row < rows; ++row) array[row] = all_[from[at(rank_of_row_[at(row)])]++];
}

std::size_t RowExchange::bytes() const {
  std::size_t sum =
      (own_.capacity() + all_.capacity()) * sizeof(double) + rank_of_row_.capacity() * sizeof(int);
  for (const Neighbour& own : neighbours_) {
    sum += (own.sent.capacity() + own.received.capacity()) * sizeof(int);
  }
  return sum;
}

std::vector<int> ranks_of_blocks(const SharedRows& rows, std::span<const double> place, int ranks) {
  std::vector<int> order(at(rows.count()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int block) { return place[at(block)]; });
  std::vector<int> rank_of_block(order.size());
  const int all = rows.end(rows.count() - 1);
  double before = 0.0;
  for (const int block : order) {
    const double count = rows.end(block) - rows.first(block);
    rank_of_block[at(block)] =
        std::clamp(static_cast<int>(ranks * (before + 0.5 * count) / all), 0, ranks - 1);
    before += count;
  }
  return rank_of_block;
}

std::vector<int> ranks_of_rows(const SharedRows& rows, std::span<const int> ranks_of_blocks) {
  std::vector<int> ranks;
  for (int block = 0; block < rows.count(); ++block) {
    ranks.insert(ranks.end(), at(rows.end(block) - rows.first(block)), ranks_of_blocks[at(block)]);
  }
  return ranks;
}

}  // namespace portwave
