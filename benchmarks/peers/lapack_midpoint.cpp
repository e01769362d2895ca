#include <stdexcept>

#include "velocity_form.hpp"
#include "whole_state.hpp"

extern "C" {
// Fortran: the lengths of character arguments come last.
void dgbtrf_(const int* m, const int* n, const int* kl, const int* ku, double* ab, const int* ldab,
             int* ipiv, int* info);
void dgbtrs_(const char* trans, const int* n, const int* kl, const int* ku, const int* nrhs,
             const double* ab, const int* ldab, const int* ipiv, double* b, const int* ldb,
             int* info, std::size_t trans_length);
void dpbtrf_(const char* uplo, const int* n, const int* kd, double* ab, const int* ldab, int* info,
             std::size_t uplo_length);
void dpbtrs_(const char* uplo, const int* n, const int* kd, const int* nrhs, const double* ab,
             const int* ldab, double* b, const int* ldb, int* info, std::size_t uplo_length);
void dpttrf_(const int* n, double* d, double* e, int* info);
void dpttrs_(const int* n, const int* nrhs, const double* d, const double* e, double* b,
             const int* ldb, int* info);
}

namespace portwave::bench {
namespace {

constexpr int kOne = 1;

void require(int info) {
  if (info != 0) throw std::runtime_error("LAPACK failed");
}

class BandedLu final : public MidpointPeer {
 public:
  BandedLu(const Chain& chain, double h)
      : n_(static_cast<int>(2 * chain.masses())),
        band_(chain.masses() * 2 * kRows, 0.0),
        pivots_(2 * chain.masses()),
        x_(whole_state(chain)),
        middle_(x_) {
    for (const Entry& e : whole_state_matrix(chain, h)) {
      const int row = kLower + kUpper + e.row - e.column;
      band_[static_cast<std::size_t>(row + e.column * kRows)] = e.value;
    }
    int info = 0;
    dgbtrf_(&n_, &n_, &kLower, &kUpper, band_.data(), &kRows, pivots_.data(), &info);
    require(info);
  }
  void step() override {
    int info = 0;
    std::copy(x_.begin(), x_.end(), middle_.begin());
    dgbtrs_("N", &n_, &kLower, &kUpper, &kOne, band_.data(), &kRows, pivots_.data(), middle_.data(),
            &n_, &info, 1);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = 2.0 * middle_[i] - x_[i];
  }
  void read(std::span<double> q, std::span<double> v) const override {
    read_whole_state(x_.data(), q, v);
  }

 private:
  static constexpr int kLower = 3, kUpper = 1, kRows = 2 * kLower + kUpper + 1;
  int n_;
  std::vector<double> band_;
  std::vector<int> pivots_;
  std::vector<double> x_, middle_;
};

class BandedCholesky final : public MidpointPeer {
 public:
  BandedCholesky(const Chain& chain, double h)
      : form_(chain, h), n_(static_cast<int>(chain.masses())), w_(chain.masses()) {
    const Tridiagonal entries = velocity_matrix(chain, h);
    for (std::size_t i = 0; i < chain.masses(); ++i) {
      band_.push_back(entries.diagonal[i]);
      band_.push_back(i + 1 < chain.masses() ? entries.off_diagonal[i] : 0.0);
    }
    int info = 0;
    dpbtrf_("L", &n_, &kOne, band_.data(), &kRows, &info, 1);
    require(info);
  }
  void step() override {
    int info = 0;
    form_.right_hand_side(w_.data());
    dpbtrs_("L", &n_, &kOne, &kOne, band_.data(), &kRows, w_.data(), &n_, &info, 1);
    form_.update(w_.data());
  }
  void read(std::span<double> q, std::span<double> v) const override { form_.read(q, v); }

 private:
  static constexpr int kRows = 2;
  VelocityForm form_;
  int n_;
  std::vector<double> band_, w_;
};

class TridiagonalLdl final : public MidpointPeer {
 public:
  TridiagonalLdl(const Chain& chain, double h)
      : form_(chain, h),
        n_(static_cast<int>(chain.masses())),
        matrix_(velocity_matrix(chain, h)),
        w_(chain.masses()) {
    int info = 0;
    dpttrf_(&n_, matrix_.diagonal.data(), matrix_.off_diagonal.data(), &info);
    require(info);
  }
  void step() override {
    int info = 0;
    form_.right_hand_side(w_.data());
    dpttrs_(&n_, &kOne, matrix_.diagonal.data(), matrix_.off_diagonal.data(), w_.data(), &n_,
            &info);
    form_.update(w_.data());
  }
  void read(std::span<double> q, std::span<double> v) const override { form_.read(q, v); }

 private:
  VelocityForm form_;
  int n_;
  Tridiagonal matrix_;
  std::vector<double> w_;
};

}  // namespace

std::unique_ptr<MidpointPeer> lapack_banded_lu(const Chain& chain, double step_s) {
  return std::make_unique<BandedLu>(chain, step_s);
}
std::unique_ptr<MidpointPeer> lapack_banded_cholesky(const Chain& chain, double step_s) {
  return std::make_unique<BandedCholesky>(chain, step_s);
}
std::unique_ptr<MidpointPeer> lapack_tridiagonal(const Chain& chain, double step_s) {
  return std::make_unique<TridiagonalLdl>(chain, step_s);
}

}  // namespace portwave::bench
