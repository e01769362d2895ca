#include "catalogue/mechanical/contact_spring.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

/// One face: s = max(0, side d − gap).
class Face {
 public:
  Face(const ContactLaw& law, double side) : law_(&law), side_(side) {}

  double compression(double d) const { return std::max(0.0, side_ * d - law_->gap); }
  double energy(double d) const {
    const double s = compression(d);
    return law_->is_hertzian ? 0.4 * law_->stiffness * s * s * std::sqrt(s)
                             : 0.5 * law_->stiffness * s * s;
  }
  /// ∂H/∂d.
  double force(double d) const { return side_ * (law_->stiffness * power(compression(d))); }
  double slope(double d) const {
    const double s = compression(d);
    if (s == 0.0) return 0.0;
    return law_->stiffness * (law_->is_hertzian ? 1.5 * std::sqrt(s) : 1.0);
  }
  /// r over a step from x by Δx: of the mean of k sᵐ on the way, but no more than takes up what the spring
  /// gives. Then the effort is that mean times max(0, 1 + a s'), and rises with Δx.
  double resistance_over(double x, double dx, double step_s) const {
    const double separation = -side_ * dx;
    const double most = separation > 0.0 ? step_s / separation : law_->damping;
    return std::abs(mean_force(x, x + dx)) * std::min(law_->damping, most);
  }

  /// (H(y) − H(x))/(y − x). Within contact by divided differences that do not cancel; from or to
  /// free flight the compressed end alone has energy, and it is the shorter of the two lengths.
  double mean_force(double x, double y) const {
    const double s = compression(x), t = compression(y);
    if (s == 0.0 && t == 0.0) return 0.0;
    if (s > 0.0 && t > 0.0) {
      if (!law_->is_hertzian) return side_ * (0.5 * law_->stiffness * (s + t));
      const double a = std::sqrt(s), b = std::sqrt(t);
      return side_ * (0.4 * law_->stiffness *
                      (a * a * a * a + a * b * (a * a + a * b + b * b) + b * b * b * b) / (a + b));
    }
    return side_ * (energy(s > 0.0 ? x : y) / std::abs(y - x));
  }
  /// Its derivative by y.
  double mean_slope(double x, double y) const {
    const double s = compression(x), t = compression(y);
    if (s == 0.0 && t == 0.0) return 0.0;
    if (s > 0.0 && t > 0.0 && !law_->is_hertzian) return 0.5 * law_->stiffness;
    if (y == x) return 0.5 * slope(x);
    if (s > 0.0 && t > 0.0) {
      // d/dy of the divided difference, in roots: g = N/(a + b), dy = 2b db.
      const double a = std::sqrt(s), b = std::sqrt(t), c = a + b;
      const double N = a * a * a * a + a * b * (a * a + a * b + b * b) + b * b * b * b;
      const double dN = a * a * a + 2.0 * a * a * b + 3.0 * a * b * b + 4.0 * b * b * b;
      return 0.4 * law_->stiffness * (dN * c - N) / (c * c) / (2.0 * b);
    }
    return (force(y) - mean_force(x, y)) / (y - x);
  }

 private:
  double power(double s) const { return law_->is_hertzian ? s * std::sqrt(s) : s; }

  const ContactLaw* law_;
  double side_;  ///< 1: touched as d grows; -1: as it falls
};

/// With two faces the sum of two contacts, each of which lets go by itself.
class ContactSpring final : public Subsystem {
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
    return sum([&](const Face& face) { return face.energy(x[0]); });
  }
  void gradient(const double* x, double* g) const override {
    g[0] = sum([&](const Face& face) { return face.force(x[0]); });
  }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    g[0] = sum([&](const Face& face) { return face.mean_force(x[0], y[0]); });
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    jacobian.emplace_back(0, 0, sum([&](const Face& face) { return face.mean_slope(x[0], y[0]); }));
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    hessian.emplace_back(0, 0, sum([&](const Face& face) { return face.slope(x[0]); }));
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
        law_.damping * sum([&](const Face& face) { return std::abs(face.force(x_mid[0])); }), out);
  }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    set_resistance(sum([&](const Face& face) { return face.resistance_over(x[0], dx[0], step_s); }),
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
  std::vector<Face> faces_;
  std::vector<double> direction_;
  Structure structure_;
};

}  // namespace

std::unique_ptr<Subsystem> make_contact_spring(Signature signature, const ContactLaw& law,
                                               std::vector<double> direction) {
  return std::make_unique<ContactSpring>(std::move(signature), law, std::move(direction));
}

}  // namespace portwave
