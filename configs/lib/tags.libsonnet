// Tags of words, whatever the tags are: what taggers see of a word, and what they start from.
//
// A data set is a table: its `task`; `words`, what comes with it (the level of features to begin with, vectors, clusters, columns,
// the width of learned embeddings); `bilstm`, the sizes of one; and patches for `every` method and for those `with_energy`.
local choose = import 'choose.libsonnet';
local energies = import 'energies.libsonnet';
local baselines = import 'methods/baselines.libsonnet';
local chains = import 'methods/chains.libsonnet';
local e2e = import 'methods/e2e.libsonnet';
local implicit = import 'methods/implicit.libsonnet';
local infnet = import 'methods/infnet.libsonnet';
local own = import 'own.libsonnet';
local patches = import 'patches.libsonnet';
local rules = import 'methods/rules.libsonnet';
local seal = import 'methods/seal.libsonnet';
local segments = import 'methods/segments.libsonnet';
local teachers = import 'methods/teachers.libsonnet';

// A pretrained encoder is fine-tuned gently: at a twentieth of the rate of what is new.
local pretrained(encoder) = {
  local below = if std.isObject(encoder) && std.objectHas(encoder, 'reader') then '.reader' else '',
  local player(encoders) = { plateau: null, schedule: { type: 'linear', warmup: 0.1 } }
    + if encoders == [] then { lr: 1e-4 } else { lr: 2e-3, groups: { [name + below]: 0.05 for name in encoders } },
  every: { pretrain_epochs:: 1, trainer+: { batch_size: 16, epochs: 8, patience: null, net+: player(['features']) { clip: 1 } } },
  with_energy: { local config = self, trainer+: { energy+: player(config.encoders) } },
  unrolled: { init_epochs:: 5, trainer+: { clamped_epochs: 1 } },
};

// Levels of features, each with what those before it have.
local words = { affix_dim: 0, case_dim: 0, char_dim: 0 };
local plus = words { case_dim: 8 };
local plusplus = plus { char_dim: 16 };
local affixes = plusplus { affix_dim: 32 };
local levels = { words: words, paper: words, plus: plus, plusplus: plusplus, affixes: affixes, all: affixes };

// Vectors of our own choice are of lower-case words; whose letters a user's are in is tried out word by word.
local vectors(name) =
  if name == 'glove_twitter' then { file: 'data:vectors/glove.twitter.27B.25d.top12k.txt', fold: 'lower' } else { file: name, fold: 'fallback' };
local clusters(name) = { file: if name == 'twitter' then 'data:vectors/6mpaths' else name, prefixes: [2, 4, 6, 8, 10, 12, 14, 16], dim: 16 };

// Keys of what a feature network sees of a word: `has` comes with the data set, `given` is what the user wants instead.
local word(data, has, given) =
  local wants = has + given;
  local level = choose.from(levels, wants.features, 'features');
  local all = wants.features == 'all';
  local has_vectors = wants.vectors != 'none';
  local has_clusters = wants.clusters != 'none' && (all || std.objectHas(given, 'clusters'));
  if all && !has_clusters then
    error 'features=all requires Brown clusters, and data=%s has none of its own; give clusters=FILE, or use features=affixes' % std.toString(data)
  else
    level { word_dim: if !has_vectors || (all && has.by_heart) then has.dim else 0 }
    + (if has_vectors then { vectors: vectors(wants.vectors) { tune: level.case_dim > 0 && (!all || has.by_heart) } } else {})
    + (if has_clusters then { clusters: clusters(wants.clusters) } else {});

{
  // Data sets to begin with: one without vectors, a user's own files, the embedded corpora, and tweets.
  plain:: {
    task: {},
    words: { features: 'plusplus', vectors: 'none', clusters: 'none', columns: {}, by_heart: true, dim: 100 },
    bilstm: { hidden: 100, dropout: 0.3, word_dropout: 0.05 },
    every: {
      // An energy that knows nothing yet leads a net that starts from nothing astray: the net learns from cross entropy first.
      pretrain_epochs:: 3,
      tag_lm:: { hidden: 128 },
      trainer+: { epochs: 30, patience: 6, net+: { type: 'adam', plateau: { factor: 0.5, patience: 2 } } },
    },
    with_energy: energies.chain { trainer+: { energy+: { type: 'adam' } } },
    unrolled: { init_epochs:: 10 },
  },
  // Few sentences need larger steps, and a net that has learnt from them first: an energy that knows nothing is no help to it.
  own:: $.plain + own {
    every+: {
      pretrain_epochs:: 20,
      pretrain:: { pretrain_patience: 4, keep_pretrained: true },
      trainer+: { net+: { lr: 2e-3 } },
    },
  },
  sample:: $.plain {
    words+: { dim: 32 },
    bilstm+: { hidden: 48 },
    every+: { pretrain_epochs:: 1, tag_lm:: { hidden: 32 }, trainer+: { epochs: 25, patience: 8, net+: { lr: 5e-3 } } },
    with_energy+: { trainer+: { energy+: { lr: 2e-3 } } },
    unrolled: { init_epochs:: 5, trainer+: { clamped_epochs: 2, epochs: 15, patience: 5, energy+: { lr: 5e-3 } } },
  },
  tweets:: $.plain { words+: { features: 'all', vectors: 'glove_twitter', clusters: 'twitter' } },

  task(data_sets, data, validation, test, tags=null, split=null):: {
    // The key that is null is for the error about class_weight= as an argument, which then says task.class_weight=.
    task: { type: 'tagging', class_weight: null } + choose.files(data_sets, data, validation, test, split=split) + choose.given({ tags: tags }),
  },

  // `features`; the task's extra `columns`; and `token`, what sees a word alone, for language models over words: no characters,
  // whose CNN would be most of their cost.
  features(data_sets, data, encoder, features, vectors, clusters, columns=null)::
    local set = choose.data(data_sets, data);
    local given = choose.given({ features: features, vectors: vectors, clusters: clusters });
    local seen = word(data, set.words, given);
    local takes_columns = seen.case_dim > 0 && !choose.is_pretrained(encoder);
    local wanted = if columns == null then set.words.columns else columns;
    local embeds = encoder == 'bilstm' || (std.isObject(encoder) && std.member(['bilstm', 'encoder'], std.get(encoder, 'type')));
    if !embeds && given != {} then
      error 'encoder=%s reads words by itself and does not use %s; omit them' % [std.toString(encoder), std.join(', ', std.objectFields(given))]
    else if columns != null && !takes_columns then
      error 'columns= requires features=plus or above, and an encoder that reads columns, such as encoder=bilstm'
    else {
      task+: if takes_columns && wanted != {} then { columns: wanted } else {},
      features:
        if encoder == 'bilstm' then { type: 'bilstm', layers: 1 } + set.bilstm + seen
        else if embeds then seen + encoder
        else if std.isObject(encoder) then encoder
        else { type: 'transformer', model: encoder },
      token:: { type: 'encoder', encoder: 'pass_through', dropout: set.bilstm.dropout } + seen { affix_dim: 0, char_dim: 0 },
    },

  // Samples of tag sequences are dear, above all with parsing's hundreds of tags: NCE takes few.
  nce:: seal.nce { energy_loss+: { samples: 8 }, trainer+: { energy_weight: 0.3 } },

  method(data_sets, data, encoder, name, energy=null, methods=baselines + segments + { nce: $.nce } + infnet + chains + e2e + implicit + teachers + rules.of_file(baselines.crf))::
    local tables = [choose.data(data_sets, data), segments.tables] + (if choose.is_pretrained(encoder) then [pretrained(encoder)] else []);
    patches.method(methods, name, tables, energies, energy),
}
