// The embedded images of shapes.
(import 'horses.libsonnet') {
  every+: { task+: { shift: 2 }, trainer+: { epochs: 20 } },
}
