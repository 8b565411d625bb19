// delicious: numbers released by SEAL's authors.
{
  every: { features+: { hidden: [400, 400], dropout: 0.1 } },
  with_energy: { energy+: { hidden: 200 } },
  cross_entropy: { trainer+: { net+: { lr: 0.00292 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 80 } },
  nce: {
    features+: { dropout: 0.5 },
    energy_loss+: { samples: 20 },
    trainer+: { energy_weight: 0.91, rounds: 5, energy+: { lr: 0.00373, steps: 6 }, net+: { lr: 0.000848 } },
  },
  ranking: {
    features+: { dropout: 0.5 },
    energy_loss+: { samples: 80 },
    trainer+: { energy_weight: 1.01, rounds: 10, energy+: { lr: 0.000859, steps: 3 }, net+: { lr: 9.95e-05 } },
  },
  regression: {
    features+: { dropout: 0.5 },
    trainer+: { energy_weight: 9.27, rounds: 5, energy+: { lr: 0.000114, steps: 3 }, net+: { lr: 0.00176 } },
  },
  regression_s: {
    features+: { dropout: 0.5 },
    energy_loss+: { samples: 5, std: 0.603 },
    trainer+: { energy_weight: 9.85, energy+: { lr: 0.000129, steps: 6 }, net+: { lr: 0.00331 } },
  },
  margin: { features+: { dropout: 0.2 }, trainer+: { cross_entropy_weight: 5.6, energy+: { lr: 0.0027 }, net+: { lr: 0.00497 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.00118 } },
  spen: { descent+:: { lr: 0.00678 }, trainer+: { energy+: { lr: 0.00295 }, net+: { lr: 0.00292 } } },
  dvn: { features+: { hidden: [500, 500], dropout: 0 }, descent+:: { lr: 0.135 }, trainer+: { energy+: { lr: 0.00115, weight_decay: 0.00391 } } },
  nce_alone: { energy_loss+: { samples: 80 }, trainer+: { energy+: { lr: 0.00205 }, net+: { lr: 0.00292 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.00137, net+: { lr: 0.00556 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 2.51, net+: { lr: 0.00112, weight_decay: 0.00391 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.00292, net+: { lr: 0.00063 } } },
  // Nets underfit at the released dropout and rates.
  light: {
    nce: { features+: { dropout: 0.2 }, trainer+: { net+: { lr: 0.001 } } },
    ranking: { features+: { dropout: 0.2 }, energy_loss+: { samples: 20 }, trainer+: { net+: { lr: 0.001 } } },
  },
}
