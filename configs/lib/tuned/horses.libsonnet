// Weizmann's horses in 32x32 pixels: chosen on the validation part.
{
  every: {
    task+: { shift: 3, flips: true, brightness: 0.1, contrast: 0.2 },
    player:: { lr: 2e-3, weight_decay: 1e-4, schedule: { type: 'cosine' } },
    trainer+: { epochs: 40, batch_size: 16, evaluation_batch_size: 64, patience: null },
  },
  cross_entropy: { trainer+: { net+: $.every.player } },
  with_energy: { trainer+: { energy+: { lr: 1e-3, weight_decay: 1e-4 } } },
  regression: { trainer+: { energy_weight: 100, net+: $.every.player } },
  regression_s: self.regression { energy_loss+: { samples: 5 } },
  margin: { energy_loss+: { cost: 'score' }, trainer+: { energy_weight: 100, net+: $.every.player } },
  nce: { energy_loss+: { samples: 10 }, trainer+: { energy_weight: 1, net+: $.every.player } },
  // CD's samples are single pixels of noise, which the energy tells from gold by their texture: one relaxed output is compared.
  implicit_cd: { energy_loss+: { samples: 5 }, trainer+: { energy_weight: 10, net+: $.every.player } },
  alternating_cd: self.implicit_cd,
  implicit_ssvm: { trainer+: { energy_weight: 10, net+: $.every.player } },
  implicit_dvn: { trainer+: { energy_weight: 100, net+: $.every.player } },
  dvn: { descent+:: { steps: 20, lr: 0.1 } },
}
