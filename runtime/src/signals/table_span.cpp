#include "signals/table_span.hpp"

#include <optional>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "signals/source_block.hpp"

namespace portwave {

std::vector<std::string> tables_out_of_reach(const System& system, const SignalGraph* graph,
                                             double start_s, double end_s) {
  std::vector<std::string> notes;
  const auto look_at = [&](const Signal& signal, auto&& name) {
    const std::optional<Signal::Span> span = signal.table_span();
    const bool is_before = span && end_s <= span->begin_s;
    const bool is_after = span && start_s >= span->end_s;
    if (!is_before && !is_after) return;
    notes.push_back(
        fmt::format("the table of {} goes from {:g} s to {:g} s, and the run from {:g} s to {:g} s "
                    "lies wholly {} "
                    "it: there it is {:g} throughout",
                    name(), span->begin_s, span->end_s, start_s, end_s,
                    is_before ? "before" : "after", signal(is_before ? start_s : end_s)));
  };
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (!part.input_is_driven[i]) continue;
      look_at(part.inputs[i], [&] {
        return fmt::format("{} ({})", in_quotes(part.name),
                           printable(part.component->signature().inputs[i].name));
      });
    }
  }
  if (graph == nullptr) return notes;
  for (const SignalGraph::Node& node : graph->nodes()) {
    const auto* const source = dynamic_cast<const block::SourceBlock*>(node.block.get());
    if (source != nullptr) look_at(source->signal(), [&] { return in_quotes(node.name); });
  }
  return notes;
}

}  // namespace portwave
