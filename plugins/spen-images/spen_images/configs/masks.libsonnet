// Masks of objects in images: data sets and methods.
local choose = import 'lib/choose.libsonnet';
local masks = import 'masks_methods.libsonnet';
local patches = import 'lib/patches.libsonnet';

local data_sets = {
  // The embedded images are few and small.
  sample: { task: { corpus: 'sample' }, tuned: import 'tuned/shapes.libsonnet' },
  horses: { task: { file: 'data:images/weizmann_horses/weizmann32.npz' }, tuned: import 'tuned/horses.libsonnet' },
  // Your own file with all parts, task.file=…, or one of each: task.train=… task.validation=… task.test=…
  files: { task: {}, tuned: import 'tuned/horses.libsonnet' },
};

{
  // A file has all parts; with validation and test files it is the training part.
  task(data, validation, test)::
    local more = choose.given({ validation: validation, test: test });
    if more != {} && !choose.is_path(data) then
      error 'validation= and test= require a training file, data=FILE.npz; data=%s names no file' % std.toString(data)
    else {
      task: { type: 'images.segmentation' }
            + choose.data(data_sets, data).task
            + (if !choose.is_path(data) then {} else if more == {} then { file: data } else { train: data })
            + more,
    },

  method(data, name):: patches.method(masks, name, [choose.data(data_sets, data).tuned]),
}
