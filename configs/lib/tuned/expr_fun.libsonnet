// expr_fun: numbers released by SEAL's authors.
{
  every: { features+: { hidden: [200, 200, 200, 200], dropout: 0.2 } },
  with_energy: { energy+: { hidden: 400 } },
  cross_entropy: { trainer+: { net+: { lr: 0.005 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 40 } },
  nce: { energy_loss+: { samples: 80 }, trainer+: { energy_weight: 4.14, rounds: 10, energy+: { lr: 5.25e-05, steps: 6 }, net+: { lr: 0.000216 } } },
  ranking: { energy_loss+: { samples: 40 }, trainer+: { energy_weight: 1.05, rounds: 5, energy+: { lr: 0.0102, steps: 6 }, net+: { lr: 0.000522 } } },
  regression: { trainer+: { energy_weight: 0.138, rounds: 5, energy+: { lr: 0.000327, steps: 9 }, net+: { lr: 0.00059 } } },
  regression_s: {
    energy_loss+: { samples: 5, std: 0.217 },
    trainer+: { energy_weight: 0.0212, rounds: 5, energy+: { lr: 3.16e-05, steps: 9 }, net+: { lr: 0.000878 } },
  },
  margin: { trainer+: { cross_entropy_weight: 4.04, energy+: { lr: 0.000103 }, net+: { lr: 0.00122, steps: 5 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.00112 } },
  spen: { energy+: { hidden: 200 }, descent+:: { lr: 0.00718 }, trainer+: { energy+: { lr: 1.02e-05 }, net+: { lr: 0.005 } } },
  dvn: { descent+:: { lr: 0.573 }, trainer+: { energy+: { lr: 0.000284, weight_decay: 0.000102 } } },
  nce_alone: { energy_loss+: { samples: 100 }, trainer+: { energy+: { lr: 0.000237 }, net+: { lr: 0.005 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.00113, net+: { lr: 0.00209 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 0.0265, net+: { lr: 0.00166, weight_decay: 0.000102 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.00137, net+: { lr: 0.00131 } } },
  // Rates released for 60 energy updates a batch are too low for 3. Cross entropy overfits at the released rate.
  light: {
    cross_entropy: { trainer+: { net+: { lr: 0.001 } } },
    nce: { energy_loss+: { samples: 20 }, trainer+: { rounds: 3, energy+: { lr: 0.0005, steps: 1 }, net+: { lr: 0.0005 } } },
  },
}
