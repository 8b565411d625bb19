// The embedded images of shapes: the horses' numbers, for less long.
(import 'horses.libsonnet') {
  every+: { task+: { shift: 2 }, trainer+: { epochs: 20 } },
  cglow+: { trainer+: { epochs: 60 } },
  implicit_cd+: { pretrain_epochs:: 15, trainer+: { epochs: 5 } },
  alternating_cd: self.implicit_cd,
  implicit_ssvm+: { pretrain_epochs:: 15, trainer+: { epochs: 5 } },
  implicit_dvn+: { pretrain_epochs:: 15, trainer+: { epochs: 5 } },
}
