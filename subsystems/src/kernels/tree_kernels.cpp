#include "kernels/tree_kernels.hpp"

#include "kernels/lane_sine.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// The recursions of articulated_tree.cpp. Everything is in the axes of a body and about its joint.
struct TreeGradient {
  using V = Vec<kLaneGroup>;

  struct Vec3 {
    V x, y, z;
  };
  struct Mat3 {
    Vec3 row[3];
  };
  struct Spatial {
    Vec3 turn, shift;
  };
  struct Symmetric {
    V xx, xy, xz, yy, yz, zz;
  };
  struct Composite {
    double mass;
    Vec3 moment;
    Symmetric inertia;
  };
  struct Link {
    Vec3 turn_before, up_before;
    Spatial before, force;
    Vec3 turn, shift, up, lift;
  };

  static V all(double value) { return V::all(value); }
  static Vec3 all3(const double* a) { return {all(a[0]), all(a[1]), all(a[2])}; }
  static Vec3 nothing() { return {all(0.0), all(0.0), all(0.0)}; }
  static V at(const double* values, int k) { return V::load(values + k * kLaneGroup); }
  static Vec3 at3(const double* values, int k) {
    return {at(values, k), at(values, k + 1), at(values, k + 2)};
  }

  static Vec3 plus(const Vec3& a, const Vec3& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  static Vec3 minus(const Vec3& a, const Vec3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  static Vec3 times(V a, const Vec3& b) { return {a * b.x, a * b.y, a * b.z}; }
  /// a b + c
  static Vec3 added(V a, const Vec3& b, const Vec3& c) {
    return {fma(a, b.x, c.x), fma(a, b.y, c.y), fma(a, b.z, c.z)};
  }
  static V dot(const Vec3& a, const Vec3& b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }
  static Vec3 cross(const Vec3& a, const Vec3& b) {
    return {fma(a.y, b.z, negate(a.z * b.y)), fma(a.z, b.x, negate(a.x * b.z)),
            fma(a.x, b.y, negate(a.y * b.x))};
  }
  static Vec3 product(const Mat3& m, const Vec3& b) {
    return {dot(m.row[0], b), dot(m.row[1], b), dot(m.row[2], b)};
  }
  /// mᵀb
  static Vec3 back(const Mat3& m, const Vec3& b) {
    return added(b.z, m.row[2], added(b.y, m.row[1], times(b.x, m.row[0])));
  }
  static Vec3 product(const Symmetric& m, const Vec3& b) {
    return {fma(m.xz, b.z, fma(m.xy, b.y, m.xx * b.x)), fma(m.yz, b.z, fma(m.yy, b.y, m.xy * b.x)),
            fma(m.zz, b.z, fma(m.yz, b.y, m.xz * b.x))};
  }
  static Symmetric inertia_of(const tree::Body& body) {
    const double* const I = body.inertia;
    return {all(I[0]), all(I[1]), all(I[2]), all(I[4]), all(I[5]), all(I[8])};
  }

  /// The rotation of a quaternion of any length, transposed: into the axes that it turns.
  static Mat3 into_turned(const double* x, int place) {
    const V w = at(x, place);
    const Vec3 v = at3(x, place + 1);
    const V square = dot(v, v), gain = all(1.0) / fma(w, w, square), two = gain + gain;
    const V diagonal = gain * (w * w - square), turn = two * w;
    const Vec3 own = times(two, v), across = times(turn, v);
    return {
        {{fma(own.x, v.x, diagonal), fma(own.x, v.y, across.z), fma(own.x, v.z, negate(across.y))},
         {fma(own.y, v.x, negate(across.z)), fma(own.y, v.y, diagonal), fma(own.y, v.z, across.x)},
         {fma(own.z, v.x, across.y), fma(own.z, v.y, negate(across.x)),
          fma(own.z, v.z, diagonal)}}};
  }

  explicit TreeGradient(const tree::Task& task) : t(task) {}

  void set_poses() {
    for (int i = 0; i < t.count; ++i) {
      const tree::Body& body = t.bodies[i];
      Mat3& E = turn[i];
      const Mat3 A = {{all3(body.to_joint), all3(body.to_joint + 3), all3(body.to_joint + 6)}};
      place[i] = all3(body.place);
      switch (body.joint) {
        case tree::Joint::revolute: {
          const auto [s, c] = LaneSine<kLaneGroup>::of(at(t.x, body.q));
          E = {{added(s, A.row[1], times(c, A.row[0])),
                added(negate(s), A.row[0], times(c, A.row[1])), A.row[2]}};
          break;
        }
        case tree::Joint::prismatic:
          E = A;
          place[i] = added(at(t.x, body.q), A.row[2], place[i]);
          break;
        case tree::Joint::spherical: {
          const Mat3 own = into_turned(t.x, body.q);
          for (int r = 0; r < 3; ++r) E.row[r] = back(A, own.row[r]);
          break;
        }
        case tree::Joint::free:
          E = into_turned(t.x, body.q + 3);
          place[i] = at3(t.x, body.q);
          break;
      }
    }
  }

  V& mass_entry(int row, int column) { return M[row * t.velocities + column]; }

  /// What a force on a body does to the velocities that move it, below the diagonal of M.
  void carry(int body, Spatial force, int column) {
    for (;;) {
      const tree::Body& own = t.bodies[body];
      const Vec3 shift = back(turn[body], force.shift);
      switch (own.joint) {
        case tree::Joint::revolute:
          mass_entry(column, own.v) = force.turn.z;
          break;
        case tree::Joint::prismatic:
          mass_entry(column, own.v) = force.shift.z;
          break;
        case tree::Joint::spherical:
        case tree::Joint::free: {
          int v = own.v;
          if (own.joint == tree::Joint::free) {
            put(column, v, shift);
            v += 3;
          }
          put(column, v, force.turn);
          break;
        }
      }
      if (own.parent < 0) return;
      force.turn = plus(back(turn[body], force.turn), cross(place[body], shift));
      force.shift = shift;
      body = own.parent;
    }
  }
  void put(int column, int row, const Vec3& value) {
    if (row <= column) mass_entry(column, row) = value.x;
    if (row + 1 <= column) mass_entry(column, row + 1) = value.y;
    if (row + 2 <= column) mass_entry(column, row + 2) = value.z;
  }

  /// By composite inertias, each carried to the joint of the parent. Below the diagonal.
  void set_mass_matrix() {
    for (int k = 0; k < t.velocities * t.velocities; ++k) M[k] = all(0.0);
    for (int i = 0; i < t.count; ++i) {
      composites[i] = {t.bodies[i].mass, all3(t.bodies[i].moment), inertia_of(t.bodies[i])};
    }
    for (int i = t.count; i-- > 0;) {
      const tree::Body& body = t.bodies[i];
      const Composite& own = composites[i];
      const Mat3& E = turn[i];
      const V zero = all(0.0), mass = all(own.mass);
      const Vec3 c = own.moment;
      switch (body.joint) {
        case tree::Joint::revolute:
          carry(i, {{own.inertia.xz, own.inertia.yz, own.inertia.zz}, {negate(c.y), c.x, zero}},
                body.v);
          break;
        case tree::Joint::prismatic:
          carry(i, {{c.y, negate(c.x), zero}, {zero, zero, mass}}, body.v);
          break;
        case tree::Joint::spherical:
        case tree::Joint::free: {
          int v = body.v;
          for (int k = 0; k < 3 && body.joint == tree::Joint::free; ++k, ++v) {
            const Vec3 u = {k == 0   ? E.row[0].x
                            : k == 1 ? E.row[0].y
                                     : E.row[0].z,
                            k == 0   ? E.row[1].x
                            : k == 1 ? E.row[1].y
                                     : E.row[1].z,
                            k == 0   ? E.row[2].x
                            : k == 1 ? E.row[2].y
                                     : E.row[2].z};
            carry(i, {cross(c, u), times(mass, u)}, v);
          }
          const Symmetric& I = own.inertia;
          carry(i, {{I.xx, I.xy, I.xz}, {zero, negate(c.z), c.y}}, v);
          carry(i, {{I.xy, I.yy, I.yz}, {c.z, zero, negate(c.x)}}, v + 1);
          carry(i, {{I.xz, I.yz, I.zz}, {negate(c.y), c.x, zero}}, v + 2);
          break;
        }
      }
      if (body.parent >= 0) add_composite(own, E, place[i], composites[body.parent]);
    }
  }

  static void add_composite(const Composite& own, const Mat3& E, const Vec3& r, Composite& to) {
    const V mass = all(own.mass);
    const Vec3 c = back(E, own.moment), both = added(all(0.5) * mass, r, c);
    const Symmetric& I = own.inertia;
    Mat3 IE;  // its rows
    const Vec3* const e = E.row;
    IE.row[0] = added(I.xz, e[2], added(I.xy, e[1], times(I.xx, e[0])));
    IE.row[1] = added(I.yz, e[2], added(I.yy, e[1], times(I.xy, e[0])));
    IE.row[2] = added(I.zz, e[2], added(I.yz, e[1], times(I.xz, e[0])));
    const Vec3 br = {both.x * r.x, both.y * r.y, both.z * r.z};
    const auto add = [&](V& entry, V a0, V a1, V a2, V b0, V b1, V b2) {
      entry = entry + fma(a2, b2, fma(a1, b1, a0 * b0));
    };
    Symmetric& out = to.inertia;
    add(out.xx, e[0].x, e[1].x, e[2].x, IE.row[0].x, IE.row[1].x, IE.row[2].x);
    add(out.xy, e[0].x, e[1].x, e[2].x, IE.row[0].y, IE.row[1].y, IE.row[2].y);
    add(out.xz, e[0].x, e[1].x, e[2].x, IE.row[0].z, IE.row[1].z, IE.row[2].z);
    add(out.yy, e[0].y, e[1].y, e[2].y, IE.row[0].y, IE.row[1].y, IE.row[2].y);
    add(out.yz, e[0].y, e[1].y, e[2].y, IE.row[0].z, IE.row[1].z, IE.row[2].z);
    add(out.zz, e[0].z, e[1].z, e[2].z, IE.row[0].z, IE.row[1].z, IE.row[2].z);
    const V two = all(2.0);
    out.xx = fma(two, br.y + br.z, out.xx);
    out.yy = fma(two, br.x + br.z, out.yy);
    out.zz = fma(two, br.x + br.y, out.zz);
    out.xy = out.xy - fma(both.x, r.y, r.x * both.y);
    out.xz = out.xz - fma(both.x, r.z, r.x * both.z);
    out.yz = out.yz - fma(both.y, r.z, r.y * both.z);
    to.moment = plus(to.moment, added(mass, r, c));
    to.mass += own.mass;
  }

  /// M = L D Lᵀ, then v = M⁻¹p.
  void find_velocities() {
    const int n = t.velocities;
    const V zero = all(0.0), none = all(__builtin_nan(""));
    V* const v = velocity;
    for (int i = 0; i < n; ++i) v[i] = at(t.x, t.positions + i);
    for (int j = 0; j < n; ++j) {
      V* const own = M + j * n;
      for (int k = 0; k < j; ++k) {  // own[k] becomes L(j, k) D(k)
        V entry = own[k];
        const V* const other = M + k * n;
        for (int l = 0; l < k; ++l) entry = fma(negate(own[l]), other[l], entry);
        own[k] = entry;
      }
      V pivot = own[j], right = v[j];
      for (int k = 0; k < j; ++k) {
        const V scaled = own[k] * inverse[k];
        pivot = fma(negate(own[k]), scaled, pivot);
        own[k] = scaled;
        right = fma(negate(scaled), v[k], right);
      }
      v[j] = right;
      inverse[j] = all(1.0) / where_at_most(pivot, zero, none, pivot);
    }
    for (int i = 0; i < n; ++i) v[i] = v[i] * inverse[i];
    for (int i = n; i-- > 0;) {
      const V* const own = M + i * n;
      for (int k = 0; k < i; ++k) v[k] = fma(negate(own[k]), v[i], v[k]);
    }
    for (int i = 0; i < n; ++i) v[i].store(t.g + (t.positions + i) * kLaneGroup);
  }

  void run_out() {
    const Vec3 up = {all(0.0), all(0.0), all(1.0)};
    for (int i = 0; i < t.count; ++i) {
      const tree::Body& body = t.bodies[i];
      const Mat3& E = turn[i];
      Link& link = links[i];
      const V* const own = velocity + body.v;
      Vec3 shift = nothing();
      link.turn_before = nothing();
      link.up_before = up;
      if (body.parent >= 0) {
        const Link& parent = links[body.parent];
        link.turn_before = parent.turn;
        link.up_before = parent.up;
        shift = minus(parent.shift, cross(place[i], link.turn_before));
      }
      const bool is_free = body.joint == tree::Joint::free;
      if (is_free) shift = {own[0], own[1], own[2]};
      link.before = {product(E, link.turn_before), product(E, shift)};
      link.turn = link.before.turn;
      link.shift = link.before.shift;
      if (body.joint == tree::Joint::revolute) {
        link.turn.z = link.turn.z + own[0];
      } else if (body.joint == tree::Joint::prismatic) {
        link.shift.z = link.shift.z + own[0];
      } else {
        const V* const spin = own + (is_free ? 3 : 0);
        link.turn = plus(link.turn, {spin[0], spin[1], spin[2]});
      }
      const Vec3 c = all3(body.moment);
      link.force.turn = plus(product(inertia_of(body), link.turn), cross(c, link.shift));
      link.force.shift = minus(times(all(body.mass), link.shift), cross(c, link.turn));
      link.up = product(E, link.up_before);
      link.lift = times(all(t.gravity), c);
    }
  }

  void run_back() {
    for (int i = t.count; i-- > 0;) {
      const tree::Body& body = t.bodies[i];
      const Mat3& E = turn[i];
      const Link& link = links[i];
      const V weight = all(body.weight);
      const Vec3 shift = back(E, link.force.shift);
      const Vec3 torque =
          minus(cross(link.lift, link.up), plus(cross(link.force.turn, link.before.turn),
                                                cross(link.force.shift, link.before.shift)));
      double* own = t.g + body.q * kLaneGroup;
      if (body.joint == tree::Joint::revolute) {
        torque.z.store(own);
      } else if (body.joint == tree::Joint::prismatic) {
        const Vec3 axis = all3(body.to_joint + 6);
        fma(weight, dot(axis, link.up_before), dot(shift, cross(axis, link.turn_before)))
            .store(own);
      } else {
        int place_of_turn = body.q;
        if (body.joint == tree::Joint::free) {
          all(0.0).store(own);
          all(0.0).store(own + kLaneGroup);
          weight.store(own + 2 * kLaneGroup);
          own += 3 * kLaneGroup;
          place_of_turn += 3;
        }
        const V w = at(t.x, place_of_turn);
        const Vec3 u = at3(t.x, place_of_turn + 1), turned = cross(u, torque);
        const V gain = all(2.0) / fma(w, w, dot(u, u));
        (negate(gain) * dot(u, torque)).store(own);
        (gain * fma(w, torque.x, turned.x)).store(own + kLaneGroup);
        (gain * fma(w, torque.y, turned.y)).store(own + 2 * kLaneGroup);
        (gain * fma(w, torque.z, turned.z)).store(own + 3 * kLaneGroup);
      }
      if (body.parent < 0) continue;
      Link& parent = links[body.parent];
      parent.force.turn =
          plus(parent.force.turn, plus(back(E, link.force.turn), cross(place[i], shift)));
      parent.force.shift = plus(parent.force.shift, shift);
      parent.lift = plus(parent.lift, added(weight, place[i], back(E, link.lift)));
    }
  }

  const tree::Task& t;
  Mat3 turn[tree::kMostBodies];
  Vec3 place[tree::kMostBodies];
  Composite composites[tree::kMostBodies];
  Link links[tree::kMostBodies];
  V M[tree::kMostVelocities * tree::kMostVelocities];
  V velocity[tree::kMostVelocities], inverse[tree::kMostVelocities];
};

void gradients(const tree::Task& task) {
  TreeGradient own(task);
  own.set_poses();
  own.set_mass_matrix();
  own.find_velocities();
  own.run_out();
  own.run_back();
}

}  // namespace

const tree::Kernels kTree = {gradients};

}  // namespace portwave::PORTWAVE_ISA
