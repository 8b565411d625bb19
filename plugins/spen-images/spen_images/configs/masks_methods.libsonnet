// Segmentation: a fully convolutional net by cross entropy, a value network alone, and such an energy that teaches the net: SEAL-dynamic
// and implicit training; and a conditional Glow, alone, and as the noise from which an energy learns.
//
// `descent`: steps of the value network's gradient-based inference, in the loss and in prediction.
local alen = import 'lib/methods/alen.libsonnet';
local baselines = import 'lib/methods/baselines.libsonnet';
local implicit = import 'lib/methods/implicit.libsonnet';
local label_sets = import 'lib/methods/label_sets.libsonnet';
local seal = import 'lib/methods/seal.libsonnet';

local net = { inference_net: { type: 'images.fcn' } };
local energy = { energy: { type: 'images.conv' } };

{
  cross_entropy: net + baselines.cross_entropy,
  dvn: net + energy + label_sets.dvn,
  // The loss is a number of nats per pixel.
  cglow: baselines.cross_entropy { inference_net: { type: 'images.cglow' }, trainer+: { per_variable: true } },
  // A finished run of cglow: init.inference_net=RUN.
  nce_cglow: energy + seal.nce {
    as:: ['nce'],
    inference_net: { type: 'images.beside_flow', net: { type: 'images.cglow' }, predictor: net.inference_net },
    energy_loss: { type: 'images.flow_nce' },
    init: { inference_net: 'runs/cglow' },
  },
} + { [name]: net + energy + seal[name] for name in ['regression', 'regression_s', 'nce', 'margin'] }
+ { [name]: net + energy + implicit[name] for name in std.objectFields(implicit) }
+ { [name]: net + energy + alen[name] for name in std.objectFields(alen) }
