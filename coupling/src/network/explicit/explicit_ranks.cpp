// Islands on several ranks.

#include <algorithm>
#include <array>
#include <string>

#include "network/explicit/explicit_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

bool ExplicitStepper::share_among(NetworkPeers& peers) {
  std::vector<int> ranks(islands_.size(), kEvery);
  double all = 0.0, before = 0.0;
  int whole = 0;
  for (const auto& island : islands_) {
    if (island->can_share_rows()) continue;
    ++whole;
    all += island->cost_ns();
  }
  if (islands_.empty() || (whole == 1 && islands_.size() == 1)) return false;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (islands_[i]->can_share_rows()) continue;
    const double own = islands_[i]->cost_ns();
    const double place = all > 0.0 ? (before + 0.5 * own) / all : 0.0;
    ranks[i] = std::clamp(static_cast<int>(peers.size() * place), 0, peers.size() - 1);
    before += own;
  }
  peers_ = &peers;
  rank_of_island_ = std::move(ranks);
  has_whole_islands_ = whole > 0;
  // Those that take all ranks first, in one order.
  sharing_.clear();
  alone_.clear();
  for (int i = 0; i < static_cast<int>(islands_.size()); ++i) {
    if (!is_of_all(at(i))) continue;
    islands_[at(i)]->share_among(peers);
    sharing_.push_back(i);
  }
  for (int i = 0; i < static_cast<int>(islands_.size()); ++i) {
    if (is_own(at(i))) (islands_[at(i)]->tasks() > 1 ? sharing_ : alone_).push_back(i);
  }
  return true;
}

void ExplicitStepper::agree_on(const std::optional<NetworkFault>& fault) {
  constexpr std::size_t kNote = 4;  // part, iteration, fault or −1, length of the text
  const std::string text = fault ? fault->what() : "";
  const double own[kNote] = {fault ? fault->part() : 0.0, fault ? fault->iteration() : 0.0,
                             fault ? static_cast<double>(static_cast<int>(fault->fault())) : -1.0,
                             static_cast<double>(text.size())};
  const auto size = at(peers_->size());
  std::vector<double> all(kNote * size);
  peers_->gather(own, std::vector<std::size_t>(size, kNote), all);
  std::size_t first = size;
  std::vector<std::size_t> lengths;
  for (std::size_t rank = size; rank-- > 0;) {
    if (all[kNote * rank + 2] >= 0.0) first = rank;
  }
  if (first == size) return;
  std::size_t begin = 0, sum = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    lengths.push_back(static_cast<std::size_t>(all[kNote * rank + 3]));
    if (rank < first) begin += lengths.back();
    sum += lengths.back();
  }
  std::vector<double> letters(text.begin(), text.end()), texts(sum);
  peers_->gather(letters, lengths, texts);
  std::string what;
  for (std::size_t k = begin; k < begin + lengths[first]; ++k) {
    what.push_back(static_cast<char>(texts[k]));
  }
  const double* const note = all.data() + kNote * first;
  throw NetworkFault(static_cast<int>(note[0]), static_cast<int>(note[1]),
                     static_cast<StepFault>(static_cast<int>(note[2])), what);
}

/// Of islands that one rank steps: what it gives all others take.
void ExplicitStepper::gather_of_islands(const Give& give, const Take& take) {
  if (peers_ == nullptr || !has_whole_islands_) return;
  auto& [own, one, all, counts] = gathered_;
  own.clear();
  counts.assign(at(peers_->size()), 0);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (is_of_all(i)) continue;
    one.clear();
    give(i, one);  // of others for the size alone
    counts[at(rank_of_island_[i])] += one.size();
    sum += one.size();
    if (is_own(i)) own.insert(own.end(), one.begin(), one.end());
  }
  all.resize(sum);
  peers_->gather(own, counts, all);
  const double* in = all.data();
  for (int rank = 0; rank < peers_->size(); ++rank) {
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      if (rank_of_island_[i] == rank) in = take(i, in);
    }
  }
}

void ExplicitStepper::share_energies() {
  gather_of_islands(
      [&](std::size_t i, std::vector<double>& out) {
        const IslandEnergies& own = energies_[i];
        out = {own.changed_J,
               own.supplied_J,
               own.dissipated_J,
               own.size_J,
               static_cast<double>(own.halvings),
               static_cast<double>(own.depth),
               next_[i].tank_J,
               next_[i].stored_J};
      },
      [&](std::size_t i, const double* in) {
        energies_[i] = {.changed_J = in[0],
                        .supplied_J = in[1],
                        .dissipated_J = in[2],
                        .size_J = in[3],
                        .halvings = static_cast<int>(in[4]),
                        .depth = static_cast<int>(in[5])};
        next_[i].tank_J = in[6];
        next_[i].stored_J = in[7];
        return in + 8;
      });
}

void ExplicitStepper::share_success() {
  gather_of_islands([&](std::size_t i, std::vector<double>& out) { out.push_back(succeeded_[i]); },
                    [&](std::size_t i, const double* in) {
                      succeeded_[i] = *in != 0.0 ? 1 : 0;
                      return in + 1;
                    });
}

void ExplicitStepper::complete(std::vector<IslandState>& states) {
  const auto arrays = [&](std::size_t i) {
    IslandState& own = states[i];
    return std::array{&own.u, &own.position, &own.decaying, &own.dead};
  };
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (is_of_all(i)) islands_[i]->complete(states[i]);
  }
  gather_of_islands(
      [&](std::size_t i, std::vector<double>& out) {
        for (const AlignedVector* own : arrays(i)) out.insert(out.end(), own->begin(), own->end());
      },
      [&](std::size_t i, const double* in) {
        for (AlignedVector* own : arrays(i)) {
          std::copy_n(in, own->size(), own->begin());
          in += own->size();
        }
        return in;
      });
}

void ExplicitStepper::fetch() {
  if (!has_now_) complete(now_);
  if (!has_before_) complete(before_);
  has_now_ = has_before_ = true;
}

/// Steps that are tried are judged by all ranks, from all states.
void ExplicitStepper::complete_attempt() {
  if (peers_ == nullptr) return;
  Trial& own = trial();
  share_energies();
  complete(next_);
  if (compares_) {
    complete(own.coarse);
    complete(own.middle);
  } else if (has_whole_islands_) {  // islands complete their errors where all ranks step them
    if (own.coarse.empty()) own.coarse = next_;
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      islands_[i]->load(own.error.data(), own.coarse[i]);
    }
    gather_of_islands(
        [&](std::size_t i, std::vector<double>& out) {
          const IslandState& error = own.coarse[i];
          out.assign(error.position.begin(), error.position.end());
        },
        [&](std::size_t i, const double* in) {
          AlignedVector& position = own.coarse[i].position;
          std::copy_n(in, position.size(), position.begin());
          islands_[i]->store(own.coarse[i], own.error.data());
          return in + position.size();
        });
  }
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    islands_[i]->store(next_[i], own.x.data());
    if (compares_) islands_[i]->store(own.coarse[i], own.error.data());
  }
}

}  // namespace portwave
