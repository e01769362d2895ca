#include <cstdio>

#include <portwave/subsystems/port.hpp>

int main() {
  std::puts("portwave: found, compiled and linked");
  return 0;
}
