#pragma once

#include "kernels/onednn/layer.hpp"

namespace stepcast::onednn {

// One file a kind; `make_kernel` of the backend is the table.
std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_cut_convolution(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_cut_pool(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_group_batch_norm(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_dense(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_batch_norm(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_activation(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_pool(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_up_sample(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_dropout(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_recurrent(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_attention(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_softmax_loss(std::shared_ptr<Library> library, const LayerSite& site);
std::unique_ptr<LayerKernel> make_shared_softmax_loss(std::shared_ptr<Library> library,
                                                      const LayerSite& site);
std::unique_ptr<LayerKernel> make_element_loss(std::shared_ptr<Library> library, const LayerSite& site);

}  // namespace stepcast::onednn
