#pragma once

#include <string>

#include "core/fields.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "platforms/platform_keys.hpp"

namespace stepcast {

/// `{bandwidth: 12 GB/s, latency: 1 us, source: "..."}`
inline const Fields<Link>& link_fields() {
  static const Fields<Link> fields =
      Fields<Link>{field("bandwidth", &Link::bandwidth, bandwidth(), required("a rate such as \"12 GB/s\""),
                         "effective bandwidth in each direction"),
                   field("latency", &Link::latency, duration(), required("a time such as \"1 us\""),
                         "latency in one direction"),
                   source_field<Link>()}
          .sourced(Key::Source::may);
  return fields;
}

/// A key with a link.
template <class T>
Field<T> link_field(std::string_view name, Link T::*member, std::string_view meaning) {
  return field(name, member, mapping<link_fields>(), required("{bandwidth: ..., latency: ...}"), meaning);
}

/// `node:` of a platform.
struct NodeDescription {
  NodeShape shape;
  int devices = 1;
};

/// @param peer_access  of the device; without it, copies between devices pass through host memory
/// @throws InputError
NodeDescription read_node(const YamlValue& value, bool peer_access);

/// Reads `network:` of a platform. @param node  which the NICs are connected to
/// @throws InputError
NetworkShape read_network(const YamlValue& value, const NodeShape& node);

}  // namespace stepcast
