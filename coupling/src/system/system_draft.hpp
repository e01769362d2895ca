#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave {

/// -1 when there is none of that name.
template <class Named>
int index_of(std::string_view name, const std::vector<Named>& things) {
  for (std::size_t i = 0; i < things.size(); ++i) {
    if (things[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

/// What SystemBuilder::check_into finds out on the way: names resolved to numbers, and every
/// defect.
struct SystemBuilder::Draft {
  /// A port as a coupling names it; -1 where the name led nowhere.
  struct PortReference {
    int part = -1;
    int port = -1;

    bool known() const { return port >= 0; }
  };
  /// The first coupling that uses a port.
  struct Use {
    int joint = -1;
    std::size_t position = 0;
    bool excused = false;  ///< a misspelt coupling probably means this port: not reported as open
  };

  /// Port references by joint and position, all in one array.
  class References {
   public:
    void begin_joint() { first_.push_back(all_.size()); }
    void add(PortReference reference) { all_.push_back(reference); }
    std::span<const PortReference> of(std::size_t joint) const {
      const std::size_t end = joint + 1 < first_.size() ? first_[joint + 1] : all_.size();
      return std::span(all_).subspan(first_[joint], end - first_[joint]);
    }

   private:
    std::vector<PortReference> all_;
    std::vector<std::size_t> first_;
  };
  class SharedStructures;

  explicit Draft(const SystemBuilder& builder) : parts(builder.parts_), joints(builder.joints_) {}

  const std::vector<PendingPart>& parts;
  const std::vector<PendingJoint>& joints;

  Issues issues;
  std::unordered_map<std::string_view, int> part_by_name;  ///< the first of that name
  std::vector<bool> shares_name;                           ///< by part
  std::vector<Use> uses;                                   ///< of the ports of all parts in turn
  std::vector<std::size_t> first_use;                      ///< by part, and the end
  References references;

  void check_parts();
  void check_joints();
  void check_open_ports();

  /// The system, once there is no issue. Takes the parts out of `from`.
  System assemble(std::vector<PendingPart>& from, std::vector<CutName> cuts) const;

 private:
  void add(std::string where, std::string what);

  void check_name(int part);
  void check_signature(int part);
  void check_initial_state(int part);
  void check_inputs(int part);
  void check_substeps(int part);

  /// Where a coupling names a port.
  static std::string path_of(int joint, std::size_t position);
  std::span<Use> uses_of(int part);
  PortReference resolve(int joint, std::size_t position);
  void report_unknown_part(std::string_view name, std::string_view port, const std::string& where);
  void report_unknown_port(int part, std::string_view port, const std::string& where);
  void excuse(int part, std::string_view port);
  void note_use(int joint, std::size_t position);
  void check_arity(int joint);
  void check_ports_match(int joint);
  void check_values(int joint);
  void check_places(int joint);
  void check_gain(const joint::SkewGain& gain, const std::string& where, int size);
  void check_kernel(const joint::Kernel& kernel, const std::string& where, int size);

  NameSearch& part_names();
  NameSearch& port_names(int part);

  /// Made when a name is wrong.
  std::optional<NameSearch> part_names_;
  std::optional<NameSearch> port_names_;
  const Component* owner_of_port_names_ = nullptr;

  static void insert(System& system, Part part);
  /// Of a settable input of the part that is to be inserted next: one of its own, or, of a piece, that
  /// of the part that was cut.
  static int slot_of(System& system, const System::SettableInput& input, const std::string& name);
  static void join(System& system, const Joint& joint, std::span<const PortReference> ports,
                   SharedStructures& structures);
  static PortReference add_termination(System& system, double resistance, PortReference port);
  static void number_islands(System& system);
  static void order_names(System& system);

  const Port& port_of(PortReference reference) const;
  /// Σ dimensions of the ports of a joint; -1 when one of them is not known.
  int scalar_size(int joint) const;
};

}  // namespace portwave
