#include "catalogue/mechanical/contact_spring.hpp"

#include <cmath>
#include <utility>

#include "nonlinear/damped_structure.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

/// With two faces the sum of two contacts, each of which lets go by itself.
class ContactSpring final : public Subsystem, public DampedStructure {
 public:
  ContactSpring(Signature signature, const ContactLaw& law, std::vector<double> direction)
      : Subsystem(std::move(signature)),
        law_(law),
        direction_(std::move(direction)),
        structure_(Structure::zero(1, static_cast<int>(direction_.size()))) {
    if (law.faces != Faces::negative) faces_.emplace_back(law_, 1.0);
    if (law.faces != Faces::positive) faces_.emplace_back(law_, -1.0);
    const auto size = static_cast<int>(direction_.size());
    for (int j = 0; j < size; ++j) structure_.G.insert(0, j) = direction_[at(j)];
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) structure_.S.insert(i, j) = 0.0;
    }
  }

  std::vector<double> typical_state() const override { return {law_.reach}; }
  double storage(const double* x) const override {
    return sum([&](const ContactFace& face) { return face.energy(x[0]); });
  }
  void gradient(const double* x, double* g) const override {
    g[0] = sum([&](const ContactFace& face) { return face.force(x[0]); });
  }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    g[0] = sum([&](const ContactFace& face) { return face.mean_force(x[0], y[0]); });
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    jacobian.emplace_back(
        0, 0, sum([&](const ContactFace& face) { return face.mean_slope(x[0], y[0]); }));
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    hessian.emplace_back(0, 0, sum([&](const ContactFace& face) { return face.slope(x[0]); }));
    return true;
  }
  bool is_smooth() const override { return false; }
  std::vector<StateLevel> state_levels() const override {
    switch (law_.faces) {
      case Faces::positive:
        return {{0, law_.gap, "closes", "opens"}};
      case Faces::negative:
        return {{0, -law_.gap, "opens", "closes"}};
      case Faces::both:
        break;
    }
    if (law_.gap == 0.0) return {};  // it never lets go
    return {{0, law_.gap, "closes", "opens"}, {0, -law_.gap, "opens negative", "closes negative"}};
  }
  bool constant_structure() const override { return law_.damping == 0.0; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override {
    set_resistance(
        law_.damping * sum([&](const ContactFace& face) { return std::abs(face.force(x_mid[0])); }),
        out);
  }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    damped_structure_over(x, dx, step_s, 0.0, out);
  }
  void damped_structure_over(const double* x, const double* dx, double step_s, double theta,
                             Structure& out) const override {
    set_resistance(sum([&](const ContactFace& face) {
                     return face.resistance_over(x[0], dx[0], step_s, theta);
                   }),
                   out);
  }

 private:
  template <class Term>
  double sum(const Term& term) const {
    double out = term(faces_.front());
    if (faces_.size() > 1) out += term(faces_.back());
    return out;
  }
  void set_resistance(double resistance, Structure& out) const {
    const auto size = static_cast<int>(direction_.size());
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) {
        out.S.coeffRef(i, j) = resistance * direction_[at(i)] * direction_[at(j)];
      }
    }
  }

  ContactLaw law_;
  std::vector<ContactFace> faces_;
  std::vector<double> direction_;
  Structure structure_;
};

}  // namespace

std::unique_ptr<Subsystem> make_contact_spring(Signature signature, const ContactLaw& law,
                                               std::vector<double> direction) {
  return std::make_unique<ContactSpring>(std::move(signature), law, std::move(direction));
}

}  // namespace portwave
