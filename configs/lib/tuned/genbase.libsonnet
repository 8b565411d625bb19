// genbase: numbers released by SEAL's authors.
{
  every: { features+: { hidden: [400], dropout: 0 } },
  with_energy: { energy+: { hidden: 200 } },
  cross_entropy: { trainer+: { net+: { lr: 0.00198 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 100 } },
  nce: {
    energy_loss+: { samples: 100 },
    trainer+: { energy_weight: 0.00203, rounds: 10, energy+: { lr: 0.000547, steps: 9 }, net+: { lr: 0.00125 } },
  },
  ranking: {
    energy_loss+: { samples: 100 },
    trainer+: { energy_weight: 0.00193, rounds: 10, energy+: { lr: 1.69e-05, steps: 3 }, net+: { lr: 0.00166 } },
  },
  regression: { trainer+: { energy_weight: 0.00243, rounds: 10, energy+: { lr: 0.000366, steps: 6 }, net+: { lr: 0.00136 } } },
  regression_s: {
    energy_loss+: { samples: 20, std: 4 },
    trainer+: { energy_weight: 0.0276, rounds: 10, energy+: { lr: 0.000464, steps: 3 }, net+: { lr: 0.000997 } },
  },
  margin: { energy+: { hidden: 400 }, trainer+: { cross_entropy_weight: 7.53, energy+: { lr: 0.00027 }, net+: { lr: 0.000742, steps: 10 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.0101 } },
  spen: { descent+:: { lr: 0.0106 }, trainer+: { energy+: { lr: 0.000423 }, net+: { lr: 0.00198 } } },
  dvn: { descent+:: { lr: 0.109 }, trainer+: { energy+: { lr: 0.000846, weight_decay: 0.0236 } } },
  nce_alone: { energy_loss+: { samples: 80 }, trainer+: { energy+: { lr: 0.000322 }, net+: { lr: 0.00198 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.0336, net+: { lr: 0.00226 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 0.454, net+: { lr: 0.00101, weight_decay: 0.0236 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.00408, net+: { lr: 0.000795 } } },
  // 397 rows make so few batches that the net wants its ten rounds.
  light: {
    nce: { energy_loss+: { samples: 20 }, trainer+: { rounds: 10, energy+: { steps: 1 } } },
  },
}
