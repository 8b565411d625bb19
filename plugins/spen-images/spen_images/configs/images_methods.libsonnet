// Denoising as of Belanger, Yang & McCallum (2017, Sec. 6.1): energies that learn through the gradient steps that minimise them,
// the same energies learned by SSVM, and a feed-forward net.
//
// `prior`: number and size of the filters; `player`: the optimiser; `descent`: gradient-based inference of SSVM.
local sizes = { prior:: { filters: 32, size: 7 }, player:: {} };
local energy(type) = sizes {
  local config = self,
  energy: { type: type } + config.prior,
  trainer+: { energy+: config.player },
};
local foe = energy('e2e.foe');
local deep = energy('e2e.deep_prior');
// Deeper, of 3×3 filters on blocks of 2×2 pixels.
local residual = energy('e2e.residual_prior') { prior:: { filters: 48, size: 3 } };

// The loss is of all iterates (Eq. 9) and each step has a rate of its own.
local unrolled(steps) = {
  inference_net: { type: 'e2e.unrolled', net: { type: 'e2e.input' }, steps: steps, momentum: 0.25, rates: 'learned', lr: if steps > 3 then 0.5 else 1 },
  trainer+: { type: 'e2e.unroll', iterates: 'all' },
};
local plain = { inference_net+: { momentum: 0.75, rates: 'fixed' }, trainer+: { iterates: 'last' } };
// Of the descent's points the lowest is taken: where it ends beyond the energy's minimum, the hinge would miss the violations on the way.
local ssvm = {
  local config = self,
  descent:: { steps: 20, lr: 0.1, optimizer: 'gradient', momentum: 0.25, pick: 'best' },
  energy_loss: { type: 'ssvm', cost: 'l1', starts: ['net'], descent: config.descent },
  inference_net: { type: 'gbi', net: { type: 'e2e.input' } } + config.descent,
  trainer+: { type: 'energy', net_epochs: 0 },
};

{
  foe20: foe + unrolled(20) + plain,
  foe20_plus: foe + unrolled(20),
  foe3: foe + unrolled(3),
  dp20: deep + unrolled(20),
  dp3: deep + unrolled(3),
  rp3: residual + unrolled(3),
  icnn: self.dp3 { energy+: { icnn: true } },
  foe_ssvm: foe + ssvm,
  dp_ssvm: deep + ssvm,
  convnet: sizes {
    local config = self,
    has_energy:: false,
    inference_net: { type: 'e2e.convnet' } + config.prior,
    trainer+: { type: 'cross_entropy', net+: config.player },
  },
}
