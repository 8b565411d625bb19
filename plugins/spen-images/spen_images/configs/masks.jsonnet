// Segmentation with energies (Lee et al. 2022, Sec. 4.4; Shankar & Piratla 2022): a fully convolutional net, and energies that teach it.
//
//     spen-run masks                             # embedded images of shapes, a minute on a CPU
//     spen-run masks data=horses                 # Weizmann's horses, 32x32
//     spen-run masks data=./mine.npz method=nce  # your own, in train_images, train_masks, validation_… and test_…
//     spen-run masks data=./train.npz validation=./val.npz test=./test.npz
local masks = import 'masks.libsonnet';

function(
  data='sample',  // sample, horses, files, or a .npz file of your own, with all parts or only the training part
  validation=null,  // validation file
  test=null,  // test file
  method='implicit_cd',  // cross_entropy (the net alone), dvn (the energy alone); SEAL-dynamic: regression, regression_s, margin, nce; implicit training: implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd; gradient steps from a net: alen, ialen; cglow (a flow of masks); nce_cglow (an energy that learns from samples of a finished flow)
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, augmentation and sampling
)
  { seed: seed, precision: precision }
  + masks.task(data, validation, test)
  + masks.method(data, method)
