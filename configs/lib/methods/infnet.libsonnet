// Inference networks (Tu & Gimpel 2018; Tu, Pang & Gimpel 2020), by the objective of the game between the energy and the nets.
//
// `pretrain_epochs`: how long the net learns from cross entropy alone before the game; `pretrain`: the other keys of that stage.
local joint(objective) = {
  local config = self,
  pretrain_epochs:: 0,
  pretrain:: {},
  energy_loss: { type: 'infnet.' + objective },
  // With one update each, one pass of the net serves both players where the energy begins.
  trainer+: { type: 'infnet.joint', pretrain_epochs: config.pretrain_epochs, first: 'energy' } + config.pretrain,
};
{
  margin: joint('margin'),
  perceptron: joint('perceptron'),
  contrastive: joint('contrastive'),
  slack: joint('slack'),
  compound: joint('compound') { energy_loss+: { cost_net: { type: 'infnet.stacked' } } },
}
