-- Options: defaults, and a check that names what is wrong.

local M = {}

M.defaults = {
  cmd = { 'lsp-complete' }, -- the server's command; an absolute path if it is not on the PATH
  ghost = 'own', -- 'own': drawn by this module; 'builtin': vim.lsp.inline_completion (0.12 and newer); 'off'
  menu = false, -- offer suggestions in completion menus too (nvim-cmp, blink.cmp, omnifunc)
  auto = true, -- suggest unasked; off: only by the key `trigger`
  filetypes = { ['*'] = true }, -- where: filetype = true or false, '*' for all others
  settings = {}, -- the server's settings that an editor may set, for example { suggest = { level = 'quiet' } }
  keys = { -- in insert mode; false leaves a key alone. A key does what it did before while nothing is shown.
    accept = '<Tab>',
    accept_word = '<M-Right>',
    accept_line = '<M-Down>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
    trigger = '<M-Bslash>',
  },
  root_markers = { '.git', 'lsp-complete.toml', '.lsp-complete.toml' },
  on_attach = nil, -- function(client, buffer)
}

local choices = { ghost = { own = true, builtin = true, off = true } }

--- The value differs in kind from the default, or is none of the choices: a sentence, else nil.
local function wrong(name, value, default)
  if choices[name] and not choices[name][value] then
    return ("%s must be one of %s"):format(name, table.concat(vim.tbl_keys(choices[name]), ', '))
  end
  if default ~= nil and type(value) ~= type(default) then
    return ('%s must be a %s'):format(name, type(default))
  end
end

--- Options over the defaults. Unknown names and wrong kinds are told and left out: a typo must not break the editor.
function M.resolve(given)
  local options, problems = vim.deepcopy(M.defaults), {}
  for name, value in pairs(given or {}) do
    local default = M.defaults[name]
    local problem = wrong(name, value, default)
    if default == nil and name ~= 'on_attach' then
      problem = ('there is no option %s'):format(name)
    end
    if problem then
      table.insert(problems, problem)
    elseif name == 'keys' or name == 'filetypes' then
      options[name] = vim.tbl_extend('force', default, value)
    else
      options[name] = value
    end
  end
  for name in pairs(options.keys) do
    if M.defaults.keys[name] == nil then
      table.insert(problems, ('there is no key %s'):format(name))
    end
  end
  return options, problems
end

return M
