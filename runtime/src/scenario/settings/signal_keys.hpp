#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/block_kinds.hpp"
#include "scenario/reader/key_table.hpp"

namespace portwave::scenario_file {

struct SignalsKeys {
  int every = 1;
  std::optional<Node> every_s, blocks;
};

const KeyTable<SignalsKeys>& signals_keys();

/// What blocks of all kinds have.
struct BlockKeys {
  std::string name = {};
  int every = 1;
  std::string unit = {};  ///< of its output, for the checks of units
};

const KeyTable<BlockKeys>& block_keys();

struct SensorKeys {
  std::optional<Node> of;
};

const KeyTable<SensorKeys>& sensor_keys();

/// The names of all kinds: the sensor, sources and kinds of blocks.
std::vector<std::string> all_block_kinds();
/// Null where there is none of that name. One of a program takes the place of a source.
const BlockKind* find_block_kind(const std::string& name);
/// The least and the most that an integer of a block may be.
std::pair<std::int64_t, std::int64_t> integers_of(const BlockField& field);

/// Schemas of "signals" and of what a block takes.
Json signals_schema();
Json signal_name_schema();

}  // namespace portwave::scenario_file
