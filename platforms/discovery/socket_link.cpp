#include "platforms/discovery/discovered.hpp"

namespace stepcast {

std::optional<SocketLink> nccl_socket_link(const std::string& vendor, int family, int model,
                                           const std::string& processor) {
  const auto link = [](double gigabytes, const char* name) {
    return SocketLink{BytesPerSecond{1e9 * gigabytes}, name};
  };
  if (vendor == "GenuineIntel" && family == 6) {
    if (model >= 0xCF) return link(40, "Intel since Emerald Rapids");
    if (model >= 0x8F) return link(22, "Intel Sapphire Rapids");
    if (model >= 0x55) return link(10, "Intel Skylake to Ice Lake");
    return link(6, "Intel up to Broadwell");
  }
  if (vendor == "AuthenticAMD") {
    if (family == 0x17) return link(16, "AMD Zen 1 or 2");
    if (family == 0x19) return link(24, "AMD Zen 3 or 4");
    if (family == 0x1A) return link(32, "AMD Zen 5");
  }
  if (processor.find("POWER9") != std::string::npos) return link(32, "POWER9");
  return {};
}

}  // namespace stepcast
