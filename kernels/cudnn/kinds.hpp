#pragma once

#include "kernels/cudnn/layer.hpp"

namespace stepcast::cudnn {

// One file a kind, or a few small ones together; `make_kernel` of the backend is the table.
std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_dense(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_batch_norm(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_activation(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_pool(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_up_sample(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_dropout(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_recurrent(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_attention(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_softmax_loss(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_element_loss(std::shared_ptr<Device> device, const LayerSite& site);

// Of layers of a cut sample or of a shared network, which need what other devices have.
std::unique_ptr<LayerKernel> make_cut_convolution(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_cut_pool(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_group_batch_norm(std::shared_ptr<Device> device, const LayerSite& site);
std::unique_ptr<LayerKernel> make_shared_softmax_loss(std::shared_ptr<Device> device, const LayerSite& site);

}  // namespace stepcast::cudnn
