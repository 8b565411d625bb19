// Grayscale images with noise: data sets and methods.
local choose = import 'lib/choose.libsonnet';
local methods = import 'images_methods.libsonnet';
local patches = import 'lib/patches.libsonnet';

local bsd(name) = 'data:images/bsd/' + name;
local photographs = { tuned: import 'tuned/bsd.libsonnet' };
local data_sets = {
  // The embedded images are few and small: less of everything.
  sample: photographs {
    task: { corpus: 'sample' },
    tuned+: { every+: { task+: { crop: 32, repeat: 4 }, prior:: { filters: 16, size: 5 }, player+:: { lr: 1e-2 }, trainer+: { epochs: 15, evaluation_batch_size: 8 } } },
  },
  bsd: photographs { task: { train: bsd('Train400'), test: bsd('BSD68') } },
  // Your own folders, named by task.train=… task.test=… and perhaps task.validation=…
  files: photographs { task: {} },
};

{
  // Of a folder of training images the last ones, by name, are the validation part, unless that has a folder of its own.
  task(data, validation, test, sigma)::
    local more = choose.given({ validation: validation, test: test });
    local set = choose.data(data_sets, data, 'folder');
    if more != {} && std.objectHas(data_sets, std.toString(data)) then
      error 'validation= and test= require a folder of training images, data=./FOLDER; found data=%s' % data
    else {
      task: { type: 'images.denoising', sigma: sigma }
            + set.task
            + (if choose.is_path(data) then { train: data } else {})
            + more,
    },

  method(data, name, sigma)::
    // The prior's weight begins as the variance of the noise; of what is no number the task says so.
    local weight = if std.isNumber(sigma) then { with_energy: { energy+: { weight: std.pow(sigma / 255, 2) } } } else {};
    patches.method(methods, name, [choose.data(data_sets, data, 'folder').tuned, weight]),
}
