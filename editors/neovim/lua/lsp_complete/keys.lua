-- Keys in insert mode. Each does its own thing while ghost text is shown, else what it did before.
--
-- Rules: a completion menu with a chosen entry has the key first (the built-in menu, nvim-cmp, blink.cmp): the user is looking at it.

local accept = require('lsp_complete.accept')
local client = require('lsp_complete.client')
local ghost = require('lsp_complete.ghost')

local M = {}

local function builtin_menu()
  return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ 'selected' }).selected >= 0
end

local function cmp_menu()
  local cmp = package.loaded['cmp']
  return cmp and cmp.visible and cmp.visible() and cmp.get_active_entry and cmp.get_active_entry() ~= nil
end

local function blink_menu()
  local blink = package.loaded['blink.cmp']
  if not (blink and blink.is_menu_visible and blink.is_menu_visible()) then
    return false
  end
  local list = package.loaded['blink.cmp.completion.list']
  return not list or list.selected_item_idx ~= nil
end

--- Whether a completion menu has an entry chosen.
function M.menu_has_choice()
  return (builtin_menu() or cmp_menu() or blink_menu()) and true or false
end

--- Before what is typed already: a key must not overtake, nor be overtaken.
local function feed(keys, mode)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, true, true), mode .. 'i', false)
end

--- Do what the key did before.
local function fall_back(key, before)
  if not before or vim.tbl_isempty(before) then
    return feed(key, 'n')
  end
  if before.callback then
    local out = before.callback()
    if before.expr == 1 and type(out) == 'string' and out ~= '' then
      vim.api.nvim_feedkeys(before.replace_keycodes == 1 and vim.api.nvim_replace_termcodes(out, true, true, true) or out, 'ni', false)
    end
    return
  end
  local out = before.rhs or ''
  if before.expr == 1 then
    out = vim.api.nvim_eval(before.rhs)
  end
  feed(out, before.noremap == 1 and 'n' or 'm')
end

local function trigger()
  M.asked = true
  ghost.ask(true)
  return true
end

local actions = {
  accept = accept.all,
  accept_word = accept.word,
  accept_line = accept.line,
  next = function()
    return ghost.cycle(1)
  end,
  previous = function()
    return ghost.cycle(-1)
  end,
  dismiss = function()
    if not ghost.shown then
      return false
    end
    ghost.dismiss()
    return true
  end,
  trigger = trigger,
}

local function builtin_action(name)
  return function()
    if name == 'accept' then
      return vim.lsp.inline_completion.get()
    elseif name == 'next' or name == 'previous' then
      vim.lsp.inline_completion.select({ count = name == 'next' and 1 or -1 })
      return true
    end
    return false
  end
end

--- Map the keys of the options.
function M.map(options)
  for name, key in pairs(options.keys) do
    if key and key ~= '' and actions[name] then
      local before = vim.fn.maparg(key, 'i', false, true)
      if before.desc and before.desc:find('^lsp%-complete') then
        before = {} -- setup ran twice
      end
      local act = options.ghost == 'builtin' and builtin_action(name) or actions[name]
      vim.keymap.set('i', key, function()
        if M.menu_has_choice() or not client.get() or not act() then
          fall_back(key, before)
        end
      end, { desc = 'lsp-complete: ' .. name:gsub('_', ' ') })
    end
  end
end

return M
