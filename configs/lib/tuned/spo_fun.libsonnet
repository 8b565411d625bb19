// spo_fun: numbers released by SEAL's authors.
{
  every: { features+: { hidden: [300, 300, 300, 300], dropout: 0.1 } },
  with_energy: { energy+: { hidden: 300 } },
  cross_entropy: { trainer+: { net+: { lr: 0.01 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 40 } },
  nce: { energy_loss+: { samples: 40 }, trainer+: { energy_weight: 1, rounds: 10, energy+: { lr: 0.00821, steps: 3 }, net+: { lr: 0.000544 } } },
  ranking: { energy_loss+: { samples: 40 }, trainer+: { energy_weight: 1.19, rounds: 5, energy+: { lr: 0.00612, steps: 3 }, net+: { lr: 0.00109 } } },
  regression: { trainer+: { energy_weight: 9.05, rounds: 5, energy+: { lr: 0.00139, steps: 12 }, net+: { lr: 0.000155 } } },
  regression_s: {
    features+: { hidden: [500, 500, 500, 500, 500], dropout: 0.2 },
    energy+: { hidden: 400 },
    energy_loss+: { samples: 10, std: 0.091 },
    trainer+: { energy_weight: 0.0194, rounds: 10, energy+: { lr: 0.000212, steps: 9 }, net+: { lr: 0.000935 } },
  },
  margin: { features+: { dropout: 0.2 }, trainer+: { cross_entropy_weight: 0.63, energy+: { lr: 7.93e-05 }, net+: { lr: 0.00224, steps: 10 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.00521 } },
  spen: { energy+: { hidden: 200 }, descent+:: { lr: 0.00815 }, trainer+: { energy+: { lr: 1.04e-05 }, net+: { lr: 0.01 } } },
  dvn: {
    features+: { dropout: 0.3 },
    energy+: { hidden: 200 },
    descent+:: { lr: 0.346 },
    trainer+: { energy+: { lr: 0.000203, weight_decay: 0.000754 } },
  },
  nce_alone: { energy_loss+: { samples: 100 }, trainer+: { energy+: { lr: 0.000261 }, net+: { lr: 0.01 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.00508, net+: { lr: 0.01 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 0.111, net+: { lr: 0.00165, weight_decay: 0.000754 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.0023, net+: { lr: 0.00569 } } },
}
