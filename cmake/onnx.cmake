# ONNX for `stepcast import`, if Debian's libonnx-dev and libprotobuf-dev are installed. ONNX's own package file asks for
# libraries that nothing here needs.
find_path(ONNX_INCLUDE onnx/onnx_pb.h)
find_path(PROTOBUF_INCLUDE google/protobuf/message.h)
find_library(ONNX_LIBRARY onnx)
find_library(ONNX_PROTO_LIBRARY onnx_proto)
find_library(PROTOBUF_LIBRARY protobuf)
set(STEPCAST_HAS_ONNX OFF)
if(ONNX_INCLUDE AND PROTOBUF_INCLUDE AND ONNX_LIBRARY AND ONNX_PROTO_LIBRARY AND PROTOBUF_LIBRARY)
  set(STEPCAST_HAS_ONNX ON)
endif()
message(STATUS "stepcast import of ONNX graphs: ${STEPCAST_HAS_ONNX}")
