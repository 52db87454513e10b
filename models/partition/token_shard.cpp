#include "models/partition/token_shard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"
#include "models/partition/layer_partition.hpp"

namespace stepcast {
namespace {

using Form = TokenExchange::Form;
using Share = LayerShare::Form;

/// Equal runs of tokens, one for each rank, or two: number `place` from the beginning and from the end.
std::vector<Rows> tokens_at(std::int64_t tokens, int ways, int place, bool early_and_late) {
  const std::int64_t runs = early_and_late ? 2 * ways : ways, each = tokens / runs;
  std::vector<Rows> own{{place * each, (place + 1) * each}};
  if (early_and_late) own.push_back({(runs - 1 - place) * each, (runs - place) * each});
  return own;
}

std::vector<std::vector<Rows>> tokens_of_group(std::int64_t tokens, int ways, bool early_and_late) {
  std::vector<std::vector<Rows>> all;
  for (int place = 0; place < ways; ++place) all.push_back(tokens_at(tokens, ways, place, early_and_late));
  return all;
}

/// The tokens at `positions` of the tokens of a list.
std::vector<Rows> selected(const std::vector<Rows>& tokens, const Rows& positions) {
  std::vector<Rows> found;
  std::int64_t before = 0;
  for (const Rows& run : tokens) {
    const Rows here{std::max(run.first, run.first + positions.first - before),
                    std::min(run.last, run.first + positions.last - before)};
    if (here.first < here.last) found.push_back(here);
    before += run.size();
  }
  return found;
}

std::int64_t tokens_of_sample(const Model& model) {
  return model.layers.front().input.front();
}

/// Where a rank lies, and the tokens that it has.
struct RankTokens {
  int ways = 1, context = 1;
  int in_tensor = 0, in_context = 0;
  std::int64_t all = 0;
  bool early_and_late = false;

  std::vector<std::vector<Rows>> of_context() const { return tokens_of_group(all, context, early_and_late); }
  /// The ranks of the tensor axis divide the tokens of their place in the context axis.
  std::vector<std::vector<Rows>> of_tensor() const { return tokens_of_group(all / context, ways, false); }
};

RankTokens rank_tokens(const Model& model, int ways, const TokenDivision& division, int place) {
  const std::int64_t tokens = tokens_of_sample(model);
  const bool causal = std::ranges::any_of(model.layers, &Layer::causal);
  const bool balances = division.exchange == ContextExchange::all_gather && causal && division.context > 1 &&
                        tokens % (2 * std::int64_t{division.context}) == 0;
  return {ways, division.context, place % ways, place / ways, tokens, balances};
}

ShardedModel divided(const Model& model, int ways, const TokenDivision& division) {
  ShardedModel sharded = shard_tensor(model, ways);
  if (division.by_tensor) {
    divide_tokens(model, ways, sharded);
    sharded.part.input.front() /= ways;
  }
  if (division.context > 1) divide_context(division.context, division.exchange, sharded);
  return sharded;
}

/// The positions of the tokens of layers between shared ones.
std::vector<Rows> own_tokens(const RankTokens& rank, bool by_tensor) {
  const std::vector<Rows> of_place = rank.of_context()[rank.in_context];
  return by_tensor ? selected(of_place, rank.of_tensor()[rank.in_tensor].front()) : of_place;
}

/// Attention that keeps all its heads, with the queries of its own tokens.
void set_keys(const Layer& whole, int ways, const RankTokens& rank, SharedPart& part, std::size_t index) {
  Layer& layer = part.model.layers[index];
  layer.input = {rank.all / rank.context, whole.input.back() / ways};
  layer.output = {rank.all / rank.context, whole.output.back() / ways};
  layer.heads = whole.heads / ways;
  part.shares[index] = LayerShare{Share::queries, {}, rank.of_context()[rank.in_context]};
}

void set_exchange(const Layer& whole, const TokenDivision& division, const RankTokens& rank, SharedPart& part,
                  std::size_t index) {
  std::optional<LayerShare>& share = part.shares[index];
  std::optional<TokenExchange>& exchange = part.exchanged[index];
  if (whole.kind == LayerKind::attention && division.context > 1) {
    const bool keys = division.exchange == ContextExchange::all_gather;
    exchange = TokenExchange{keys ? Form::keys : Form::heads, rank.in_context, rank.of_context()};
    if (keys) set_keys(whole, rank.ways, rank, part, index);
  } else if (division.by_tensor && share && share->form != Share::classes) {
    const bool columns = share->form == Share::columns;
    exchange = TokenExchange{columns ? Form::gathered : Form::scattered, rank.in_tensor, rank.of_tensor()};
    if (!columns) share->tokens = rank.of_tensor()[rank.in_tensor];
  } else if (whole.kind == LayerKind::dropout || whole.kind == LayerKind::position_embedding) {
    share = LayerShare{Share::tokens, {}, own_tokens(rank, division.by_tensor), rank.all};
  }
}

}  // namespace

SharedPart token_shard(const Model& model, int ways, const TokenDivision& division, int place) {
  SharedPart part = tensor_shard(model, ways, place % ways);
  if (!division.any()) return part;
  ShardedModel sharded = divided(model, ways, division);
  part.model = std::move(sharded.part);
  part.summed = std::move(sharded.divided_tokens);
  part.exchanged.resize(model.layers.size());
  const RankTokens rank = rank_tokens(model, ways, division, place);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    set_exchange(model.layers[i], division, rank, part, i);
  return part;
}

std::vector<Rows> tokens_of_rank(const Model& model, int ways, const TokenDivision& division, int place,
                                 bool targets) {
  const RankTokens rank = rank_tokens(model, ways, division, place);
  if (!targets || !division.by_tensor) return own_tokens(rank, division.by_tensor);
  const ShardedModel shared = shard_tensor(model, ways);
  const bool classes = shared.part.layers.back().input != model.layers.back().input;
  return own_tokens(rank, !classes);
}

std::string token_part_problem(const Model& model, int ways, const TokenDivision& division) {
  if (!division.any()) return "";
  if (division.context > 1 && division.exchange == ContextExchange::ring)
    return "context_exchange: ring, where attention begins with the keys that have arrived";
  if (division.context > 1 && division.exchange == ContextExchange::pass_kv)
    return "context_exchange: pass_kv, where attention begins with the keys that have arrived";
  return part_problem(model, shard_tensor(model, ways));
}

}  // namespace stepcast
