// Weizmann's horses in 32x32 pixels: chosen on the validation part.
{
  every: {
    task+: { shift: 3, flips: true, brightness: 0.1, contrast: 0.2 },
    player:: { lr: 4e-3, weight_decay: 1e-4, schedule: { type: 'cosine' } },
    trainer+: { epochs: 60, batch_size: 8, evaluation_batch_size: 64, patience: null, net+: $.every.player },
  },
  with_energy: { trainer+: { energy+: { lr: 1e-3, weight_decay: 1e-4 } } },
  // λ1 stands beside a cross entropy that is a sum over a thousand pixels.
  regression: { trainer+: { energy_weight: 300 } },
  regression_s: self.regression { energy_loss+: { samples: 5, std: 3 } },
  margin: { energy_loss+: { cost: 'score' }, trainer+: { energy_weight: 10 } },
  nce: { energy_loss+: { samples: 10 }, trainer+: { energy_weight: 1 } },
  cglow: { trainer+: { epochs: 300, net+: { lr: 1e-3, clip: 1 } } },
  // Noise on single pixels tells samples from gold at first sight, so CD sees the net's relaxed output alone.
  implicit_cd: {
    pretrain_epochs:: 40,
    energy_loss+: { samples: 1, outputs: 'soft' },
    trainer+: { epochs: 12, energy_weight: 10 },
  },
  alternating_cd: self.implicit_cd,
  implicit_ssvm: { pretrain_epochs:: 40, trainer+: { epochs: 12, energy_weight: 10 } },
  implicit_dvn: { pretrain_epochs:: 40, trainer+: { epochs: 12, energy_weight: 300 } },
  dvn: { descent+:: { steps: 20, lr: 0.1 } },
}
