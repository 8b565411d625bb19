// Energies of tag sequences, by name: sums of the terms of Tu, Pang & Gimpel (2020, Eq. 7 to 9).
//
// Language models have a config's `tag_lm` in common; those with words see a word through its `token`, a feature network.
// `encoders` says which of an energy's parts read sentences, for their own learning rate.
local chain = { type: 'linear_chain' };
local sum(terms) = { encoders:: ['terms.chain.features'], energy: { type: 'sum', terms: { chain: chain } + terms } };
local both = ['forward', 'backward'];
local tag_lm(directions) = sum({}) {
  local config = self,
  energy+: { terms+: { tags: { type: 'infnet.tag_lm', directions: directions } + config.tag_lm }, weights: { tags: 0.1 } },
};
{
  chain: { encoders:: ['features'], energy: chain },
  ge_a: tag_lm(['forward']),
  ge_b: tag_lm(both),
  ge_c: tag_lm(both) {
    local config = self,
    energy+: {
      terms+: { words: { type: 'infnet.word_tag_lm', directions: both, features: config.token } + config.tag_lm },
      // γ times that of the models without words; γ = 1.
      weights+: { words: 0.1 },
    },
  },
  skip_chain: sum({ skips: { type: 'infnet.skip_chain' } }),
  high_order: sum({ windows: { type: 'infnet.high_order' } }),
}
