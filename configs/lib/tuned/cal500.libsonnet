// cal500: numbers released by SEAL's authors.
{
  every: { features+: { hidden: [500, 500, 500, 500, 500], dropout: 0.2 } },
  with_energy: { energy+: { hidden: 400 } },
  cross_entropy: { trainer+: { net+: { lr: 0.00986 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 40 } },
  nce: { energy_loss+: { samples: 20 }, trainer+: { energy_weight: 0.478, rounds: 10, energy+: { lr: 0.00779, steps: 9 }, net+: { lr: 0.00491 } } },
  ranking: {
    energy_loss+: { samples: 40 },
    trainer+: { energy_weight: 8.72, rounds: 5, energy+: { lr: 0.00244, steps: 6 }, net+: { lr: 4.58e-05 } },
  },
  regression: { trainer+: { energy_weight: 1.38, rounds: 10, energy+: { lr: 0.00599, steps: 3 }, net+: { lr: 0.00691 } } },
  regression_s: {
    energy_loss+: { samples: 30, std: 2.85 },
    trainer+: { energy_weight: 8.89, rounds: 5, energy+: { lr: 0.00866, steps: 9 }, net+: { lr: 0.00623 } },
  },
  margin: { trainer+: { cross_entropy_weight: 3.99, energy+: { lr: 0.00051 }, net+: { lr: 0.00827, steps: 10 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.0049 } },
  spen: { energy+: { hidden: 200 }, descent+:: { lr: 0.0169 }, trainer+: { energy+: { lr: 1.08e-05 }, net+: { lr: 0.00986 } } },
  dvn: {
    features+: { dropout: 0.3 },
    energy+: { hidden: 200 },
    descent+:: { lr: 0.107 },
    trainer+: { energy+: { lr: 6.52e-05, weight_decay: 8.23e-06 } },
  },
  nce_alone: { energy_loss+: { samples: 100 }, trainer+: { energy+: { lr: 0.00354 }, net+: { lr: 0.00986 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.0415, net+: { lr: 0.00714 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 0.117, net+: { lr: 0.0102, weight_decay: 8.23e-06 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.108, net+: { lr: 0.0056 } } },
  // Of 301 rows, deep local terms learn more than is good.
  unrolled: { inference_net+: { entropy: 0 }, trainer+: { clamped_epochs: 30, epochs: 0, energy+: { groups: {} } } },
  // DVN with one adversarial step learns at other rates.
  light: {
    dvn: { descent+:: { lr: 0.05 }, trainer+: { epochs: 150, patience: 40, energy+: { lr: 0.0005 } } },
    static_regression: self.dvn,
  },
}
