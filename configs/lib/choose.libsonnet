// What a name stands for, and errors that list the known names.
{
  // The entry of `table` called `name`; the error for an unknown name ends in `hint`.
  from(table, name, what, hint='')::
    if std.isString(name) && std.objectHas(table, name) then table[name]
    else error 'unknown %s %s; known: %s%s' % [what, std.manifestJsonEx(name, '', ''), std.join(', ', std.objectFields(table)), hint],

  // Whether `data` is a user's own file rather than the name of a data set: names have neither dot nor slash.
  is_path(data):: std.isString(data) && std.length([c for c in std.stringChars(data) if c == '.' || c == '/']) > 0,

  // The entry of a data set; that of `files` for a user's own file, or folder.
  data(table, data, own='file'):: $.from(table, if $.is_path(data) then 'files' else data, 'data', '; or a %s: ./%s' % [own, std.toString(data)]),

  // Keys of a task that name files: those of a data set; or a user's own training file and the `others` that go with it; or one file,
  // which is divided as `split` says, or by the task, and the `others`.
  files(table, data, validation, test, others={}, split=null)::
    local parts = $.given({ validation: validation, test: test });
    local more = parts + $.given(others);
    local names = ['validation=', 'test='] + [key + '=' for key in std.objectFields(others)];
    if !$.is_path(data) && (more != {} || split != null) then
      error '%s and %s require a training file, data=FILE; found data=%s' % [std.join(', ', names[:std.length(names) - 1]), names[std.length(names) - 1], data]
    else if $.is_path(data) && split != null && parts != {} then
      error 'split=%s divides data=%s into all parts; omit split=, or %s' % [split, data, std.join(' and ', [key + '=' for key in std.objectFields(parts)])]
    else
      $.data(table, data).task
      + (if !$.is_path(data) then {} else if parts == {} then { file: data } + $.given({ split: split }) else { train: data })
      + more,

  // How a label set comes from probabilities; on a user's own data as the validation part says, unless a threshold is given. `start`: the
  // threshold where neither is.
  decoding(data, threshold, decode, start)::
    local open = threshold == null && ($.is_path(data) || data == 'files');
    local by = if decode != null then decode else if open then 'validation' else 'threshold';
    if by == 'expected_f1' && std.isNumber(threshold) then
      error 'threshold=%s requires decode=threshold or decode=validation; decode=expected_f1 has no threshold' % threshold
    else { threshold: if threshold != null then threshold else if open then 'validation' else start }
    + (if by == 'threshold' then {} else { decode: by }),

  // The task's files of text in an encoding; null: in UTF-8.
  encoded(encoding):: { task+: $.given({ file_encoding: encoding }) },

  // `fields` without those that are null.
  given(fields):: { [key]: fields[key] for key in std.objectFields(fields) if fields[key] != null },

  // Whether a feature network comes with weights of its own, which are fine-tuned gently.
  is_pretrained(encoder)::
    if !std.isObject(encoder) then encoder != 'bilstm'
    else if std.objectHas(encoder, 'reader') then $.is_pretrained(encoder.reader)
    else std.get(encoder, 'type') == 'transformer',
}
