#include <memory>
#include <vector>

#include <Eigen/QR>

#include "conformance/conformance_tools.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

// Parts that say that their dissipation ends with what their storage gives: they push and never pull.

namespace portwave {

using namespace conformance;

namespace {

/// Whether the structure over some step is another than that of its middle (Subsystem::structure_over), and all
/// ports take flows.
bool lets_go(const Subsystem& part, const ConformanceOptions& options) {
  if (part.constant_structure() || part.is_smooth()) return false;
  for (const Port& port : part.signature().ports) {
    if (port.causality != Causality::flow_in) return false;
  }
  bool differs = false;
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& /*where*/) {
    const VectorXd x = sampler.state(), dx = sampler.state() - x, middle = x + 0.5 * dx;
    Structure over = part.structure(), at_middle = over;
    part.structure_over(x.data(), dx.data(), h, over);
    part.structure_at(middle.data(), at_middle);
    differs = differs || (Eigen::MatrixXd(over.S) - Eigen::MatrixXd(at_middle.S)).norm() > 0.0;
  });
  return differs;
}

/// Mean efforts of a step over its stages, and the sizes of their terms.
struct MeanEfforts {
  VectorXd value, size;

  MeanEfforts(const StageRule& rule, double h, const VectorXd& impedance, const VectorXd& a,
              const VectorXd& b)
      : value(VectorXd::Zero(impedance.size())), size(value) {
    for (Eigen::Index i = 0; i < rule.count; ++i) {
      const double share = std::sqrt(rule.b[static_cast<std::size_t>(i)]);
      for (Eigen::Index j = 0; j < impedance.size(); ++j) {
        const double gain = share * std::sqrt(impedance[j] / (2.0 * h));
        const double in = a[i * impedance.size() + j], out = b[i * impedance.size() + j];
        value[j] += gain * (in + out);
        size[j] += gain * (std::abs(in) + std::abs(out));
      }
    }
  }
};

}  // namespace

LawReport check_one_sided(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("one_sided");
  if (!lets_go(part, options)) return std::move(tally).report();
  const Eigen::MatrixXd G(part.structure().G);
  const auto to_states = G.transpose().completeOrthogonalDecomposition();
  Random random(options.seed);
  for (int stages = 1; stages <= kMostStages; ++stages) {
    if (!damping_defect(part, stages).empty()) continue;
    for (const bool is_damped : {false, true}) {
      const StageRule plain = stage_rule(stages, StageNodes::radau);
      const StageRule rule = is_damped ? damped(plain) : plain;
      const auto staged =
          staged_part(std::shared_ptr<const Component>(&part, [](const Component*) {}), rule);
      const Component* const alone[] = {staged.get()};
      const std::string name =
          fmt::format("{}{} stage{}", stages, is_damped ? " damped" : "", stages == 1 ? "" : "s");
      sweep(part, options, [&](Sampler& sampler, double h, const std::string& at) {
        const VectorXd impedance = sampler.impedance(), x = sampler.state();
        // Waves that move the part by a few of its usual sizes within the step, and others.
        const double scale = options.wave_scale * std::pow(10.0, 3.0 * random());
        const VectorXd a = random.vector(part.signature().wave_size() * stages, scale);
        const VectorXd u = random.vector(part.signature().input_size() * stages, 0.0);
        FrozenMap map(staged->make_batch(alone), h, impedance.replicate(stages, 1), x, u);
        const FrozenMap::Outcome out = map.advance(a);
        const std::string where = fmt::format("{}, {}", name, at);
        if (!out.status.ok()) {
          return tally.fail(fmt::format("port solve: {}, {}", to_string(out.status.fault), where));
        }
        // From one face to another the mean force says nothing about either.
        if (gradient_at(part, x).dot(gradient_at(part, out.x_next)) < 0.0) return;
        VectorXd force(x.size());
        part.discrete_gradient(x.data(), out.x_next.data(), force.data());
        if (!(force.norm() > 0.0)) return;
        tally.see_rule(name);
        const MeanEfforts efforts(rule, h, impedance, a, out.b);
        const VectorXd own = to_states.solve(efforts.value);
        Structure over = part.structure();
        const VectorXd moved = out.x_next - x;
        part.structure_over(x.data(), moved.data(), h, over);
        const double held = (G * (over.S * (G.transpose() * moved))).norm() / h;
        const double terms =
            force.norm() + held + to_states.solve(efforts.size).norm() + efforts.size.norm();
        const double pull = -own.dot(force) / force.norm();
        tally.see(pull, 1e-11 * terms,
                  [&] { return fmt::format("pulls with {:.3e} N or N m, {}", pull, where); });
      });
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave
