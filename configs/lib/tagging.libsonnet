// Tags of words: data sets, features, and the hyper-parameters they start from.
local choose = import 'choose.libsonnet';

local tweets(part) = 'data:pos/twitter_pos/' + part;
local ewt(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local wnut(name) = 'data:ner/wnut17/' + name;
local btc(part) = 'data:ner/btc/btc.' + part;
local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;

local splits = {
  standard: { train: tweets('oct27.splits/oct27.train'), validation: tweets('oct27.splits/oct27.dev'), test: tweets('daily547.conll') },
  reference: { train: tweets('oct27.splits/oct27.traindev'), validation: tweets('oct27.splits/oct27.test'), test: tweets('daily547.conll') },
};

local names = { scheme: 'bio', encoding: 'bioes' };
local marks = { scheme: 'bio', format: 'predicates' };
local tasks = {
  pos: {
    sample: { corpus: 'pos' },
    twitter_pos: splits.standard,
    ewt: { train: ewt('train'), validation: ewt('dev'), test: ewt('test') },
    // Your own files, named by task.train=… task.validation=… task.test=…
    files: {},
  },
  ner: {
    sample: names { corpus: 'ner' },
    wnut17: names { train: wnut('wnut17train.conll'), validation: wnut('emerging.dev.conll'), test: wnut('emerging.test.annotated') },
    btc: names { train: btc('train'), validation: btc('dev'), test: btc('test') },
    files: names,
  },
  predicates: {
    sample: { scheme: 'bio', corpus: 'predicates' },
    ewt: marks { train: propbank('train'), validation: propbank('dev'), test: propbank('test'), min_count: 2 },
    files: marks,
  },
};

// What comes with a data set: columns in its files, vectors and clusters that fit its words, the features to begin with.
local twitter = { vectors: 'glove_twitter', clusters: 'twitter', features: 'all' };
// Names in tweets are learned by heart where each word has parameters of its own.
local names_in_tweets = twitter { by_heart: false };
local plain = { vectors: 'none', clusters: 'none', features: 'plusplus' };
local resources = {
  pos: { sample: plain, twitter_pos: twitter, ewt: plain, files: plain },
  ner: { sample: plain { columns: { pos: 1, chunk: 2 } }, wnut17: names_in_tweets, btc: names_in_tweets, files: plain },
  predicates: { sample: plain, ewt: plain, files: plain },
};
local vectors_files = { glove_twitter: 'data:vectors/glove.twitter.27B.25d.top12k.txt' };
local clusters_files = { twitter: 'data:vectors/6mpaths' };

// Levels of features, each with what it adds to those before it.
local levels = { words: 0, paper: 0, plus: 1, plusplus: 2, all: 3 };
local level_of(features) = choose.from(levels, features, 'features');

local known(data) = if choose.is_path(data) then 'files' else data;
local is_pretrained(encoder) = if std.isObject(encoder) then std.get(encoder, 'type') == 'transformer' else encoder != 'bilstm';

// Sizes and rates by data set.
local bilstm = {
  hidden: 100,
  dropout: 0.3,
  word_dropout: 0.05,
  net_optimizer: 'adam',
  net_lr: 1e-3,
  energy_lr: 1e-3,
  weight_decay: 1e-5,
  batch_size: 32,
  epochs: 30,
  patience: 6,
  net_clip: 10,
  plateau: { factor: 0.5, patience: 2 },
  // An energy that knows nothing yet leads a net that starts from nothing astray: the net learns from cross entropy first.
  pretrain_epochs: 3,
  tag_lm_hidden: 128,
  word_dim: 100,
};
local ner = bilstm { hidden: 128, dropout: 0.5, word_dropout: 0.1, net_lr: 5e-4, energy_lr: 3e-4, epochs: 20 };
local marked = bilstm { dropout: 0.4, word_dropout: 0.1, net_lr: 2e-3, epochs: 12, patience: 4, plateau: { factor: 0.5, patience: 0 } };
local small = bilstm { hidden: 48, net_lr: 5e-3, energy_lr: 2e-3, epochs: 25, patience: 8, pretrain_epochs: 1, tag_lm_hidden: 32, word_dim: 32 };
local sizes = {
  pos: {
    sample: small,
    twitter_pos: bilstm { dropout: 0.5, word_dropout: 0.2, batch_size: 16, epochs: 60, patience: 15, pretrain_epochs: 5, plateau: { factor: 0.5, patience: 5 } },
    ewt: bilstm,
    files: bilstm,
  },
  ner: { sample: small, wnut17: ner, btc: ner, files: ner },
  predicates: { sample: small { epochs: 6 }, ewt: marked, files: marked },
};
// A pretrained encoder is fine-tuned gently.
local pretrained = { net_lr: 3e-5, energy_lr: 3e-5, batch_size: 16, epochs: 15, patience: 4, net_clip: 1, pretrain_epochs: 1 };
// Of every method that has an energy.
local game = { energy: 'chain', tag_lm_weight: 0.1, gamma: 1, cost_net: 'stacked', truncate: false, cross_entropy_weight: 1 };

// The task of a data set's name, or of a training file of the user's own.
local task(kind, data, validation, test) =
  local rest = choose.given({ validation: validation, test: test });
  if choose.is_path(data) then
    if validation == null then
      error 'data=%s is the training file; name the others too: data=%s validation=FILE test=FILE' % [data, data]
    else { type: 'tagging', train: data } + tasks[kind].files + rest
  else if rest != {} then
    error 'validation= and test= go with a training file, data=FILE; data=%s names no file' % std.toString(data)
  else { type: 'tagging' } + choose.data(tasks[kind], data);

{
  data(kind):: std.objectFields(tasks[kind]),

  pos(data, split, validation, test, tags, columns)::
    local rest =
      if split == null then {}
      else if data == 'twitter_pos' then choose.from(splits, split, 'split')
      else error 'split= is one of twitter_pos; data=%s has its own' % std.toString(data);
    task('pos', data, validation, test) + rest + choose.given({ tags: tags }) + columns,

  ner(data, validation, test, tags, columns_from, columns)::
    local part(name) = '%s/%s.conll' % [columns_from, name];
    local rest = if columns_from == null then {} else { train: part('train'), validation: part('dev'), test: part('test') };
    if columns_from != null && (choose.is_path(data) || data == 'sample') then
      error 'columns_from= goes with a data set known by name; name your own files and their columns: data=FILE validation=FILE test=FILE columns={"pos": 1}'
    else task('ner', data, validation, test) + rest + choose.given({ tags: tags }) + columns,

  predicates(data, validation, test):: task('predicates', data, validation, test),

  // The task's extra columns: those of the user, of the folder they come from, or of the data set; none for words alone.
  columns(kind, data, given, encoder, features, from=null)::
    local has = std.get(choose.data(resources[kind], known(data)), 'columns', {});
    local wanted = if given != null then given else if from != null then { pos: 1 } else has;
    local level = level_of(if features == null then resources[kind][known(data)].features else features);
    if level > 0 && !is_pretrained(encoder) then (if wanted == {} then {} else { columns: wanted })
    else if given != null || from != null then error 'columns go with features=plus and above, of an encoder that takes them, such as encoder=bilstm'
    else {},

  // Keys of what a feature network sees of a word. `given` holds the user's arguments features, vectors and clusters, each
  // null for what the data set has.
  words(kind, data, given):: {
    local has = choose.data(resources[kind], known(data)),
    local of = has + choose.given(given),
    local level = level_of(of.features),
    local by_heart = level < 3 || std.get(has, 'by_heart', true),
    local file(table, name) = if std.objectHas(table, name) then table[name] else name,
    // Vectors of our own choice are of lower-case words; whose letters a user's are in is tried out word by word.
    local vectors = if of.vectors == 'none' then null else { file: file(vectors_files, of.vectors), fold: if of.vectors == 'glove_twitter' then 'lower' else 'fallback', tune: level > 0 && by_heart },
    local clusters = if of.clusters == 'none' || (level < 3 && given.clusters == null) then null else { file: file(clusters_files, of.clusters) },
    given: std.objectFields(choose.given(given)),
    make(word_dim)::
      if level == 3 && clusters == null then
        error 'features=all is plusplus and Brown clusters, and data=%s has none of its own: name clusters=FILE, or take features=plusplus' % std.toString(data)
      else
        { affix_dim: if level == 3 then 32 else 0, char_dim: 0, case_dim: 0, word_dim: if vectors == null || (level == 3 && by_heart) then word_dim else 0 }
        + (if vectors == null then {} else { vectors: vectors })
        + (if level >= 1 then { case_dim: 8, column_dim: 16 } else {})
        + (if level >= 2 then { char_dim: 16, char_filters: 32, char_widths: [3] } else {})
        + (if clusters == null then {} else { clusters: clusters { prefixes: [2, 4, 6, 8, 10, 12, 14, 16], dim: 16 } }),
  },

  // `features`: what nets are built on. `token`: what sees a word alone, for language models over words: no characters,
  // whose CNN would be most of their cost.
  network(encoder, h, arguments, words)::
    local width = choose.given({ hidden: arguments.hidden, dropout: arguments.dropout });
    local seen = words.make(h.word_dim);
    local embeds = encoder == 'bilstm' || (std.isObject(encoder) && std.member(['bilstm', 'encoder'], std.get(encoder, 'type')));
    {
      assert embeds || words.given == [] : 'encoder=%s has no use for %s: it reads words by itself' % [std.toString(encoder), std.join(', ', words.given)],
      features:
        if encoder == 'bilstm' then { type: 'bilstm', hidden: h.hidden, layers: 1, dropout: h.dropout, word_dropout: h.word_dropout } + seen
        else if embeds then seen + encoder + width
        else if std.isObject(encoder) then encoder + width
        else { type: 'transformer', model: encoder } + width,
      token: { type: 'encoder', encoder: 'pass_through', dropout: h.dropout } + std.mergePatch(seen, { affix_dim: null, char_dim: 0, char_filters: null, char_widths: null }),
    },

  // Hyper-parameters of a data set and an encoder, and what the user gave.
  defaults(kind, data, encoder, arguments)::
    local h = game + choose.data(sizes[kind], known(data)) + (if is_pretrained(encoder) then pretrained else {}) + choose.given(arguments);
    h + (if h.cross_entropy_weight == 0 && arguments.pretrain_epochs == null then { pretrain_epochs: 0 } else {}),
}
