// Multi-label classification: data sets, and the hyper-parameters each starts from.
local choose = import 'choose.libsonnet';
local methods = import 'methods.libsonnet';
local table = import 'multilabel_table.libsonnet';

local folder(name) = 'data:multilabel/' + name;
local with_split(name) = {
  file: folder('%s/%s.arff' % [name, name]),
  split: folder('splits/%s.json' % name),
};

{
  data:: {
    sample: { corpus: 'sample' },
    bibtex: with_split('bibtex'),
    delicious: with_split('delicious'),
    // The first attribute is the number of the row.
    genbase: with_split('genbase') { drop: ['protein'] },
    cal500: with_split('cal500'),
    // Hierarchies of 499 classes; with their root, which every gene has, the 500 labels of the papers.
    spo_fun: {
      root: true,
      train: folder('spo_FUN/spo_FUN.train.arff'),
      validation: folder('spo_FUN/spo_FUN.valid.arff'),
      test: folder('spo_FUN/spo_FUN.test.arff'),
    },
    // The original training file is lost; this one was joined from its component sets.
    expr_fun: {
      root: true,
      train: folder('expr_FUN/expr_FUN.train.RECONSTRUCTED.arff'),
      validation: folder('expr_FUN/expr_FUN.valid.arff'),
      test: folder('expr_FUN/expr_FUN.test.arff'),
    },
    // Your own files, named by task.train=… task.validation=… task.test=…
    files: {},
  },

  // The task of a data set's name, or of a file of the user's own.
  task(data, split, threshold)::
    { type: 'multilabel', threshold: threshold }
    + (if choose.is_path(data) then { file: data } else choose.data($.data, data))
    + choose.given({ split: split }),

  // Hyper-parameters of a data set and method under a schedule.
  defaults(data, method, schedule)::
    local rows = choose.data(table, if choose.is_path(data) then 'files' else data);
    local row = choose.from(rows, method, 'method');
    {
      optimizer: 'adamw',
      weight_decay: 1e-5,
      cross_entropy_weight: 1,
      per_variable: false,
      net_clip: 10,
      plateau: { factor: 0.5, patience: 5 },
      patience: 20,
      batch_size: 32,
      net_epochs: if data == 'sample' then 20 else 60,
      energy_epochs: if data == 'sample' then 20 else 60,
      epochs: if data == 'sample' then 40 else if schedule == 'released' then 300 else 100,
    }
    + row
    + methods.schedule(schedule, method, row.steps[0], row.steps[1])
    + (if schedule == 'light' && std.objectHas(row, 'light') then row.light else {}),
}
