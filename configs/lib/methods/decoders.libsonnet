// Label sets written as sequences, and labels read as words beside the text (spen-decoders). `reads` says what of a text the features are of.
local baselines = import 'baselines.libsonnet';
local seal = import 'seal.libsonnet';

local written(settings) = baselines.cross_entropy { reads:: 'words', inference_net: { type: 'decoders.sequence' } + settings };
local read(settings) = baselines.cross_entropy { reads:: 'labels', inference_net: settings };
{
  seq2seq: written({}),
  sgm: written({ global_temperature: 0.1 }),
  ocd: written({ order: 'none' }) { trainer+: { type: 'decoders.ocd' } },

  // Of texts alone.
  of_texts:: {
    // The net of `seq2seq` is the noise of SEAL-NCE; the energy reads one vector of the text.
    nce_seq2seq: seal.nce { as:: ['nce'], reads:: 'words', inference_net: { type: 'decoders.sequence' } },
    seqtag: read({ type: 'decoders.seqtag' }),
    seqtag_crf: read({ type: 'decoders.seqtag', chain: true }),
    laco: read({ type: 'decoders.laco' }) { trainer+: { type: 'decoders.laco' } },
  },
}
