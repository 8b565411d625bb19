// Methods released for label sets alone: energies that learn without a net to teach and predict by gradient-based inference,
// SEAL-static, where such an energy is fixed and then teaches a net, and the ranking loss on the net itself.
//
// `descent`: steps of gradient-based inference, in the loss and in the search for outputs; `search`: where that one starts;
// `net_epochs`: how long a net learns first, whose output the search starts from or whose samples the loss contrasts with gold.
local spen = {
  local config = self,
  descent:: { steps: 20, lr: 0.1, optimizer: 'adam' },
  search:: self.descent { starts: ['net'] },
  net_epochs:: 60,
  energy_loss: { type: 'ssvm', cost: 'score', starts: ['net'], descent: config.descent },
};
local dvn = {
  local config = self,
  descent:: { steps: 30, lr: 0.1, optimizer: 'adam' },
  search:: self.descent { starts: ['zeros'] },
  net_epochs:: 0,
  energy_loss: { type: 'dvn', descent: config.descent, adversary: config.descent { steps: 1, pick: 'last' } },
};
local nce = {
  descent:: { steps: 20, lr: 0.1, optimizer: 'adam' },
  search:: self.descent { starts: ['random'], random: 3 },
  net_epochs:: 60,
  energy_loss: { type: 'seal.nce' },
};

local alone(energy) = energy {
  local config = self,
  local net = super.inference_net,
  inference_net: { type: 'gbi' } + config.search + (if config.net_epochs > 0 then { net: net } else {}),
  trainer+: { type: 'energy', net_epochs: config.net_epochs },
};
local static(energy, select='gbi') = energy {
  local config = self,
  trainer+: { type: 'seal.static', net_epochs: config.net_epochs, energy_epochs: 60, select: select, gbi: config.search },
};

{
  spen: alone(spen),
  dvn: alone(dvn),
  nce_alone: alone(nce),
  static_margin: static(spen),
  static_regression: static(dvn),
  static_nce: static(nce, select='loss'),
  ranking_direct: { has_energy:: false, trainer+: { type: 'seal.direct' } },
}
