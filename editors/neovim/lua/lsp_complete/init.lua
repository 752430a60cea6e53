-- lsp-complete in Neovim 0.10 and newer: require('lsp_complete').setup{}

local accept = require('lsp_complete.accept')
local client = require('lsp_complete.client')
local commands = require('lsp_complete.commands')
local config = require('lsp_complete.config')
local ghost = require('lsp_complete.ghost')
local keys = require('lsp_complete.keys')
local status = require('lsp_complete.status')
local track = require('lsp_complete.track')

local M = {
  accept = accept.all,
  accept_word = accept.word,
  accept_line = accept.line,
  dismiss = ghost.dismiss,
  statusline = status.line,
  status = status.word,
}

--- Whether ghost text is shown, for mappings and menus of your own.
function M.visible()
  return ghost.rest() ~= nil
end

--- Ask for a suggestion now.
function M.trigger()
  ghost.ask(true)
end

local function on(group, events, callback, pattern)
  vim.api.nvim_create_autocmd(events, { group = group, callback = callback, pattern = pattern })
end

local function own_ghost(group)
  on(group, { 'TextChangedI', 'TextChangedP' }, ghost.changed)
  on(group, 'CursorMovedI', ghost.moved)
  on(group, 'InsertEnter', function()
    vim.schedule(ghost.changed) -- in the event itself the mode is still the old one
  end)
  on(group, 'User', ghost.ready, 'LspCompleteStatus')
  on(group, { 'InsertLeave', 'BufLeave', 'WinLeave' }, ghost.left)
end

local function builtin_ghost(group)
  on(group, 'LspAttach', function(event)
    local attached = vim.lsp.get_client_by_id(event.data.client_id)
    if attached and attached.name == client.name then
      vim.lsp.inline_completion.enable(true, { client_id = attached.id })
    end
  end)
end

local function attach_later(event)
  vim.schedule(function()
    if not vim.api.nvim_buf_is_valid(event.buf) then
      return
    end
    local again = event.event == 'FileType' and client.id and vim.lsp.buf_is_attached(event.buf, client.id)
    if again then
      client.reopen(event.buf)
    else
      client.attach(event.buf)
    end
  end)
end

--- Start, with the options of config.lua.
function M.setup(given)
  if vim.fn.has('nvim-0.10') == 0 then
    return client.tell('lsp-complete needs Neovim 0.10 or newer')
  end
  local options, problems = config.resolve(given)
  for _, problem in ipairs(problems) do
    client.tell('lsp-complete: ' .. problem)
  end
  if options.ghost == 'builtin' and not vim.lsp.inline_completion then
    client.tell('lsp-complete: this Neovim has no ghost text of its own; `ghost = "own"` is used')
    options.ghost = 'own'
  end
  client.options = options
  vim.api.nvim_set_hl(0, 'LspCompleteGhost', { link = 'Comment', default = true })
  local group = vim.api.nvim_create_augroup('lsp_complete', { clear = true })
  on(group, { 'FileType', 'BufReadPost', 'BufNewFile', 'BufFilePost' }, attach_later)
  on(group, { 'BufEnter', 'FocusGained' }, track.focus)
  on(group, 'CursorMoved', track.moved)
  on(group, 'ColorScheme', function()
    vim.api.nvim_set_hl(0, 'LspCompleteGhost', { link = 'Comment', default = true })
  end)
  if options.ghost == 'own' then
    own_ghost(group)
  elseif options.ghost == 'builtin' then
    builtin_ghost(group)
  end
  keys.map(options)
  commands.create()
  vim.schedule(client.attach_all)
end

return M
