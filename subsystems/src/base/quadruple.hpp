#pragma once

namespace portwave {

/// More digits than long double where the compiler has such a type. For set-up only: it is
/// emulated.
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quadruple;  // NOLINT(modernize-use-using): takes no __extension__
#else
using Quadruple = long double;
#endif

}  // namespace portwave
