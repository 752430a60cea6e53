-- :checkhealth lsp_complete

local client = require('lsp_complete.client')
local status = require('lsp_complete.status')

local M = {}

local function server(health)
  local program = client.options.cmd[1]
  if vim.fn.executable(program) == 0 then
    health.error(('the command %s is not there'):format(program), {
      'install the server; in a clone of lsp-complete: pipx install .',
      'or give its absolute path: require("lsp_complete").setup{ cmd = { "/path/to/lsp-complete" } }',
    })
    return false
  end
  local said = vim.fn.system({ program, '--version' })
  health.ok(('%s: %s'):format(vim.fn.exepath(program), vim.trim(said)))
  return true
end

local function connection(health)
  if not client.get() then
    health.warn('the server does not run: ' .. client.status.message, { 'open a file of a wanted filetype' })
    return
  end
  local word = status.word()
  if word == 'no model' then
    health.error(client.status.message, { 'lsp-complete models pull qwen2.5-coder-0.5b' })
  elseif word == 'error' then
    health.error(client.status.message, { 'lsp-complete doctor', ':LspComplete log' })
  else
    health.ok(('the server runs: %s (%s)'):format(word, client.status.message))
  end
end

local function keys(health)
  for name, key in vim.spairs(client.options.keys) do
    local mapped = key and vim.fn.maparg(key, 'i', false, true) or {}
    if key and not (mapped.desc or ''):find('^lsp%-complete') then
      health.warn(('%s (%s) is mapped by something else'):format(key, name), {
        'call setup{} after it, or map your key to require("lsp_complete").accept(), which gives false while nothing is shown',
      })
    elseif key then
      health.ok(('%s: %s'):format(key, name))
    end
  end
end

function M.check()
  local health = vim.health
  health.start('lsp-complete')
  if vim.fn.has('nvim-0.10') == 0 then
    return health.error('Neovim 0.10 or newer is needed')
  end
  health.ok(('Neovim %s, ghost text: %s'):format(tostring(vim.version()), client.options.ghost))
  if server(health) then
    connection(health)
  end
  keys(health)
end

return M
