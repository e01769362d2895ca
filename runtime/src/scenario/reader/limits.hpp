#pragma once

#include <cstddef>
#include <cstdint>

/// What a scenario file may ask for: limits that stop a slip of the pen from exhausting memory.
namespace portwave::scenario_limits {

inline constexpr std::size_t kFileBytes = std::size_t{64} << 20;       ///< scenario file or table
inline constexpr std::size_t kMatrixFileBytes = std::size_t{2} << 30;  ///< a matrix, unpacked
inline constexpr int kNesting = 64;                                    ///< objects and arrays
inline constexpr std::int64_t kSteps = 9'000'000'000'000'000;          ///< exact in a double
inline constexpr int kIterations = 1'000'000;
inline constexpr int kRecordEvery = 2'147'483'647;
inline constexpr int kInteger = 1'000'000;    ///< an integer parameter, e.g. masses of a chain
inline constexpr int kPortDimension = 1'000;  ///< of one port
inline constexpr int kPartPorts = 1'000;      ///< scalar ports of one part
inline constexpr int kCouplingPorts = 1'000;  ///< scalar ports of one coupling
inline constexpr int kCutParts = 10'000;      ///< pieces of one part
inline constexpr std::int64_t kIndex = 10'000'000;  ///< of a coupling, from minus this on
inline constexpr std::int64_t kStates = 5'000'000;  ///< of all parts together
inline constexpr std::int64_t kScalarPorts = 1'000'000;
inline constexpr std::size_t kDefects = 1'000;  ///< reported at once

}  // namespace portwave::scenario_limits
