// Small helpers the libraries share.
{
  // The row of `table` called `name`, or an error that lists the known names and says `hint`.
  from(table, name, what, hint='')::
    if std.isString(name) && std.objectHas(table, name) then table[name]
    else error 'unknown %s %s; known: %s%s' % [what, std.manifestJsonEx(name, '', ''), std.join(', ', std.objectFields(table)), hint],

  // The row of a data set, or an error that says how to name a file.
  data(table, name):: $.from(table, name, 'data', '; or a file: ./%s' % std.toString(name)),

  // `fields` without those that are null: an argument left at null keeps what the tables say.
  given(fields):: { [key]: fields[key] for key in std.objectFields(fields) if fields[key] != null },

  // Those of the fields called `names` that `table` has.
  some(table, names):: { [key]: table[key] for key in names if std.objectHas(table, key) },

  // The method called `name` of a table of methods. `arguments` holds what the user gave: one that only other methods have
  // a use for, by the lists of `arguments_of`, is an error.
  method(table, arguments_of, name, arguments)::
    local make = $.from(table, name, 'method');
    local takes = std.get(arguments_of, name, []);
    local particular = std.set(std.flattenArrays(std.objectValues(arguments_of)));
    local given = std.objectFields($.given(arguments));
    local useless = [key for key in given if std.member(particular, key) && !std.member(takes, key)];
    local of_use = [key for key in std.objectFields(arguments) if !std.member(particular, key) || std.member(takes, key)];
    if useless != [] then error 'method %s does not take %s; it takes %s' % [name, std.join(', ', useless), std.join(', ', of_use)]
    else make,

  // Whether `name` is a user's own file rather than a data set known by name: those have neither dot nor slash.
  is_path(name):: std.isString(name) && std.length([c for c in std.stringChars(name) if c == '.' || c == '/']) > 0,
}
