// A user's own files: starting points of our own.
{
  every: { features+: { hidden: [200, 200], dropout: 0.5 } },
  with_energy: { energy+: { hidden: 100 } },
  cross_entropy: { trainer+: { net+: { lr: 0.002 } } },
  ranking_direct: self.cross_entropy { trainer+: { samples: 40 } },
  nce: { energy_loss+: { samples: 20 }, trainer+: { energy_weight: 1, energy+: { lr: 0.0005 }, net+: { lr: 0.001 } } },
  ranking: { energy_loss+: { samples: 40 }, trainer+: { energy_weight: 1, energy+: { lr: 0.0005 }, net+: { lr: 0.001 } } },
  regression: { trainer+: { energy_weight: 1, energy+: { lr: 0.0005 }, net+: { lr: 0.001 } } },
  regression_s: { energy_loss+: { samples: 10, std: 0.5 }, trainer+: { energy_weight: 1, energy+: { lr: 0.0005 }, net+: { lr: 0.001 } } },
  margin: { trainer+: { cross_entropy_weight: 4, energy+: { lr: 0.0005 }, net+: { lr: 0.001 } } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.002 } },
  spen: { descent+:: { lr: 0.01 }, trainer+: { energy+: { lr: 0.0005 }, net+: { lr: 0.002 } } },
  dvn: { trainer+: { energy+: { lr: 0.0005 } } },
  nce_alone: { energy_loss+: { samples: 20 }, trainer+: { energy+: { lr: 0.0005 }, net+: { lr: 0.002 } } },
  static_margin: self.spen { trainer+: { energy_weight: 0.01, net+: { lr: 0.002 } } },
  static_regression: self.dvn { trainer+: { energy_weight: 1, net+: { lr: 0.001 } } },
  static_nce: self.nce_alone { trainer+: { energy_weight: 0.1, net+: { lr: 0.001 } } },
}
