// The embedded corpus of label sets: a user's files, for less long.
(import 'files.libsonnet') {
  every+: { features+: { dropout: 0.2 }, trainer+: { epochs: 40 } },
  spen+: { net_epochs:: 20 },
  unrolled: { init_epochs:: 15, trainer+: { clamped_epochs: 10, epochs: 20, patience: 8, energy+: { lr: 3e-3 } } },
  nce_alone+: { net_epochs:: 20 },
  static_margin+: { trainer+: { energy_epochs: 20 } },
  static_regression+: { trainer+: { energy_epochs: 20 } },
  static_nce+: { trainer+: { energy_epochs: 20 } },
}
