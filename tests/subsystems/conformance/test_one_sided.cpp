// The law of parts that push and never pull, and a part that breaks it.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"

namespace portwave::test_one_sided {
namespace {

/// A contact whose damped steps hold it back by the mean force on the way, where less is left at the end.
class HoldsBack final : public Subsystem {
 public:
  HoldsBack()
      : HoldsBack(make_part(
            "contact", {{"force_N", 20.0}, {"compression_m", 0.5}, {"damping_s_per_m", 2.0}})) {}
  double storage(const double* x) const override { return own_.storage(x); }
  void gradient(const double* x, double* g) const override { own_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    own_.discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    own_.discrete_gradient_jacobian(x, x_next, j);
  }
  bool is_smooth() const override { return false; }
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return own_.structure(); }
  void structure_at(const double* x, Structure& out) const override { own_.structure_at(x, out); }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    own_.structure_over(x, dx, step_s, out);
  }

 private:
  explicit HoldsBack(std::shared_ptr<const Component> honest)
      : Subsystem(honest->signature()),
        honest_(std::move(honest)),
        own_(*honest_->port_hamiltonian()) {}

  std::shared_ptr<const Component> honest_;
  const Subsystem& own_;
};

TEST(ConformanceControl, OneSidedCatchesAContactThatPulls) {
  const LawReport bad = check_one_sided(HoldsBack());
  EXPECT_FALSE(bad.holds);
  EXPECT_NE(bad.detail.find("damped"), std::string::npos) << bad.detail;
}

}  // namespace
}  // namespace portwave::test_one_sided
