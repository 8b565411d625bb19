// Adversarial localized energy networks (Pan et al. 2020): the energy learns from gradient steps that start from a net's output, and the
// net from the energy, from where these steps end, and from gold. `alen` refines the net's output in prediction, too; `ialen` does not.
local ialen = {
  local config = self,
  descent:: { steps: 5, lr: 0.1, method: 'mirror' },
  energy_loss: { type: 'alen.margin', refine: config.descent, net_cost: false },
  trainer+: { type: 'seal.dynamic', warmup_epochs: 20, energy_weight: 0.1 },
};
{
  ialen: ialen,
  alen: ialen {
    local config = self,
    local net = super.inference_net,
    inference_net: { type: 'alen.refine', net: net } + config.descent,
  },
}
