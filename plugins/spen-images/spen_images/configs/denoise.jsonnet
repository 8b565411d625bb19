// Image denoising with end-to-end SPENs (Belanger, Yang & McCallum 2017): deep priors and fields of experts, unrolled or by SSVM.
//
//     spen-run denoise           # embedded images, a minute on a CPU
//     spen-run denoise data=bsd  # Berkeley's images, BSD68 to test on
//     spen-run denoise data=bsd method=foe20_plus task.test=data:images/bsd/Set12
//     spen-run denoise data=./photos test=./others sigma=15
local images = import 'images.libsonnet';

function(
  data='sample',  // sample, bsd, files, or a folder of training images of your own: grayscale PNG or JPEG
  validation=null,  // folder of validation images; null: the last 20 training images
  test=null,  // folder of test images
  method='dp3',  // dp3, dp20 (deep prior, 3 or 20 steps), rp3 (residual prior), foe3, foe20_plus, foe20 (field of experts), icnn (convex deep prior), foe_ssvm, dp_ssvm; convnet (no energy)
  sigma=25,  // standard deviation of the noise, in grey levels (of 255)
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, crops and noise
)
  { seed: seed, precision: precision }
  + images.task(data, validation, test, sigma)
  + images.method(data, method, sigma)
