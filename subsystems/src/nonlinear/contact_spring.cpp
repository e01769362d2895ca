#include "nonlinear/contact_spring.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

template <class Term>
double sum(std::span<const ContactFace> faces, const Term& term) {
  double out = term(faces.front());
  if (faces.size() > 1) out += term(faces.back());
  return out;
}

}  // namespace

ContactSpring::ContactSpring(Signature signature, const ContactLaw& law,
                             std::vector<double> direction)
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

double ContactSpring::storage(const double* x) const {
  return sum(faces_, [&](const ContactFace& face) { return face.energy(x[0]); });
}

void ContactSpring::gradient(const double* x, double* g) const {
  g[0] = sum(faces_, [&](const ContactFace& face) { return face.force(x[0]); });
}

void ContactSpring::discrete_gradient(const double* x, const double* y, double* g) const {
  g[0] = sum(faces_, [&](const ContactFace& face) { return face.mean_force(x[0], y[0]); });
}

void ContactSpring::discrete_gradient_jacobian(
    const double* x, const double* y, std::vector<Eigen::Triplet<double>>& jacobian) const {
  jacobian.emplace_back(
      0, 0, sum(faces_, [&](const ContactFace& face) { return face.mean_slope(x[0], y[0]); }));
}

bool ContactSpring::hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const {
  hessian.emplace_back(0, 0,
                       sum(faces_, [&](const ContactFace& face) { return face.slope(x[0]); }));
  return true;
}

std::vector<StateLevel> ContactSpring::state_levels() const {
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

void ContactSpring::structure_at(const double* x_mid, Structure& out) const {
  set_resistance(
      law_.damping *
          sum(faces_, [&](const ContactFace& face) { return std::abs(face.force(x_mid[0])); }),
      out);
}

void ContactSpring::structure_over(const double* x, const double* dx, double step_s,
                                   Structure& out) const {
  damped_structure_over(x, dx, step_s, 0.0, out);
}

void ContactSpring::damped_structure_over(const double* x, const double* dx, double step_s,
                                          double theta, Structure& out) const {
  set_resistance(sum(faces_,
                     [&](const ContactFace& face) {
                       return face.resistance_over(x[0], dx[0], step_s, theta);
                     }),
                 out);
}

void ContactSpring::set_resistance(double resistance, Structure& out) const {
  const auto size = static_cast<int>(direction_.size());
  for (int j = 0; j < size; ++j) {
    for (int i = 0; i < size; ++i) {
      out.S.coeffRef(i, j) = resistance * direction_[at(i)] * direction_[at(j)];
    }
  }
}

std::string ContactSpring::batch_key() const {
  return fmt::format("contact_spring/{}", direction_.size());
}

std::unique_ptr<StepBatch> ContactSpring::make_batch(
    std::span<const Component* const> parts) const {
  std::vector<StageRule> rules;  // some may be damped for a step
  rules.reserve(parts.size());
  for (const Component* const part : parts) rules.push_back(part->stage_rule());
  return make_contact_batch(port_hamiltonian_parts(parts), rules);
}

}  // namespace portwave
