// Writes the toy plan to a file, for tests of whole tools.
#include "test/runtime/plan/ToyPlan.h"

#include <fstream>

int main(int argc, char **argv) {
  const std::vector<std::byte> file = mega::packPlan(*mega::toyPlan());
  std::ofstream out(argc > 1 ? argv[1] : "", std::ios::binary);
  out.write(reinterpret_cast<const char *>(file.data()),
            static_cast<std::streamsize>(file.size()));
  return out.flush() ? 0 : 74;
}
