// Hyper-parameters by data set and method: what SEAL's authors released with their code (found by search on the
// validation part). `steps` is energy : net updates a batch; methods.libsonnet says how it is read.
//
// `light` holds what differs under the light schedule: rates released for 60 energy updates a batch are too low for 3,
// bibtex's cross entropy overfits at the released rate and dropout, genbase's 397 rows make so few batches that the
// net wants its ten rounds, delicious's nets underfit at the released dropout and rates, and DVN with one adversarial step
// learns at other rates: on bibtex by plain steps of inference
// alone, since those of Adam are as long for the many labels that are off as for the few that are on.
local net(hidden, dropout, global_hidden) = { hidden: hidden, dropout: dropout, global_hidden: global_hidden };
local ce(net_lr) = { net_lr: net_lr, steps: [1, 1] };
local nce(energy_weight, samples, energy_lr, net_lr, steps) =
  { energy_weight: energy_weight, samples: samples, energy_lr: energy_lr, net_lr: net_lr, steps: steps };
local regression(energy_weight, energy_lr, net_lr, weight_decay, steps) =
  { energy_weight: energy_weight, energy_lr: energy_lr, net_lr: net_lr, weight_decay: weight_decay, steps: steps };
local margin(cross_entropy_weight, perceptron_weight, energy_lr, net_lr, steps) =
  { energy_weight: 1, cross_entropy_weight: cross_entropy_weight, perceptron_weight: perceptron_weight, energy_lr: energy_lr, net_lr: net_lr, steps: steps };
// Energies alone: dvn's and nce's and spen's; `net_lr` is that of the net they build on.
local dvn(energy_lr, weight_decay, gbi_lr) = { energy_lr: energy_lr, weight_decay: weight_decay, gbi_lr: gbi_lr, gbi_steps: 30 };
local nce_alone(samples, energy_lr) = { samples: samples, energy_lr: energy_lr, gbi_lr: 0.1, gbi_steps: 20 };
local spen(energy_lr, gbi_lr) = { energy_lr: energy_lr, gbi_lr: gbi_lr, gbi_steps: 20 };
local static(energy_weight, net_lr) = { energy_weight: energy_weight, net_lr: net_lr };
// `statics` are those of margin, regression and nce; each stands on the energy alone of its loss.
local rows(cross_entropy, nce, ranking, regression, regression_s, margin, spen, dvn, nce_alone, statics) = {
  local alone(row) = row { steps: [1, 1], net_lr: cross_entropy.net_lr },
  cross_entropy: cross_entropy,
  nce: nce,
  ranking: ranking,
  ranking_direct: cross_entropy { energy_weight: 1, samples: ranking.samples },
  regression: regression,
  regression_s: regression_s,
  margin: margin,
  margin_compound: margin,
  spen: alone(spen),
  dvn: alone(dvn),
  nce_alone: alone(nce_alone),
  static_margin: alone(spen) + statics[0],
  static_regression: alone(dvn) + statics[1],
  static_nce: alone(nce_alone) + statics[2],
};

{
  bibtex: rows(
    net([400, 400], 0.4, 200) + ce(0.005) + { light: { net_lr: 0.001, dropout: 0.5 } },
    net([400, 400], 0.5, 200) + nce(5.51, 20, 4.51e-05, 0.00117, [12, 5]) + { light: { energy_lr: 2e-4 } },
    net([400, 400], 0.5, 200) + nce(9.21, 40, 4.48e-05, 0.00144, [9, 10]) + { light: { energy_lr: 2e-4 } },
    net([400, 400], 0.5, 200) + regression(3.24, 0.00563, 0.00309, 3.37e-06, [9, 1]),
    net([200, 200], 0.5, 200) + nce(9.94, 10, 0.0066, 0.00105, [5, 5]) + { std: 1.12 },
    net([400, 400], 0.5, 200) + margin(3.89, 0.00152, 6.88e-05, 0.00159, [1, 6]),
    net([400, 400], 0.5, 200) + spen(1.7e-05, 0.00677),
    net([400, 400], 0.5, 200) + dvn(0.000219, 5.79e-05, 0.348) + { light: { energy_lr: 0.001, gbi_optimizer: 'gradient', gbi_lr: 0.1, epochs: 150, patience: 40, energy_plateau: { factor: 0.5, patience: 8 } } },
    net([400, 400], 0.5, 200) + nce_alone(80, 0.000919),
    [static(0.00107, 0.00353), static(0.0436, 0.00265), static(0.00678, 0.00152)],
  ),
  delicious: rows(
    net([400, 400], 0.1, 200) + ce(0.00292),
    net([400, 400], 0.5, 200) + nce(0.91, 20, 0.00373, 0.000848, [6, 5]) + { light: { net_lr: 0.001, dropout: 0.2 } },
    net([400, 400], 0.5, 200) + nce(1.01, 80, 0.000859, 9.95e-05, [3, 10]) + { light: { net_lr: 0.001, dropout: 0.2, samples: 20 } },
    net([400, 400], 0.5, 200) + regression(9.27, 0.000114, 0.00176, 1e-05, [3, 5]),
    net([400, 400], 0.5, 200) + nce(9.85, 5, 0.000129, 0.00331, [6, 1]) + { std: 0.603 },
    net([400, 400], 0.2, 200) + margin(5.6, 0.00118, 0.0027, 0.00497, [1, 1]),
    net([400, 400], 0.1, 200) + spen(0.00295, 0.00678),
    net([500, 500], 0, 200) + dvn(0.00115, 0.00391, 0.135),
    net([400, 400], 0.1, 200) + nce_alone(80, 0.00205),
    [static(0.00137, 0.00556), static(2.51, 0.00112), static(0.00292, 0.00063)],
  ),
  genbase: rows(
    net([400], 0, 200) + ce(0.00198),
    net([400], 0, 200) + nce(0.00203, 100, 0.000547, 0.00125, [9, 10]) + { light: { samples: 20, rounds: 10, energy_steps: 1 } },
    net([400], 0, 200) + nce(0.00193, 100, 1.69e-05, 0.00166, [3, 10]),
    net([400], 0, 200) + regression(0.00243, 0.000366, 0.00136, 1e-05, [6, 10]),
    net([400], 0, 200) + nce(0.0276, 20, 0.000464, 0.000997, [3, 10]) + { std: 4 },
    net([400], 0, 400) + margin(7.53, 0.0101, 0.00027, 0.000742, [1, 10]),
    net([400], 0, 200) + spen(0.000423, 0.0106),
    net([400], 0, 200) + dvn(0.000846, 0.0236, 0.109),
    net([400], 0, 200) + nce_alone(80, 0.000322),
    [static(0.0336, 0.00226), static(0.454, 0.00101), static(0.00408, 0.000795)],
  ),
  cal500:
    local dropout = 0.2;
    local hidden = [500, 500, 500, 500, 500];
    rows(
      net(hidden, dropout, 200) + ce(0.00986),
      net(hidden, dropout, 400) + nce(0.478, 20, 0.00779, 0.00491, [9, 10]),
      net(hidden, dropout, 400) + nce(8.72, 40, 0.00244, 4.58e-05, [6, 5]),
      net(hidden, dropout, 400) + regression(1.38, 0.00599, 0.00691, 1e-05, [3, 10]),
      net(hidden, dropout, 400) + nce(8.89, 30, 0.00866, 0.00623, [9, 5]) + { std: 2.85 },
      net(hidden, dropout, 400) + margin(3.99, 0.0049, 0.00051, 0.00827, [1, 10]),
      net(hidden, dropout, 200) + spen(1.08e-05, 0.0169),
      net(hidden, 0.3, 200) + dvn(6.52e-05, 8.23e-06, 0.107) + { light: { energy_lr: 0.0005, gbi_lr: 0.05, epochs: 150, patience: 40 } },
      net(hidden, dropout, 400) + nce_alone(100, 0.00354),
      [static(0.0415, 0.00714), static(0.117, 0.0102), static(0.108, 0.0056)],
    ),
  spo_fun:
    local dropout = 0.1;
    local hidden = [300, 300, 300, 300];
    rows(
      net(hidden, dropout, 200) + ce(0.01),
      net(hidden, dropout, 300) + nce(1, 40, 0.00821, 0.000544, [3, 10]),
      net(hidden, dropout, 300) + nce(1.19, 40, 0.00612, 0.00109, [3, 5]),
      net(hidden, dropout, 300) + regression(9.05, 0.00139, 0.000155, 1e-05, [12, 5]),
      net([500, 500, 500, 500, 500], 0.2, 400) + nce(0.0194, 10, 0.000212, 0.000935, [9, 10]) + { std: 0.091 },
      net(hidden, 0.2, 300) + margin(0.63, 0.00521, 7.93e-05, 0.00224, [1, 10]),
      net(hidden, dropout, 200) + spen(1.04e-05, 0.00815),
      net(hidden, 0.3, 200) + dvn(0.000203, 0.000754, 0.346),
      net(hidden, dropout, 300) + nce_alone(100, 0.000261),
      [static(0.00508, 0.01), static(0.111, 0.00165), static(0.0023, 0.00569)],
    ),
  expr_fun:
    local dropout = 0.2;
    local hidden = [200, 200, 200, 200];
    rows(
      net(hidden, dropout, 200) + ce(0.005),
      net(hidden, dropout, 400) + nce(4.14, 80, 5.25e-05, 0.000216, [6, 10]) + { light: { samples: 20, rounds: 3, energy_steps: 1, energy_lr: 0.0005, net_lr: 0.0005 } },
      net(hidden, dropout, 400) + nce(1.05, 40, 0.0102, 0.000522, [6, 5]),
      net(hidden, dropout, 400) + regression(0.138, 0.000327, 0.00059, 1e-05, [9, 5]),
      net(hidden, dropout, 400) + nce(0.0212, 5, 3.16e-05, 0.000878, [9, 5]) + { std: 0.217 },
      net(hidden, dropout, 400) + margin(4.04, 0.00112, 0.000103, 0.00122, [1, 5]),
      net(hidden, dropout, 200) + spen(1.02e-05, 0.00718),
      net(hidden, dropout, 400) + dvn(0.000284, 0.000102, 0.573),
      net(hidden, dropout, 400) + nce_alone(100, 0.000237),
      [static(0.00113, 0.00209), static(0.0265, 0.00166), static(0.00137, 0.00131)],
    ),
  // Not released: starting points of our own, for the embedded corpus and for a user's files.
  sample: $.files,
  files: rows(
    net([200, 200], 0.2, 100) + ce(0.002),
    net([200, 200], 0.2, 100) + nce(1, 20, 0.0005, 0.001, [1, 1]),
    net([200, 200], 0.2, 100) + nce(1, 40, 0.0005, 0.001, [1, 1]),
    net([200, 200], 0.2, 100) + regression(1, 0.0005, 0.001, 1e-05, [1, 1]),
    net([200, 200], 0.2, 100) + nce(1, 10, 0.0005, 0.001, [1, 1]) + { std: 0.5 },
    net([200, 200], 0.2, 100) + margin(4, 0.002, 0.0005, 0.001, [1, 1]),
    net([200, 200], 0.2, 100) + spen(0.0005, 0.01),
    net([200, 200], 0.2, 100) + dvn(0.0005, 1e-05, 0.1),
    net([200, 200], 0.2, 100) + nce_alone(20, 0.0005),
    [static(0.01, 0.002), static(1, 0.001), static(0.1, 0.001)],
  ),
}
